//! The peer's etcd is black-holed: its packets are dropped, not refused, while Pacemaker reports both nodes as healthy.
//! Queries of it time out. Monitor and start still end within their time-outs, no node is fenced, and no agent forces.

use std::time::Duration;

use super::steps;
use crate::cluster;
use crate::cluster::etcd;
use crate::cluster::pcs;
use crate::cluster::up::Wish;
use crate::host;
use crate::host::node::{NODES, Node};
use crate::host::state::Lab;
use crate::judge::check::must;
use crate::sh::{self, Result};

/// The time in which Pacemaker would detect a hanging monitor. Monitors run every 5 s, with a time-out of 25 s.
const BLACK_HOLED: Duration = Duration::from_secs(35);
/// The text with which Pacemaker reports an action that timed out.
const TIMED_OUT: &str = "Timed Out";

pub fn run(lab: &Lab, _: Wish) -> Result<()> {
    let node = etcd::wait_two_voters(lab, Duration::from_secs(60))?.leader;
    let booted = steps::boots(lab);
    let members = steps::members(lab)?;
    let logs = NODES.map(|node| steps::log_length(lab, node));
    let mut writers = super::writing(lab)?;
    drop_packets(lab, true)?;
    lab.event("etcd's packets between the hosts are dropped");
    let within = within_their_times(lab, node);
    drop_packets(lab, false)?;
    lab.event("they pass again");
    within?;
    steps::nobody_was_fenced(lab, booted)?;
    steps::nothing_forced(lab, logs)?;
    etcd::wait_two_voters(lab, Duration::from_secs(120))?;
    steps::same_members(lab, members)?;
    pcs::run(lab, node, &["resource", "cleanup", cluster::ETCD])?;
    super::ends_well(lab, &mut writers)
}

/// Drops etcd's packets between the hosts if `on` is true, including those to the other host's client port. Otherwise
/// lets them pass again.
pub(super) fn drop_packets(lab: &Lab, on: bool) -> Result<()> {
    let verb = if on { "--insert" } else { "--delete" };
    NODES.into_iter().try_for_each(|node| {
        let peer = node.other().ip();
        let rule = ["--source", &peer, "--protocol", "tcp", "--dport", "2379:2380", "--jump", "DROP"];
        host::must(lab, node, &[&["iptables", verb, "INPUT"][..], &rule].concat()).map(drop)
    })
}

/// Checks that no action of the agent times out while etcd's packets are dropped: several monitors on both nodes, and
/// a start on `node`.
fn within_their_times(lab: &Lab, node: Node) -> Result<()> {
    std::thread::sleep(BLACK_HOLED);
    let from = steps::log_length(lab, node);
    etcd::kill(lab, node)?;
    sh::wait_for("etcd to be started again", Duration::from_secs(120), Duration::from_millis(300), || {
        let started = steps::said(lab, node, from).contains("Result of start operation for etcd");
        (started && etcd::pid(lab, node).is_some()).then_some(())
    })?;
    // The result of the start is in the log before it is in the CIB.
    must("the start ends within its time", steps::said(lab, node, from), |said| !said.contains(TIMED_OUT))?;
    must("every action ends within its time", cluster::crm_mon(lab, node)?, |shown| !shown.contains(TIMED_OUT))
        .map(drop)
}
