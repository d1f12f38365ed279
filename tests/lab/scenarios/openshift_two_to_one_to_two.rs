//! Two nodes become one, and two again. A node is removed from the cluster and from `node_ip_map`, and etcd runs
//! standalone as a cluster of one node, which also survives a crash. Then a node of the same name returns.

use std::time::Duration;

use super::steps;
use crate::cluster;
use crate::cluster::etcd;
use crate::cluster::pcs;
use crate::cluster::two_node_openshift;
use crate::cluster::up::Wish;
use crate::host;
use crate::host::node::{NODES, Node};
use crate::host::power;
use crate::host::state::Lab;
use crate::judge::check::{eventually, must};
use crate::load::writer::Writers;
use crate::sh::{self, Result};

const LIMIT: Duration = Duration::from_secs(120);

pub fn run(lab: &Lab, _: Wish) -> Result<()> {
    two_node_openshift::up(lab)?;
    let [stays, goes] = NODES;
    let mut writers = super::writing(lab)?;
    take_out(lab, stays, goes)?;
    map(lab, stays, &[stays])?;
    alone(lab, &writers, stays)?;
    etcd::kill(lab, stays)?;
    lab.event("the only etcd is killed");
    alone(lab, &writers, stays)?;
    map(lab, stays, &NODES)?;
    power::on(lab, goes)?;
    etcd::wait_two_voters(lab, Duration::from_secs(180))?;
    super::ends_well(lab, &mut writers)
}

/// Shuts a node down in good order. Then removes it from Pacemaker as `pcs cluster node remove` does, but without
/// pcsd.
fn take_out(lab: &Lab, stays: Node, goes: Node) -> Result<()> {
    steps::standby(lab, goes, true)?;
    steps::wait_alone(lab, stays)?;
    for service in ["pacemakerd", "corosync"] {
        host::must(lab, goes, &["sh", "-c", &format!("kill $(pidof {service})")])?;
        let what = format!("{service} on {goes} to end");
        sh::wait_for(&what, LIMIT, Duration::from_millis(300), || {
            host::must(lab, goes, &["pidof", service]).is_err().then_some(())
        })?;
    }
    power::cut(lab, goes)?;
    sh::wait_for("Pacemaker to see it leave", LIMIT, Duration::from_millis(300), || {
        (!cluster::online(lab, stays).contains(&goes)).then_some(())
    })?;
    host::must(lab, stays, &["crm_node", "--force", "--remove", goes.name()]).map(drop)
}

/// Sets the map of nodes with the command of OpenShift's etcd operator. Only the peer's entry is added or removed, so
/// etcd must keep running.
fn map(lab: &Lab, by: Node, nodes: &[Node]) -> Result<()> {
    let entries: Vec<String> = nodes.iter().map(|node| format!("{node}:{}", node.ip())).collect();
    let map = format!("node_ip_map={}", entries.join(";"));
    lab.event(&map);
    let before = etcd::pid(lab, by);
    pcs::run_and_wait(lab, by, &["resource", "update", cluster::ETCD, &map])?;
    must("a node that serves runs on", etcd::pid(lab, by), |pid| pid.is_some() && *pid == before).map(drop)
}

/// Checks that `node` is the only voter, that no other member is listed, and that it takes a write.
fn alone(lab: &Lab, writers: &Writers, node: Node) -> Result<()> {
    steps::wait_write(writers, LIMIT)?;
    steps::wait_alone(lab, node)?;
    // The clone needs an instance on each existing node: this one, and it runs.
    let locate = || host::said(lab, node, &["crm_resource", "--resource", cluster::ETCD, "--locate"]);
    eventually("Pacemaker has it running", locate, |said| said.contains(node.name())).map(drop)
}
