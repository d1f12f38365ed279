//! Both machines are slow: podman and Pacemaker's tools take many times as long as elsewhere, podman longer than an
//! agent waits on a quick machine. etcd is stopped and started there, and then one node loses power. The other one runs
//! standalone after a restart of etcd, which makes the most calls of podman, and it has already measured podman's
//! speed. The lost node returns and joins. All steps take longer, and none is abandoned.

use std::time::Duration;

use super::steps;
use crate::cluster;
use crate::cluster::etcd;
use crate::cluster::pcs;
use crate::cluster::redundant;
use crate::cluster::up::Wish;
use crate::host;
use crate::host::node::{NODES, Node};
use crate::host::state::Lab;
use crate::judge::check;
use crate::sh::Result;

/// The path of a slower podman, which every search of the path finds before the real podman.
const PODMAN: &str = "/usr/sbin/podman";
/// The directory to which the scenario moves the real Pacemaker tools.
const REAL: &str = "/usr/lib/ocf/lab";
const TOOLS: [&str; 3] = ["cibadmin", "crm_attribute", "attrd_updater"];
/// The time that each call of podman takes. It is longer than the 8 s that an agent waits for podman before its first
/// measurement.
const PODMAN_TAKES: Duration = Duration::from_secs(9);
const A_TOOL_TAKES: Duration = Duration::from_secs(1);
/// The file with the agent's measurements of podman and Pacemaker in this boot.
const MEASURED: &str = "/run/resource-agents/podman-etcd-etcd-pace.json";

const TAKES_OVER: Duration = Duration::from_secs(240);
const COMES_BACK: Duration = Duration::from_secs(420);

pub fn run(lab: &Lab, wish: Wish) -> Result<()> {
    let leader = etcd::wait_two_voters(lab, Duration::from_secs(60))?.leader;
    pcs::run(lab, leader, &["resource", "update", cluster::ETCD, "recovery=restart"])?;
    let mut writers = super::writing(lab)?;
    for node in NODES {
        slow_down(lab, node)?;
    }
    lab.event("both machines are slow");
    let survived = survives(lab, wish, leader, &writers);
    for node in NODES {
        as_it_was(lab, node)?;
    }
    survived?;
    pcs::run(lab, leader, &["resource", "update", cluster::ETCD, "recovery=standin"])?;
    super::ends_well(lab, &mut writers)
}

fn survives(lab: &Lab, wish: Wish, leader: Node, writers: &crate::load::writer::Writers) -> Result<()> {
    for node in [leader, leader.other()] {
        steps::standby(lab, node, true)?;
        steps::wait_stopped(lab, &[node])?;
        steps::standby(lab, node, false)?;
        etcd::wait_two_voters(lab, COMES_BACK)?;
        lab.event(&format!("{node} is back, slowly"));
    }
    let leader = etcd::wait_two_voters(lab, COMES_BACK)?.leader;
    redundant::wait(lab)?;
    let survivor = leader.other();
    let from = steps::log_length(lab, survivor);
    steps::cut(lab, leader)?;
    steps::wait_write(writers, TAKES_OVER)?;
    // The earlier starts measured podman, and this launch got that much time, so no podman was killed.
    check::must("no podman was killed", steps::said(lab, survivor, from), |said| !said.contains("and was killed"))?;
    let returned = steps::log_length(lab, leader);
    steps::on(lab, leader, wish.boot_delay)?;
    etcd::wait_two_voters(lab, COMES_BACK)?;
    // The first call in a boot is a probe's, for which there is no measurement.
    check::must("no podman of a probe was killed", steps::said(lab, leader, returned), |said| {
        !said.contains("probe: cannot tell")
    })?;
    let measured = host::said(lab, leader, &["cat", MEASURED]);
    let slow = format!(r#""podman":[{{"answered":{}"#, PODMAN_TAKES.as_secs());
    check::must("the node that came back knows how slow its podman is", measured, |said| said.contains(&slow)).map(drop)
}

fn slow_down(lab: &Lab, node: Node) -> Result<()> {
    put(lab, node, PODMAN, PODMAN_TAKES, "/usr/bin/podman")?;
    host::must(lab, node, &["mkdir", "-p", REAL])?;
    for tool in TOOLS {
        let (own, real) = (format!("/usr/sbin/{tool}"), format!("{REAL}/{tool}"));
        host::must(lab, node, &["mv", &own, &real])?;
        put(lab, node, &own, A_TOOL_TAKES, &real)?;
    }
    Ok(())
}

fn put(lab: &Lab, node: Node, path: &str, takes: Duration, real: &str) -> Result<()> {
    let prepared = format!("{path}-slow");
    host::put(lab, node, &prepared, &format!("#!/bin/sh\nsleep {}\nexec {real} \"$@\"\n", takes.as_secs()))?;
    host::must(lab, node, &["chmod", "755", &prepared])?;
    host::must(lab, node, &["mv", &prepared, path]).map(drop)
}

fn as_it_was(lab: &Lab, node: Node) -> Result<()> {
    if host::running(lab, node).is_none() {
        return Ok(());
    }
    host::must(lab, node, &["rm", "-f", PODMAN])?;
    for tool in TOOLS {
        host::must(lab, node, &["mv", &format!("{REAL}/{tool}"), &format!("/usr/sbin/{tool}")])?;
    }
    Ok(())
}
