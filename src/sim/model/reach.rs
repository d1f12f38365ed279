//! The users' network: which leader their writes reach, and what a detector of partitions reports.

use super::world::{Run, World};

/// The links of a node, as a detector of partitions that is right reports them there. No rule of Tandem's reads it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Links {
    /// No link is known to be cut: a peer that is silent has failed, or its own links have.
    #[default]
    Whole,
    /// The node reaches neither its peer nor users.
    OwnCut,
    /// The two nodes do not reach each other, and users reach both.
    Parted,
}

impl Links {
    /// Returns the links of `me`.
    pub fn of(world: &World, me: usize) -> Self {
        match (world.link || !world.nodes[1 - me].on, world.lost_to_users[me], world.lost_to_users[1 - me]) {
            (true, ..) | (false, false, true) => Self::Whole,
            (false, true, _) => Self::OwnCut,
            (false, false, false) => Self::Parted,
        }
    }
}

/// Returns whether `n` leads and writes of users reach it, by its follower if need be.
pub fn takes_writes(world: &World, n: usize) -> bool {
    let by_the_peer = world.etcds_meet() && !world.lost_to_users[1 - n] && world.nodes[1 - n].etcd == Run::Follower;
    world.nodes[n].etcd == Run::Leader && (!world.lost_to_users[n] || by_the_peer)
}

/// Users lose a machine, or reach it again; false where that is no news.
pub fn set_users(world: &mut World, n: usize, reach: bool) -> bool {
    std::mem::replace(&mut world.lost_to_users[n], !reach) == reach
}
