//! What only hosts with a kernel, an init and a disk of their own can show.

pub mod cuts;
pub mod joining;
pub mod machine;
pub mod packages;
pub mod paused;
pub mod synced;

use std::time::Duration;

use crate::etcd;
use crate::node::{NODES, Node};
use crate::sh::{self, Result};
use crate::state::Lab;

/// However slow the machine: a recovery that takes longer is none.
const TWO_VOTERS_WITHIN: Duration = Duration::from_secs(600);

/// Two voters are back in time, whatever happened.
fn two_voters(lab: &Lab) -> Result<()> {
    // Not stretched as other waits are.
    etcd::wait_two_voters(lab, sh::unstretched(TWO_VOTERS_WITHIN)).map(drop)
}

/// The leader, and the other one.
fn roles(lab: &Lab) -> Result<(Node, Node)> {
    let leader = etcd::wait_two_voters(lab, Duration::from_secs(60))?.leader;
    Ok((leader, leader.other()))
}

/// Where each node's log ends at the moment, in the order of [`NODES`].
fn log_ends(lab: &Lab) -> [usize; 2] {
    NODES.map(|node| super::steps::log_length(lab, node))
}
