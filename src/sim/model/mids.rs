//! Member ids: unused ones, and their short form in the model.

use super::log::{Entry, Mid, bit};
use super::world::World;
use crate::decide::evidence::{DataDir, DurableState};
use crate::decide::plan::Effect;
use crate::sim::Sim;

pub(super) fn small(id: u64) -> u8 {
    u8::try_from(id).unwrap_or(u8::MAX)
}

/// Returns an id for a new member of `node` that nothing in `world` names. etcd assigns no id twice. In the model, an id that nothing
/// names any more can be used as a new one.
pub(super) fn unused_mid(sim: &Sim, world: &World, node: usize) -> Mid {
    let mut used = 0_u16;
    let mut note = |mid: Mid| used |= bit(mid & 15);
    for machine in &world.nodes {
        note(machine.data.mid);
        for entry in machine.data.entries(&sim.logs) {
            match *entry {
                Entry::Base { conf, .. } => (0..16).filter(|mid| conf.lists(*mid)).for_each(&mut note),
                Entry::AddLearner(mid) | Entry::Started(mid) | Entry::Promote(mid) | Entry::Remove(mid) => note(mid),
                Entry::Write(_) | Entry::Elected => {}
            }
        }
        for record in machine.cib.record.iter().filter_map(|id| sim.records.get(*id).as_ref()) {
            if let DataDir::Present(history) = &record.disk {
                note(small(history.member_id));
                history.voters.iter().chain(&history.learners).for_each(|mid| note(small(*mid)));
            }
        }
        if let Some(voter) = &sim.memories.get(machine.memory).voter {
            note(small(voter.member_id));
        }
        mids_of_note(sim.notes.get(machine.note)).for_each(&mut note);
        if let Some((plan, _)) = machine.action.and_then(|action| action.plan) {
            for effect in sim.todos.get(plan).effects.iter() {
                note(mid_of(effect));
                if let Effect::WriteNote(written) = effect {
                    mids_of_note(written).for_each(&mut note);
                }
            }
        }
    }
    let first = if node == 0 { 1 } else { 9 };
    (first..first + 7).find(|mid| used & bit(*mid) == 0).unwrap_or(first + 6)
}

/// Returns the ids of the members that a node's durable state names.
fn mids_of_note(note: &DurableState) -> impl Iterator<Item = Mid> {
    let named = [note.without, note.of.as_ref().map(|of| of.member_id)];
    named.into_iter().flatten().map(small)
}

fn mid_of(effect: &Effect) -> Mid {
    match effect {
        Effect::RemoveMember { id, .. } | Effect::PromoteMember { id, .. } => small(*id),
        Effect::Remember(memory) => memory.voter.as_ref().map_or(0, |voter| small(voter.member_id)),
        _ => 0,
    }
}
