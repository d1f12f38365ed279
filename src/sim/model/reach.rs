//! The users' network: which leader their writes reach.

use super::world::{Run, World};

/// Returns whether `n` leads and writes of users reach it, by its follower if need be.
pub fn takes_writes(world: &World, n: usize) -> bool {
    let by_the_peer = world.link && !world.lost_to_users[1 - n] && world.nodes[1 - n].etcd == Run::Follower;
    world.nodes[n].etcd == Run::Leader && (!world.lost_to_users[n] || by_the_peer)
}

/// Users lose a machine, or reach it again; false where that is no news.
pub fn set_users(world: &mut World, n: usize, reach: bool) -> bool {
    std::mem::replace(&mut world.lost_to_users[n], !reach) == reach
}
