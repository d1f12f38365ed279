//! The primary, if one is configured: the conditions under which leadership moves to it, and the delay before that.

use super::world::{Action, KeptHistory, NAMES, Run, Stack, Wanted, World};
use super::{etcd, pacemaker};
use crate::base::Fact;
use crate::decide::Request;
use crate::decide::evidence::{BootState, Leading, PeerAgent, PeerNode, Reach};
use crate::sim::store::intern::Id;
use crate::sim::{Sim, Violation};

/// Asserts that leadership moves only to a voter that follows, lacks nothing, and has been well for the delay.
pub(super) fn check(sim: &Sim, world: &World, n: usize) -> Result<(), Violation> {
    let (me, peer) = (&world.nodes[n], &world.nodes[1 - n]);
    let conf = etcd::applied(sim, world, n);
    let what = match () {
        () if peer.etcd != Run::Follower => "does not follow",
        () if !conf.votes(peer.data.mid) => "has no vote",
        () if peer.data.log != me.data.log => "lacks entries",
        () if !world.delay_over[n] => "was not well for the delay",
        () => return Ok(()),
    };
    Err(Violation::new(format!("{} is to lead in the place of {}, and {what}", NAMES[1 - n], NAMES[n])))
}

/// Returns whether a memory has the beginning of a delay: of a hand-over that is due, or of a time without a leader.
pub(in crate::sim) fn counts(memory: &BootState) -> bool {
    memory.hand_over.is_some() || memory.leaderless_since_s.is_some()
}

/// Ends the delay that the memory of `n` has begun. Returns false if it has begun none.
pub(in crate::sim) fn end_delay(sim: &Sim, world: &mut World, n: usize) -> bool {
    let is_counted = counts(sim.memories.get(world.nodes[n].memory));
    is_counted && !std::mem::replace(&mut world.delay_over[n], true)
}

/// Stores a memory. A hand-over that differs from the last memory's begins a delay of its own.
pub(super) fn remember(sim: &Sim, world: &mut World, n: usize, memory: Id) {
    let before = std::mem::replace(&mut world.nodes[n].memory, memory);
    let [before, after] = [before, memory].map(|memory| sim.memories.get(memory));
    let is_the_same = before.hand_over == after.hand_over && before.leaderless_since_s == after.leaderless_since_s;
    world.delay_over[n] &= is_the_same;
}

/// Hands leadership to the peer. Returns false if that fails. The next try waits for a delay of its own.
pub(super) fn hand_over(sim: &mut Sim, world: &mut World, n: usize) -> bool {
    world.delay_over[n] = false;
    etcd::hand_over(sim, world, n)
}

/// Returns the facts about the primary that an agent knows. Each delay ends at any time, by a move of its own, and each
/// try is the first.
pub(super) fn known(sim: &Sim, memory: Id, delay_over: bool, kept: KeptHistory) -> Option<Leading> {
    let configured = sim.bounds.primary?;
    let primary = if kept == KeptHistory::Others { 1 - configured } else { configured };
    let known = |is_counted: bool| is_counted.then_some(if delay_over { u64::MAX } else { 0 });
    let remembered = sim.memories.get(memory);
    Some(Leading {
        primary: Some(NAMES[usize::from(primary)].to_owned()),
        failback: true,
        keeps_its_history: sim.bounds.two_histories && kept != KeptHistory::Neither,
        delay_s: 60,
        ready_for_s: known(remembered.hand_over.is_some()),
        patience_s: if sim.bounds.parts_etcd { 30 } else { 0 },
        leaderless_for_s: known(remembered.leaderless_since_s.is_some()),
        boot_s: 0,
    })
}

/// Returns the CIB's fact whether the peer leads, which is always "no". The attribute may be out of date, so it may
/// always be wrong.
pub(super) fn peer_leads(sim: &Sim) -> Option<bool> {
    sim.bounds.primary.filter(|_| sim.bounds.parts_etcd).map(|_| false)
}

/// Returns whether the parameters, once they agree, keep one of two histories. For that the primary's must be a voter's
/// and count as many forks as any, and the other one must not serve.
pub(super) fn keeps_a_history(sim: &Sim, world: &World) -> bool {
    let Some(primary) = sim.bounds.primary.filter(|_| sim.bounds.two_histories).map(usize::from) else { return false };
    let forks = |n: usize| sim.notes.get(world.nodes[n].note).lineage.forks;
    let recorded = world.nodes.iter().map(|node| u64::from(node.cib.most_forks().0)).max().unwrap_or_default();
    let other = &world.nodes[1 - primary];
    etcd::have_parted(sim, world)
        && forks(primary) >= recorded.max(forks(1 - primary))
        && !other.etcd.is_on()
        && sim.memories.get(other.memory).voter.is_none()
}

