//! A vote proxy in the model: what its vote, its removal of the dead member, and its end make of etcd.

use super::etcd::{append, applied, begin_term};
use super::log::{Entry, THIRD_VOTER};
use super::world::{Run, World};
use crate::sim::Sim;

/// A vote proxy gives `n` the vote that it lacks. What the leader sends from then on is acknowledged: all of its log is committed. It gives
/// up where a promotion is in that log which nobody knows to be committed.
pub(super) fn vote(sim: &mut Sim, world: &mut World, n: usize) {
    let hides_a_voter =
        world.nodes[n].data.newest(&sim.logs).conf.votes(THIRD_VOTER) && !applied(sim, world, n).votes(THIRD_VOTER);
    if world.nodes[n].etcd == Run::Leaderless && !hides_a_voter {
        world.nodes[n].etcd = Run::Leader;
        begin_term(sim, world, n);
    }
}

/// The vote proxy ends: a leader that it elected has no follower, and notices that later.
pub(in crate::sim) fn leave_to_itself(sim: &Sim, world: &mut World, n: usize) {
    world.nodes[n].lingers |= sim.is_stood_in_for(world, n) && world.nodes[n].etcd == Run::Leader;
}

/// It has the leader remove the voter in whose place it is; nothing where the leader is none any more.
pub(super) fn remove_the_dead(sim: &mut Sim, world: &mut World, n: usize) {
    let (mid, conf) = (world.nodes[n].data.mid, applied(sim, world, n));
    let dead = (1..16).find(|other| *other != mid && conf.votes(*other));
    if let Some(dead) = dead.filter(|_| world.nodes[n].etcd == Run::Leader) {
        append(sim, world, n, Entry::Remove(dead));
    }
}
