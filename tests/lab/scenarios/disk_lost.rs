//! Both nodes lose power, and the leader loses its etcd disk as well: a replaced node with an empty disk, while the CIB
//! still describes the old one. The other node's log holds everything that was acknowledged. It runs standalone, and
//! the empty one joins.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use super::steps;
use crate::cluster::etcd;
use crate::cluster::up::Wish;
use crate::host;
use crate::host::node::NODES;
use crate::host::state::Lab;
use crate::sh::{self, Result};

pub fn with_the_power(lab: &Lab, wish: Wish) -> Result<()> {
    let loser = etcd::wait_two_voters(lab, Duration::from_secs(60))?.leader;
    let before = steps::members(lab)?;
    let mut writers = super::writing(lab)?;
    for node in NODES {
        steps::cut(lab, node)?;
    }
    let disk = lab.disk(loser, "var-lib").join("etcd");
    fs::remove_dir_all(&disk)?;
    sh::make_dir(&disk)?;
    fs::set_permissions(&disk, fs::Permissions::from_mode(0o700))?;
    lab.event(&format!("the etcd disk of {loser} is replaced by an empty one"));
    for node in NODES {
        steps::on(lab, node, wish.boot_delay)?;
    }
    super::ends_well(lab, &mut writers)?;
    let after = steps::members(lab)?;
    for node in NODES {
        let number = usize::from(node.number() - 1);
        if (before[number] == after[number]) == (node == loser) {
            return Err(format!("{node} was member {:x} and is {:x}", before[number], after[number]).into());
        }
    }
    Ok(())
}

/// Kills etcd on a node and removes its data, while the machine stays up. The other node must not wait for a peer
/// without data. The common ending (`super::ends_well`) checks that no acknowledged write is lost.
pub fn while_it_runs(lab: &Lab, _: Wish) -> Result<()> {
    let loser = etcd::wait_two_voters(lab, Duration::from_secs(60))?.leader;
    let mut writers = super::writing(lab)?;
    let pid = etcd::pid(lab, loser).ok_or_else(|| format!("no etcd runs on {loser}"))?;
    let script = format!("kill -9 {pid}; rm -r /var/lib/etcd/member");
    host::must(lab, loser, &["sh", "-c", &script])?;
    lab.event(&format!("etcd on {loser} dies, and its data is gone"));
    steps::wait_write(&writers, Duration::from_secs(60))?;
    super::ends_well(lab, &mut writers)
}