/// Returns the node that both nodes' parameters name at the beginning, if they keep its history.
pub(super) fn preferred(sim: &Sim) -> Option<String> {
    let primary = sim.bounds.primary.filter(|_| sim.bounds.two_histories)?;
    Some(NAMES[usize::from(primary)].to_owned())
}

/// Changes the parameters of `n` that its agent gets. An action that is under way keeps those that it began with.
pub(in crate::sim) fn keep(sim: &Sim, world: &mut World, n: usize, kept: KeptHistory) -> bool {
    let can = sim.bounds.two_histories && world.nodes[n].action.is_none();
    can && std::mem::replace(&mut world.kept[n], kept) != kept
}

/// Records that `n` gives the other history up when it announces that it runs standalone. `n` does so at an operator's
/// command, or because both nodes' parameters keep its history. In the second case both records name `n`, and the other
/// node does not serve.
pub(super) fn announce(sim: &Sim, world: &mut World, n: usize, was_left_behind: bool) {
    if world.is_told_to_go_on(n, was_left_behind) {
        world.override_by_word(n);
        return;
    }
    let names_it = |m: usize| {
        let record = sim.records.get(world.nodes[m].cib.record[m]).as_ref();
        record.is_some_and(|record| record.prefers.as_deref() == Some(NAMES[n]))
    };
    let is_kept = sim.bounds.two_histories && names_it(0) && names_it(1);
    if is_kept && etcd::have_parted(sim, world) && !world.nodes[1 - n].etcd.is_led() {
        let is_heard = pacemaker::are_together(world);
        (world.words, world.unheard) = (1 << n, u8::from(!is_heard) << (1 - n));
    }
}

/// Returns whether users reach this node and the peer, if an agent asks.
pub(super) fn reach(sim: &Sim, lost: [bool; 2]) -> Option<Box<Reach>> {
    let [own, peer] = lost.map(|is_lost| Fact::Known(!is_lost));
    sim.bounds.primary.map(|_| Box::new(Reach { own, peer }))
}

/// Asserts that a voter gives its claim up only for a primary that its CIB shows as active.
pub(super) fn check_yields(sim: &Sim, world: &World, n: usize) -> Result<(), Violation> {
    let cib = &world.nodes[n].cib;
    let is_primary = sim.bounds.primary.map(usize::from) == Some(1 - n);
    let is_there = cib.machine[1 - n] == PeerNode::Online && cib.agent[1 - n] == PeerAgent::Active;
    if is_primary && is_there {
        return Ok(());
    }
    Err(Violation::new(format!("{} is to give its claim up for {}, which is not seen", NAMES[n], NAMES[1 - n])))
}

/// Asserts that a node that yields has given its claim up, in its memory and in its replica of the CIB.
pub(super) fn check_yielded(sim: &Sim, world: &World, n: usize) -> Result<(), Violation> {
    let me = &world.nodes[n];
    let claims = sim.records.get(me.cib.record[n]).as_ref().is_some_and(|record| record.claims);
    if claims || sim.memories.get(me.memory).voter.is_some() {
        return Err(Violation::new(format!("{} yields to {} and keeps its claim", NAMES[n], NAMES[1 - n])));
    }
    Ok(())
}

/// Returns whether the primary proves in this boot that it may run standalone, so that writes return while the two
/// etcds do not reach each other. A sole voter's memory from before its peer's promotion proves that only if etcd
/// answers without a leader.
pub(super) fn may_go_on(sim: &Sim, world: &World) -> bool {
    let Some(n) = sim.bounds.primary.map(usize::from) else { return false };
    let me = &world.nodes[n];
    let claims = sim.records.get(me.cib.record[n]).as_ref().is_some_and(|record| record.claims);
    let remembers = sim.memories.get(me.memory).voter.as_ref().is_some_and(|voter| !voter.sole);
    let is_well = me.on && me.stack == Stack::Up && me.wanted == Wanted::Running && !me.unclean && !me.failed;
    let acts = |action: Action| matches!(action.request, Request::Monitor | Request::Notify);
    is_well && claims && remembers && me.etcd.is_on() && me.action.is_none_or(acts)
}

/// Returns whether the primary leads, if one is configured.
pub(super) fn is_as_wanted(sim: &Sim, world: &World) -> bool {
    sim.bounds.primary.is_none_or(|primary| world.nodes[usize::from(primary)].etcd == Run::Leader)
}
