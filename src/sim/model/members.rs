//! The agent's requests to etcd for changes of the membership.

use super::etcd;
use super::log::{self, Conf, Entry, Mid, bit};
use super::world::{Run, World};
use crate::sim::Sim;

/// The outcome of a request to change etcd's membership.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    Done,
    /// The leader has the requested change in its log, but has not yet committed it.
    NotYet,
    Failed,
}

/// Returns the leader to which the etcd of node `via` forwards a request of node `from`; `None` if there is no leader, or if `from`
/// does not reach that etcd.
fn asked_leader(world: &World, via: usize, from: usize) -> Option<usize> {
    let reachable = via == from || (world.etcds_meet() && world.nodes[via].on);
    etcd::leader(world).filter(|_| reachable && world.nodes[via].etcd.is_led())
}

/// Returns whether the membership `conf` already contains the change that `entry` makes.
fn is_done(entry: Entry, conf: Conf) -> bool {
    match entry {
        Entry::Remove(mid) => !conf.lists(mid),
        Entry::Promote(mid) => conf.votes(mid),
        Entry::AddLearner(mid) => conf.lists(mid),
        Entry::Base { .. } | Entry::Write(_) | Entry::Started(_) | Entry::Elected => false,
    }
}

/// Returns whether a requested change is in the leader's log but not yet committed. In that case a second request would change nothing.
pub fn is_awaited(sim: &Sim, world: &World, via: usize, from: usize, entry: Entry) -> bool {
    let Some(data) = asked_leader(world, via, from).map(|leader| world.nodes[leader].data) else { return false };
    !is_done(entry, data.applied(&sim.logs).conf) && is_done(entry, data.newest(&sim.logs).conf)
}

/// Requests the change of the membership in `entry` from the etcd of node `via`, on behalf of node `from`. The caller has checked with
/// [`is_awaited`] that the same change is not already in the leader's log.
pub fn change(sim: &mut Sim, world: &mut World, via: usize, from: usize, entry: Entry) -> Reply {
    let Some(leader) = asked_leader(world, via, from) else { return Reply::Failed };
    let data = world.nodes[leader].data;
    let now = data.applied(&sim.logs).conf;
    if is_done(entry, now) {
        return Reply::Done;
    }
    let may = match entry {
        Entry::Remove(_) => true,
        Entry::Promote(mid) => is_caught_up(world, leader, now, mid),
        Entry::AddLearner(mid) => !names(data.newest(&sim.logs).conf, log::node_of(mid)),
        Entry::Base { .. } | Entry::Write(_) | Entry::Started(_) | Entry::Elected => false,
    };
    if !may {
        return Reply::Failed;
    }
    etcd::append(sim, world, leader, entry);
    let applied = etcd::applied(sim, world, leader);
    let is_committed = applied.has_one_voter() || etcd::has_the_third_voter(world, applied);
    if is_committed || matches!(entry, Entry::Promote(_)) { Reply::Done } else { Reply::NotYet }
}

fn names(conf: Conf, node: usize) -> bool {
    (1..16).any(|mid| conf.lists(mid) && log::node_of(mid) == node)
}

/// Returns whether the learner `mid` has caught up with the leader. etcd requires that it has 90 % of the leader's index. In the model
/// it only has to follow the leader.
fn is_caught_up(world: &World, leader: usize, conf: Conf, mid: Mid) -> bool {
    let learner = &world.nodes[1 - leader];
    conf.learners & bit(mid) != 0 && learner.data.mid == mid && learner.etcd == Run::Follower
}
