//! Certificates are rotated as OpenShift's watcher does it. The watcher restarts the container while `restart_no_leave`
//! is set on the node, and no agent is involved. It happens on one node, on both at once, on one that runs standalone,
//! and while a learner is about to vote.

use std::time::Duration;

use super::steps;
use crate::cluster::etcd;
use crate::cluster::up::Wish;
use crate::cluster::{self, ETCD};
use crate::host;
use crate::host::node::{NODES, Node};
use crate::host::state::Lab;
use crate::judge::check::{eventually, must};
use crate::load::writer::Writers;
use crate::sh::{self, Result};

const FLAG: &str = "restart_no_leave";
/// The file in which the agent records the process of the etcd that it manages.
const MARK: &str = "/run/resource-agents/podman-etcd-etcd-process.json";
/// The time for which OpenShift's certificate watcher waits until a restarted etcd is healthy.
const HEALTHY_AGAIN: Duration = Duration::from_secs(300);

pub fn run(lab: &Lab, _: Wish) -> Result<()> {
    let node = etcd::wait_two_voters(lab, Duration::from_secs(60))?.leader;
    let members = steps::members(lab)?;
    let logs = NODES.map(|node| steps::log_length(lab, node));
    let booted = steps::boots(lab);
    let mut writers = super::writing(lab)?;
    rotated(lab, &writers, "on the leader", &[node])?;
    rotated(lab, &writers, "on the follower", &[node.other()])?;
    rotated(lab, &writers, "on both at once", &NODES)?;
    steps::same_members(lab, members)?;
    steps::nothing_forced(lab, logs)?;

    steps::standby(lab, node.other(), true)?;
    steps::wait_alone(lab, node)?;
    steps::wait_stopped(lab, &[node.other()])?;
    rotate(lab, "on the only voter", &[node])?;
    steps::wait_alone(lab, node)?;
    steps::wait_write(&writers, Duration::from_secs(60))?;
    is_known(lab, node)?;

    during_the_promotion(lab, &writers, node, node.other())?;
    steps::standby(lab, node.other(), true)?;
    steps::wait_alone(lab, node)?;
    steps::wait_stopped(lab, &[node.other()])?;
    during_the_promotion(lab, &writers, node, node)?;
    super::ends_well(lab, &mut writers)?;
    steps::nobody_was_fenced(lab, booted)
}

/// Rotates the certificates on the nodes `on`. Both members must vote before and after.
fn rotated(lab: &Lab, writers: &Writers, how: &str, on: &[Node]) -> Result<()> {
    rotate(lab, how, on)?;
    settles(lab, writers)
}

/// Rotates the certificates on the node `on` while one node joins. `voter` runs standalone first, and the rotation
/// begins as soon as the other node is a learner.
fn during_the_promotion(lab: &Lab, writers: &Writers, voter: Node, on: Node) -> Result<()> {
    let learner = voter.other();
    steps::standby(lab, learner, false)?;
    sh::wait_for("a learner", Duration::from_secs(60), Duration::from_millis(10), || {
        etcd::view(lab, learner).is_ok_and(|view| view.learner).then_some(())
    })?;
    rotate(lab, &format!("on {on}, while {learner} is promoted"), &[on])?;
    settles(lab, writers)
}

/// Waits for two voters and a write. The agent of each node must have recorded the process of its etcd.
fn settles(lab: &Lab, writers: &Writers) -> Result<()> {
    etcd::wait_two_voters(lab, Duration::from_secs(120))?;
    steps::wait_write(writers, Duration::from_secs(30))?;
    NODES.into_iter().try_for_each(|node| is_known(lab, node))
}

/// Rotates the certificates on the nodes `on` at the same time, as OpenShift's certificate watcher does.
fn rotate(lab: &Lab, how: &str, on: &[Node]) -> Result<()> {
    lab.event(&format!("the certificates are rotated {how}"));
    println!("   {how}");
    std::thread::scope(|scope| {
        let nodes: Vec<_> = on.iter().map(|node| scope.spawn(move || rotate_one(lab, *node))).collect();
        nodes.into_iter().try_for_each(|node| node.join().map_err(|_| "a rotation panicked")?)
    })
}

fn rotate_one(lab: &Lab, node: Node) -> Result<()> {
    cluster::set_attribute(lab, node, node, "reboot", FLAG, "true")?;
    // Pacemaker may restart it at the same moment.
    let restarted = host::output(lab, node, &["podman", "restart", ETCD])?;
    if !restarted.ok {
        println!("   podman on {node}: {}", restarted.text().trim());
    }
    let healthy =
        sh::wait_for(&format!("the etcd of {node} to answer"), HEALTHY_AGAIN, Duration::from_millis(300), || {
            etcd::view(lab, node).ok().map(drop)
        });
    let infinite = cluster::crm_mon(lab, node)?.contains("fail-count=1000000");
    let taken_back = ["crm_attribute", "--lifetime", "reboot", "--node", node.name(), "--name", FLAG, "--delete"];
    host::must(lab, node, &taken_back)?;
    healthy?;
    must(&format!("no failure of {node} counts for ever"), infinite, |infinite| !infinite).map(drop)
}

/// Waits until the agent of `node` has recorded the process of its running etcd.
fn is_known(lab: &Lab, node: Node) -> Result<()> {
    let known = || (etcd::pid(lab, node), host::must(lab, node, &["cat", MARK]).unwrap_or_default());
    let fits = |(pid, mark): &(Option<String>, String)| {
        let recorded = serde_json::from_str::<serde_json::Value>(mark).ok();
        let recorded = recorded.and_then(|mark| mark.get("pid")?.as_i64()).map(|pid| pid.to_string());
        pid.is_some() && *pid == recorded
    };
    eventually(&format!("the agent of {node} knows the process that runs"), known, fits).map(drop)
}
