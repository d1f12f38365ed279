//! The users' network: the leader that their writes reach, and the report of a partition detector.

use super::world::{Run, World};

/// The links of a node, as a correct partition detector reports them there. No rule of Tandem reads them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Links {
    /// No link is known to be cut: a silent peer has failed, or its own links have.
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

/// Returns whether `n` leads and writes of users reach it, through its follower if need be.
pub fn takes_writes(world: &World, n: usize) -> bool {
    let by_the_peer = world.etcds_meet() && !world.lost_to_users[1 - n] && world.nodes[1 - n].etcd == Run::Follower;
    world.nodes[n].etcd == Run::Leader && (!world.lost_to_users[n] || by_the_peer)
}

/// Cuts a machine off from users, or lets them reach it again. Returns false if nothing changes.
pub fn set_users(world: &mut World, n: usize, reach: bool) -> bool {
    std::mem::replace(&mut world.lost_to_users[n], !reach) == reach
}
