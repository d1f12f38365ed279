//! A service that is ordered before etcd, as kubelet is, fails on one node. Pacemaker restarts it, and with it etcd,
//! which leaves in order before it stops. The other node continues without a recovery.

use std::time::Duration;

use super::steps;
use crate::cluster::ETCD_CLONE;
use crate::cluster::etcd;
use crate::cluster::pcs;
use crate::cluster::up::Wish;
use crate::host;
use crate::host::node::NODES;
use crate::host::state::Lab;
use crate::sh::{self, Result};

const CLONE: &str = "kubelet-clone";
/// The limit for a writer's gap while the leader hands leadership over. It includes a few retries.
const LONGEST_GAP: Duration = Duration::from_secs(8);

pub fn run(lab: &Lab, _: Wish) -> Result<()> {
    let by = NODES[0];
    let kubelet = ["kubelet", "ocf:heartbeat:Dummy", "op", "monitor", "interval=5s", "meta", "migration-threshold=60"];
    pcs::create_clone(lab, by, pcs::run, &kubelet, &["clone", "interleave=true"])?;
    pcs::run(lab, by, &["constraint", "order", CLONE, "then", ETCD_CLONE])?;
    pcs::run(lab, by, &["constraint", "colocation", "add", ETCD_CLONE, "with", CLONE])?;
    let done = fail_and_return(lab);
    for kind in ["rsc_order", "rsc_colocation"] {
        host::must(lab, by, &["cibadmin", "--delete-all", "--force", "--xpath", &format!("//{kind}")])?;
    }
    pcs::run(lab, by, &["resource", "delete", "--force", "kubelet"])?;
    done
}

fn fail_and_return(lab: &Lab) -> Result<()> {
    let node = etcd::wait_two_voters(lab, Duration::from_secs(60))?.leader;
    let runs = |node| host::must(lab, node, &["sh", "-c", "ls /run/resource-agents/Dummy-kubelet*"]).is_ok();
    sh::wait_for("the service on both nodes", Duration::from_secs(90), Duration::from_millis(300), || {
        NODES.into_iter().all(runs).then_some(())
    })?;
    let logs = NODES.map(|node| steps::log_length(lab, node));
    let mut writers = super::writing(lab)?;
    host::must(lab, node, &["sh", "-c", "rm /run/resource-agents/Dummy-kubelet*"])?;
    lab.event(&format!("the service before etcd fails on {node}"));
    steps::wait_said(lab, node, logs[usize::from(node.number() - 1)], "joining as a learner", Duration::from_secs(90))?;
    etcd::wait_two_voters(lab, Duration::from_secs(180))?;
    let (gap, _) = writers.longest_wait();
    super::ends_well(lab, &mut writers)?;
    if gap > LONGEST_GAP {
        return Err(format!("an orderly restart kept writers waiting for {:.1} s", gap.as_secs_f64()).into());
    }
    steps::nothing_forced(lab, logs)
}
