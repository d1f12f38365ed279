//! A node is replaced by a new machine of the same name, as the etcd operator does it. An attribute and a new map make
//! the survivor run standalone, and the operator relies on a restart by the map. Then the new machine comes with blank
//! disks. A survivor that serves keeps running and deletes the attribute; one without a leader is restarted.

use super::steps;
use crate::cluster;
use crate::cluster::etcd;
use crate::cluster::pcs;
use crate::cluster::two_node_openshift;
use crate::cluster::up::Wish;
use crate::host;
use crate::host::node::{NODES, Node};
use crate::host::state::Lab;
use crate::judge::check::{eventually, must};
use crate::sh::Result;

pub fn run(lab: &Lab, _: Wish) -> Result<()> {
    two_node_openshift::up(lab)?;
    let mut writers = super::writing(lab)?;
    let [survivor, replaced] = NODES;
    pcs::run(lab, survivor, &["node", "standby", replaced.name()])?;
    steps::wait_stopped(lab, &[replaced])?;
    let script = "rm -rf /var/lib/etcd/* /var/lib/tandem /run/resource-agents/* && podman rm --all --force";
    host::must(lab, replaced, &["sh", "-c", script])?;
    // The old node's attributes in the CIB must not be trusted.
    for (name, value) in [("revision", "999999"), ("member_removal_lock", "1")] {
        permanent(lab, replaced, name, value)?;
    }
    give_up_the_old_node(lab, survivor)?;
    pcs::run(lab, survivor, &["node", "unstandby", replaced.name()])?;
    super::ends_well(lab, &mut writers)?;
    let lock = || cluster::attribute(lab, replaced, "forever", "member_removal_lock");
    eventually("the old node's lock is taken back by the new one", lock, Option::is_none).map(drop)
}

fn permanent(lab: &Lab, node: Node, name: &str, value: &str) -> Result<()> {
    cluster::set_attribute(lab, NODES[0], node, "forever", name, value)
}

/// Runs the commands by which OpenShift's etcd operator lets the survivor run without the other node. The space in the
/// node map makes it differ from the present map, as a new node's address would. The survivor's etcd must keep running.
pub(super) fn give_up_the_old_node(lab: &Lab, survivor: Node) -> Result<()> {
    let before = etcd::pid(lab, survivor);
    let name = "force_new_cluster";
    let words = ["crm_attribute", "--lifetime", "reboot", "--node", survivor.name(), "--name", name, "--update"];
    host::must(lab, survivor, &[&words[..], &[survivor.name()]].concat())?;
    let map = NODES.map(|node| format!("{node}:{}", node.ip())).join("; ");
    pcs::run_and_wait(lab, survivor, &["resource", "update", "etcd", &format!("node_ip_map={map}")])?;
    let flag = || cluster::attribute(lab, survivor, "reboot", name);
    eventually("force_new_cluster is taken back", flag, Option::is_none)?;
    steps::wait_alone(lab, survivor)?;
    must("a survivor that serves runs on", etcd::pid(lab, survivor), |pid| *pid == before).map(drop)
}
