//! Parameters change while etcd runs: those that need no restart are taken by the etcd that runs.

use std::time::Duration;

use super::steps;
use crate::cluster;
use crate::etcd;
use crate::host;
use crate::node::{NODES, Node};
use crate::pcs;
use crate::sh::{self, Result};
use crate::state::Lab;
use crate::up::Wish;

/// Higher than before: a lower one is not everywhere allowed.
const OOM: &str = "100";

pub fn run(lab: &Lab, _: Wish) -> Result<()> {
    etcd::wait_two_voters(lab, Duration::from_secs(60))?;
    let before = NODES.map(|node| etcd::pid(lab, node));
    let members = steps::members(lab)?;
    let mut writers = super::writing(lab)?;
    let change = ["resource", "update", cluster::ETCD, &format!("oom={OOM}"), "max_backup_snapshots=2"];
    pcs::run_and_wait(lab, NODES[0], &change)?;
    lab.event("parameters have changed");
    for node in NODES {
        sh::wait_for("the new OOM score", Duration::from_secs(120), Duration::from_millis(300), || {
            (oom_score(lab, node).ok()?.trim() == OOM).then_some(())
        })?;
    }
    if NODES.map(|node| etcd::pid(lab, node)) != before {
        return Err("etcd was restarted for a parameter that it can take while it runs".into());
    }
    steps::same_members(lab, members)?;
    super::ends_well(lab, &mut writers)
}

fn oom_score(lab: &Lab, node: Node) -> Result<String> {
    let pid = etcd::pid(lab, node).ok_or("no etcd runs")?;
    host::must(lab, node, &["cat", &format!("/proc/{pid}/oom_score_adj")])
}
