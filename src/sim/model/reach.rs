//! The users' network: the leader that their writes reach, and the report of a partition detector.

use super::world::{Run, World};

/// The state of a node's network links, as a correct partition detector on the node reports them. No rule of Tandem reads it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Links {
    /// No link is known to be cut. If the peer is silent, either it has failed, or the peer's links are cut.
    #[default]
    Whole,
    /// The node reaches neither its peer nor the users of etcd.
    OwnCut,
    /// The two nodes do not reach each other, but the users of etcd reach both nodes.
    Parted,
}

impl Links {
    /// Returns the report of a correct partition detector on node `me`.
    pub fn of(world: &World, me: usize) -> Self {
        match (world.link || !world.nodes[1 - me].on, world.lost_to_users[me], world.lost_to_users[1 - me]) {
            (true, ..) | (false, false, true) => Self::Whole,
            (false, true, _) => Self::OwnCut,
            (false, false, false) => Self::Parted,
        }
    }
}

/// Returns whether node `n` leads and writes of users reach it, directly or through its follower.
pub fn takes_writes(world: &World, n: usize) -> bool {
    let by_the_peer = world.etcds_meet() && !world.lost_to_users[1 - n] && world.nodes[1 - n].etcd == Run::Follower;
    world.nodes[n].etcd == Run::Leader && (!world.lost_to_users[n] || by_the_peer)
}

/// Cuts machine `n` off from users, or lets them reach it again. Returns false if nothing changes.
pub fn set_users(world: &mut World, n: usize, reach: bool) -> bool {
    std::mem::replace(&mut world.lost_to_users[n], !reach) == reach
}
