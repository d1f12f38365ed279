//! The file system of one node's data dir runs full. etcd there dies and cannot start, and the exit reason reports
//! that. Once there is space again, it comes back without an operator.

use std::time::Duration;

use super::steps;
use crate::cluster::Failure;
use crate::cluster::etcd;
use crate::cluster::up::Wish;
use crate::host;
use crate::host::node::Node;
use crate::host::state::Lab;
use crate::sh::Result;

const DATA_DIR: &str = "/var/lib/etcd";
const FILLER: &str = "/var/lib/etcd/filler";

pub fn run(lab: &Lab, _: Wish) -> Result<()> {
    let node = etcd::wait_two_voters(lab, Duration::from_secs(60))?.leader.other();
    small_disk(lab, node)?;
    etcd::wait_two_voters(lab, Duration::from_secs(120))?;
    let mut writers = super::writing(lab)?;
    // `dd` is meant to fail when the file system is full.
    let fill = format!("dd if=/dev/zero of={FILLER} bs=64k; true");
    host::must(lab, node, &["sh", "-c", &fill])?;
    lab.event(&format!("the disk of {node} is full"));
    // etcd reports the error for its own data. If the peer ran standalone first, this node has to join, and the agent
    // reports that it lacks the space for that.
    let tells = |failure: &Failure| {
        let reason = failure.reason.to_lowercase();
        reason.contains("no space left") || reason.contains("'df' and make room")
    };
    let failure = steps::wait_failure(lab, node.other(), "a reason that says so", tells);
    host::must(lab, node, &["rm", FILLER])?;
    lab.event(&format!("the disk of {node} has room again"));
    println!("   {}", failure?);
    super::ends_well(lab, &mut writers)
}

/// Mounts a small, empty file system as etcd's data dir on a node, like a new disk.
fn small_disk(lab: &Lab, node: Node) -> Result<()> {
    steps::standby(lab, node, true)?;
    steps::wait_alone(lab, node.other())?;
    steps::wait_stopped(lab, &[node])?;
    host::must(lab, node, &["mount", "-t", "tmpfs", "-o", "size=400m,mode=0700", "tmpfs", DATA_DIR])?;
    steps::standby(lab, node, false)
}
