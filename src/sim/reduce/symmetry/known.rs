//! Facts about interned values, kept by their numbers because the search reads them in every state: the members and
//! forks that a value names, and its mirror image.

use super::rename::{Forks, Renaming, Table, forks_of, keep, rename};
use crate::decide::evidence::{DataDir, PublishedState};
use crate::sim::Sim;
use crate::sim::model::log::{Entry, bit};
use crate::sim::model::world::{Node, World};
use crate::sim::store::intern::Id;

/// Facts about a stored value that the search reads often.
#[derive(Clone, Copy, Debug, Default)]
pub struct Known {
    /// The fingerprint of the value: see [`crate::sim::store::intern::Interner::mark`].
    pub(in crate::sim) mark: u16,
    /// The number of the value's mirror image. The mirror image is the same value with the two nodes exchanged.
    pub(in crate::sim) other: Id,
    /// The fingerprint of the value's mirror image.
    pub(in crate::sim) others_mark: u16,
    /// The set of members that the value names.
    mids: u16,
    /// The forced new cluster that the value names; `None` if it names none.
    forks: Option<Forks>,
    /// True if the value is a durable state that announces that its node runs standalone.
    announces: bool,
}

/// The facts about the stored values of one node.
#[derive(Clone, Copy, Debug)]
pub(in crate::sim) struct Names {
    pub(in crate::sim) log: Known,
    pub(in crate::sim) note: Known,
    pub(in crate::sim) memory: Known,
    pub(in crate::sim) record: [Known; 2],
}

impl Names {
    /// Returns the set of members that the node's stored values name.
    pub(in crate::sim) fn mids(&self) -> u16 {
        self.log.mids | self.note.mids | self.memory.mids | self.record[0].mids | self.record[1].mids
    }

    /// Returns the forced new clusters that the node's stored values name.
    pub(in crate::sim) fn forks(&self) -> impl Iterator<Item = Forks> {
        [self.note.forks, self.memory.forks, self.record[0].forks, self.record[1].forks].into_iter().flatten()
    }

    /// Returns whether the node's durable state announces that the node runs standalone.
    pub(in crate::sim) fn announces(&self) -> bool {
        self.note.announces
    }
}

/// Returns the facts about the stored values of both nodes.
pub(in crate::sim) fn of(sim: &mut Sim, world: &World) -> [Names; 2] {
    let mut names = |node: &Node| Names {
        log: known(sim, Table::Log, node.data.log),
        note: known(sim, Table::Note, node.note),
        memory: known(sim, Table::Memory, node.memory),
        record: node.cib.record.map(|id| known(sim, Table::PublishedState, id)),
    };
    [names(&world.nodes[0]), names(&world.nodes[1])]
}

fn known(sim: &mut Sim, table: Table, id: Id) -> Known {
    let known = sim.known[table as usize].get(id as usize).copied().flatten();
    known.unwrap_or_else(|| {
        let known = learn(sim, table, id);
        keep(&mut sim.known[table as usize], id, known);
        known
    })
}

fn learn(sim: &mut Sim, table: Table, id: Id) -> Known {
    let swap = Renaming::swap();
    let key = sim.renamings.id(swap.clone());
    // Number 0, which represents no value, is its own mirror image.
    let other = if id == 0 { 0 } else { rename(sim, table, id, key, &swap) };
    let known = Known { mark: mark(sim, table, id), other, others_mark: mark(sim, table, other), ..Known::default() };
    match table {
        Table::Log => Known { mids: mids_of(sim.logs.get(id)), ..known },
        Table::PublishedState => sim.records.get(id).as_ref().map_or(known, |record| Known {
            mids: mids_of_record(record),
            forks: Some(forks_of(&record.lineage)),
            ..known
        }),
        Table::Note => {
            let note = sim.notes.get(id);
            // No note has the same meaning as a note that knows of no fork.
            let named = [note.without, note.of.as_ref().map(|of| of.member_id)];
            let mids = named.into_iter().flatten().fold(0, |mids, mid| mids | bit(u8::try_from(mid).unwrap_or(0) & 15));
            Known { mids, forks: Some(forks_of(&note.lineage)), announces: note.alone_since.is_some(), ..known }
        }
        Table::Memory => sim.memories.get(id).voter.as_ref().map_or(known, |voter| Known {
            mids: bit(u8::try_from(voter.member_id).unwrap_or(0) & 15),
            forks: Some(forks_of(&voter.lineage)),
            ..known
        }),
    }
}

fn mark(sim: &Sim, table: Table, id: Id) -> u16 {
    match table {
        Table::Log => sim.logs.mark(id),
        Table::PublishedState => sim.records.mark(id),
        Table::Note => sim.notes.mark(id),
        Table::Memory => sim.memories.mark(id),
    }
}

fn mids_of_record(record: &PublishedState) -> u16 {
    match &record.disk {
        DataDir::Present(history) => history
            .voters
            .iter()
            .chain(&history.learners)
            .chain([&history.member_id])
            .fold(0, |set, mid| set | bit(u8::try_from(*mid).unwrap_or(0) & 15)),
        DataDir::Blank | DataDir::Broken { .. } => 0,
    }
}

fn mids_of(entries: &[Entry]) -> u16 {
    entries.iter().fold(0, |set, entry| {
        set | match *entry {
            Entry::Base { conf, .. } => conf.voters | conf.learners | conf.started,
            Entry::AddLearner(mid) | Entry::Started(mid) | Entry::Promote(mid) | Entry::Remove(mid) => bit(mid),
            Entry::Write(_) | Entry::Elected => 0,
        }
    })
}
