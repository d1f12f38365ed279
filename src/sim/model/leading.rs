//! The node that is to lead, where there is one: what has to hold when leadership moves to it, and the delay before that.

use super::etcd;
use super::world::{NAMES, Run, World};
use crate::base::Fact;
use crate::decide::evidence::{Leading, Reach};
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

/// The delay of the hand-over that the memory of `n` has comes to its end; false where none is counted.
pub(in crate::sim) fn end_delay(sim: &Sim, world: &mut World, n: usize) -> bool {
    let is_counted = sim.memories.get(world.nodes[n].memory).hand_over.is_some();
    is_counted && !std::mem::replace(&mut world.delay_over[n], true)
}

/// Keeps a memory. A hand-over that it has, and the one before had not, has a delay of its own.
pub(super) fn remember(sim: &Sim, world: &mut World, n: usize, memory: Id) {
    let before = std::mem::replace(&mut world.nodes[n].memory, memory);
    world.delay_over[n] &= sim.memories.get(before).hand_over == sim.memories.get(memory).hand_over;
}

/// Hands leadership to the peer; false where that fails. The next try waits for a delay of its own.
pub(super) fn hand_over(sim: &mut Sim, world: &mut World, n: usize) -> bool {
    world.delay_over[n] = false;
    etcd::hand_over(sim, world, n)
}

/// Returns what an agent knows of the node that is to lead. Each delay is over at any time, by a move of its own, and each try is the first.
pub(super) fn known(sim: &Sim, memory: Id, delay_over: bool) -> Option<Leading> {
    let primary = sim.bounds.primary?;
    let is_counted = memory != 0 && sim.memories.get(memory).hand_over.is_some();
    let ready_for_s = is_counted.then_some(if delay_over { u64::MAX } else { 0 });
    let primary = Some(NAMES[usize::from(primary)].to_owned());
    Some(Leading { primary, failback: true, delay_s: 60, ready_for_s, boot_s: 0 })
}

/// Returns whether users reach this node and the peer, where an agent asks.
pub(super) fn reach(sim: &Sim, lost: [bool; 2]) -> Option<Box<Reach>> {
    let [own, peer] = lost.map(|is_lost| Fact::Known(!is_lost));
    sim.bounds.primary.map(|_| Box::new(Reach { own, peer }))
}

/// Returns whether the node leads that is to, where one is.
pub(super) fn is_as_wanted(sim: &Sim, world: &World) -> bool {
    sim.bounds.primary.is_none_or(|primary| world.nodes[usize::from(primary)].etcd == Run::Leader)
}
