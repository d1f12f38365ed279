//! A vote proxy in the model: the consequences of its vote, its removal of the dead member, and its end.

use super::etcd::{append, applied, begin_term};
use super::log::{Entry, THIRD_VOTER};
use super::world::{Run, World};
use crate::sim::Sim;

/// Makes node `n` the leader by the vote that a vote proxy casts. The proxy acknowledges everything that the leader sends, so the
/// leader's whole log is committed. The proxy gives up if the log contains a promotion that no node knows to be committed.
pub(super) fn vote(sim: &mut Sim, world: &mut World, n: usize) {
    let hides_a_voter =
        world.nodes[n].data.newest(&sim.logs).conf.votes(THIRD_VOTER) && !applied(sim, world, n).votes(THIRD_VOTER);
    if world.nodes[n].etcd == Run::Leaderless && !hides_a_voter {
        world.nodes[n].etcd = Run::Leader;
        begin_term(sim, world, n);
    }
}

/// Ends the vote proxy of node `n`. A leader that it elected has no follower from now on, and notices that later.
pub(in crate::sim) fn leave_to_itself(sim: &Sim, world: &mut World, n: usize) {
    world.nodes[n].lingers |= sim.is_stood_in_for(world, n) && world.nodes[n].etcd == Run::Leader;
}

/// Lets the leader on node `n` remove the dead member, after the vote proxy has cast that member's vote. Does nothing if the leader has
/// stepped down.
pub(super) fn remove_the_dead(sim: &mut Sim, world: &mut World, n: usize) {
    let (mid, conf) = (world.nodes[n].data.mid, applied(sim, world, n));
    let dead = (1..16).find(|other| *other != mid && conf.votes(*other));
    if let Some(dead) = dead.filter(|_| world.nodes[n].etcd == Run::Leader) {
        append(sim, world, n, Entry::Remove(dead));
    }
}
