//! The primary, if one is configured: the conditions under which leadership moves to it, and the delay before that.

use super::world::{Action, KeptHistory, NAMES, Run, Stack, Wanted, World};
use super::{etcd, pacemaker};
use crate::base::Fact;
use crate::decide::Request;
use crate::decide::evidence::{BootState, Leading, PeerAgent, PeerNode, Reach};
use crate::sim::store::intern::Id;
use crate::sim::{Sim, Violation};

/// Asserts that leadership moves from node `n` only to a voter that follows, lacks no entry, and has been well for the configured
/// delay.
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

/// Returns whether `memory` stores the beginning of a delay. There is one delay for a hand-over that is due, and one for a time without
/// a leader.
pub(in crate::sim) fn counts(memory: &BootState) -> bool {
    memory.hand_over.is_some() || memory.leaderless_since_s.is_some()
}

/// Ends the delay that began when the agent of node `n` stored its beginning. Returns false if none is stored.
pub(in crate::sim) fn end_delay(sim: &Sim, world: &mut World, n: usize) -> bool {
    let is_counted = counts(sim.memories.get(world.nodes[n].memory));
    is_counted && !std::mem::replace(&mut world.delay_over[n], true)
}

/// Stores `memory`, the number of a `BootState`, as the `BootState` of node `n`. If its hand-over or its time without a leader differs
/// from the last one, a new delay begins.
pub(super) fn remember(sim: &Sim, world: &mut World, n: usize, memory: Id) {
    let before = std::mem::replace(&mut world.nodes[n].memory, memory);
    let [before, after] = [before, memory].map(|memory| sim.memories.get(memory));
    let is_the_same = before.hand_over == after.hand_over && before.leaderless_since_s == after.leaderless_since_s;
    world.delay_over[n] &= is_the_same;
}

/// Hands leadership from node `n` to its peer. Returns false if that fails. In either case, the next attempt waits for a new delay.
pub(super) fn hand_over(sim: &mut Sim, world: &mut World, n: usize) -> bool {
    world.delay_over[n] = false;
    etcd::hand_over(sim, world, n)
}

/// Returns the facts about the configured primary that the agent observes; `None` without a primary. A delay has either just begun or
/// is over, because it is a move of the model that ends it. Each attempt of a hand-over counts as the first one.
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

/// Returns the value of the CIB's attribute that shows whether the peer leads. It is always `false`, because the attribute may be
/// outdated at any time. `None` in a search in which the network between the etcds does not fail.
pub(super) fn peer_leads(sim: &Sim) -> Option<bool> {
    sim.bounds.primary.filter(|_| sim.bounds.parts_etcd).map(|_| false)
}

/// Returns whether two histories need no operator once both nodes' parameters agree. The primary's history has to be a voter's, and no
/// other history may count more forced new clusters. The other node may not serve.
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

/// Returns the name of the node that both nodes' parameters prefer at first; `None` if no parameter keeps a history.
pub(super) fn preferred(sim: &Sim) -> Option<String> {
    let primary = sim.bounds.primary.filter(|_| sim.bounds.two_histories)?;
    Some(NAMES[usize::from(primary)].to_owned())
}

/// Changes the parameters of node `n` for its agent's next action. Returns false if this changes nothing, or while an action runs.
pub(in crate::sim) fn keep(sim: &Sim, world: &mut World, n: usize, kept: KeptHistory) -> bool {
    let can = sim.bounds.two_histories && world.nodes[n].action.is_none();
    can && std::mem::replace(&mut world.kept[n], kept) != kept
}

/// Records that node `n` gives up the other node's history when it announces that it will run standalone. It does so at an operator's
/// command, or because both nodes' parameters keep its history. In the second case, both records have to name `n`, and the other node
/// may not serve.
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

/// Returns whether users reach this node and the peer, as the agent observes it. `None` without a primary, because the agent does not
/// ask for it in that case.
pub(super) fn reach(sim: &Sim, lost: [bool; 2]) -> Option<Box<Reach>> {
    let [own, peer] = lost.map(|is_lost| Fact::Known(!is_lost));
    sim.bounds.primary.map(|_| Box::new(Reach { own, peer }))
}

/// Asserts that a voter gives up its claim to run standalone only in favour of a primary that its CIB shows as active.
pub(super) fn check_yields(sim: &Sim, world: &World, n: usize) -> Result<(), Violation> {
    let cib = &world.nodes[n].cib;
    let is_primary = sim.bounds.primary.map(usize::from) == Some(1 - n);
    let is_there = cib.machine[1 - n] == PeerNode::Online && cib.agent[1 - n] == PeerAgent::Active;
    if is_primary && is_there {
        return Ok(());
    }
    Err(Violation::new(format!("{} is to give its claim up for {}, which is not seen", NAMES[n], NAMES[1 - n])))
}

/// Asserts that a node has given up its claim to run standalone before it yields to the primary. Its replica of the CIB must not contain
/// the claim, and its `BootState` must not contain the voter.
pub(super) fn check_yielded(sim: &Sim, world: &World, n: usize) -> Result<(), Violation> {
    let me = &world.nodes[n];
    let claims = sim.records.get(me.cib.record[n]).as_ref().is_some_and(|record| record.claims);
    if claims || sim.memories.get(me.memory).voter.is_some() {
        return Err(Violation::new(format!("{} yields to {} and keeps its claim", NAMES[n], NAMES[1 - n])));
    }
    Ok(())
}

/// Returns whether the primary has a proof in this boot that it may run standalone. A primary with this proof serves again while the
/// two etcds do not reach each other.
///
/// A primary that last stored itself as a sole voter, before its peer's promotion, does not count here. It has the proof only if its
/// etcd answers without a leader.
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
