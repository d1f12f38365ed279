//! The node that is to lead, where there is one: what has to hold when leadership moves to it, and the delay before that.

use super::etcd;
use super::world::{NAMES, Run, World};
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

/// Returns whether the node leads that is to, where one is.
pub(super) fn is_as_wanted(sim: &Sim, world: &World) -> bool {
    sim.bounds.primary.is_none_or(|primary| world.nodes[usize::from(primary)].etcd == Run::Leader)
}
