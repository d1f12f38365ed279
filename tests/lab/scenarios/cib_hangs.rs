//! The CIB does not answer on one node while etcd is to stop there: the stop ends within its time all the same, and the
//! node is not fenced for it.

use std::time::{Duration, Instant};

use super::steps;
use crate::cluster;
use crate::etcd;
use crate::host;
use crate::node::{NODES, Node};
use crate::sh::Result;
use crate::state::Lab;
use crate::up::Wish;

/// The time that the agent's meta-data ask for a stop, and for the notifications around it.
const STOP_TAKES: Duration = Duration::from_secs(90);

pub fn run(lab: &Lab, _: Wish) -> Result<()> {
    let node = not_the_scheduler(lab)?;
    let booted = host::running(lab, node).map(|init| init.pid);
    let mut writers = super::writing(lab)?;
    let cib = host::must(lab, node, &["pidof", "pacemaker-based"])?.trim().to_owned();
    host::must(lab, node, &["kill", "-STOP", &cib])?;
    lab.event(&format!("the CIB on {node} hangs"));
    if host::output(lab, node, &["timeout", "2", "cibadmin", "--query"])?.ok {
        return Err(format!("the CIB on {node} answers").into());
    }
    let stopped = cluster::pcs(lab, node.other(), &["node", "standby", node.name()]).and_then(|()| stops(lab, node));
    // Pacemaker may have replaced it by now.
    let _ = host::output(lab, node, &["kill", "-CONT", &cib]);
    lab.event(&format!("the CIB on {node} answers again"));
    stopped?;
    if host::running(lab, node).map(|init| init.pid) != booted {
        return Err(format!("{node} was fenced: its stop did not end in time").into());
    }
    steps::wait_pacemaker(lab, node)?;
    cluster::pcs(lab, node.other(), &["node", "unstandby", node.name()])?;
    super::ends_well(lab, &mut writers)
}

/// The node whose Pacemaker takes orders and gives none: it needs no CIB of its own to begin an action.
fn not_the_scheduler(lab: &Lab) -> Result<Node> {
    let told = host::must(lab, NODES[0], &["crmadmin", "--dc_lookup"])?;
    let node = NODES.into_iter().find(|node| !told.contains(node.name()));
    node.ok_or_else(|| format!("nobody takes orders: {told}").into())
}

/// The agent answers its stop, and etcd is gone.
fn stops(lab: &Lab, node: Node) -> Result<()> {
    let (from, began) = (steps::log_length(lab, node), Instant::now());
    steps::wait_said(lab, node, from, "Result of stop operation for etcd", STOP_TAKES)?;
    println!("   the stop ended after {:.1} s", began.elapsed().as_secs_f64());
    if etcd::pid(lab, node).is_some() {
        return Err(format!("the stop of {node} was answered, and its etcd runs").into());
    }
    Ok(())
}
