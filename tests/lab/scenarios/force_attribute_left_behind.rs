//! `force_new_cluster` on a node declares that this node's data counts. If it was left over, two voters delete it. If
//! the peer is known to have run standalone without this node's data, the attribute is not enough: an operator must
//! give up the peer's writes by name.

use std::time::Duration;

use super::left_behind::{LEFT, PEER};
use super::steps;
use crate::cluster;
use crate::cluster::pcs;
use crate::cluster::up::{self, Wish};
use crate::host;
use crate::host::node::{NODES, Node};
use crate::host::state::Lab;
use crate::judge::check::{eventually, within};
use crate::sh::Result;

const FORCE: &str = "force_new_cluster";
/// The time of several monitors, which run every five seconds.
const A_FEW_MONITORS: Duration = Duration::from_secs(30);
/// The command that the exit reason of the refused start names.
const WAY_OUT: &str = "confirm-recovery";

/// Sets the attribute `force_new_cluster` while both members vote. A voter of two must delete it.
pub fn taken_back(lab: &Lab, _: Wish) -> Result<()> {
    let mut writers = super::writing(lab)?;
    let logs = NODES.map(|node| steps::log_length(lab, node));
    let members = steps::members(lab)?;
    for node in NODES {
        set(lab, node)?;
        let value = || cluster::attribute(lab, node, "reboot", FORCE);
        let taken = within(A_FEW_MONITORS, &format!("{FORCE} of {node} is taken back"), value, Option::is_none);
        if taken.is_err() {
            // The next scenario must not find the attribute.
            let words = ["crm_attribute", "--lifetime", "reboot", "--node", node.name(), "--name", FORCE, "--delete"];
            host::must(lab, node, &words)?;
        }
        taken?;
    }
    super::ends_well(lab, &mut writers)?;
    steps::same_members(lab, members)?;
    steps::nothing_forced(lab, logs)
}

/// Sets `force_new_cluster` on a node without its peer. The node knows from the CIB that it was left behind, so it
/// must refuse to start. The common ending (`super::ends_well`) checks that no write of the peer is lost.
pub fn not_enough(lab: &Lab, wish: Wish) -> Result<()> {
    let mut writers = super::writing(lab)?;
    lab.set("boot-delay", "3600")?;
    steps::cut(lab, LEFT)?;
    steps::wait_write(&writers, Duration::from_secs(120))?;
    // The node joins Pacemaker, and its etcd stays stopped.
    pcs::run(lab, PEER, &["node", "standby", LEFT.name()])?;
    steps::on(lab, LEFT, 3600)?;
    up::wait_online(lab)?;
    set(lab, LEFT)?;
    steps::cut(lab, PEER)?;
    let cut_at = writers.now();
    steps::wait_peer_gone(lab, LEFT)?;
    let refused = refuses(lab);
    let wrote = steps::who_wrote(&writers, cut_at);
    steps::on(lab, PEER, wish.boot_delay)?;
    super::ends_well(lab, &mut writers)?;
    refused?;
    if wrote.is_empty() { Ok(()) } else { Err(format!("{LEFT} took writes although it was left behind").into()) }
}

fn set(lab: &Lab, node: Node) -> Result<()> {
    cluster::set_attribute(lab, node, node, "reboot", FORCE, "true")?;
    lab.event(&format!("{FORCE} is set on {node}"));
    Ok(())
}

/// Checks that the node refuses to start etcd, although its peer is fenced and `force_new_cluster` is set.
fn refuses(lab: &Lab) -> Result<()> {
    // The line also shows that the peer is not UNCLEAN.
    let words = format!("Node {PEER}: OFFLINE");
    let shown = || cluster::crm_mon(lab, LEFT).unwrap_or_default();
    eventually("the peer is fenced", shown, |said| said.contains(&words))?;
    steps::standby(lab, LEFT, false)?;
    let told = |failure: &cluster::Failure| failure.action == "etcd_start_0" && failure.reason.contains(WAY_OUT);
    let refusal = steps::wait_failure(lab, LEFT, &format!("a start that is refused with '{WAY_OUT}'"), told)?;
    println!("   {refusal}");
    steps::stays_inert(lab, LEFT, 5)
}
