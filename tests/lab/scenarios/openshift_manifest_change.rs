//! The pod manifest changes. If only its version differs, the container stays; otherwise it is replaced, and the old
//! one is kept.

use super::steps;
use crate::cluster;
use crate::cluster::etcd;
use crate::cluster::two_node_openshift;
use crate::cluster::up::Wish;
use crate::host;
use crate::host::node::{NODES, Node};
use crate::host::state::Lab;
use crate::judge::check::{eventually, must};
use crate::sh::Result;

const FLAG: &str = "restart_no_leave";

pub fn run(lab: &Lab, _: Wish) -> Result<()> {
    two_node_openshift::up(lab)?;
    let mut writers = super::writing(lab)?;
    let node = NODES[1];
    let first = container(lab, node, "etcd")?;

    let revision = two_node_openshift::manifest(lab).replace("\"revision\": \"7\"", "\"revision\": \"8\"");
    host::put(lab, node, two_node_openshift::MANIFEST, &revision)?;
    two_node_openshift::restart_etcd(lab, node)?;
    must("another version alone keeps the container", container(lab, node, "etcd")?, |id| *id == first)?;

    host::put(lab, node, two_node_openshift::MANIFEST, &revision.replace("\"8589934592\"", "\"4294967296\""))?;
    two_node_openshift::restart_etcd(lab, node)?;
    must("another setting makes another container", container(lab, node, "etcd")?, |id| *id != first)?;
    must("the old one is kept as etcd-previous", container(lab, node, "etcd-previous")?, |id| *id == first)?;
    host::must(lab, node, &["grep", "-q", "quota-backend-bytes: 4294967296", "/var/lib/etcd/config.yaml"])?;
    let archive = host::must(lab, node, &["tar", "-tzf", "/var/lib/etcd/config-previous.tar.gz"])?;
    let is_whole = |files: &String| files.contains("config.yaml") && files.contains("pod.yaml");
    must("the old configuration is kept", archive, is_whole)?;

    // External tests do this: without the copy, the agent does not know the manifest of the container.
    let second = container(lab, node, "etcd")?;
    host::must(lab, node, &["rm", "/var/lib/etcd/pod.yaml"])?;
    two_node_openshift::restart_etcd(lab, node)?;
    let previous = container(lab, node, "etcd-previous")?;
    must("a copy that is gone makes another container", previous, |id| *id == second)?;
    host::must(lab, node, &["test", "-s", "/var/lib/etcd/pod.yaml"])?;

    restart_without_leaving(lab, node)?;
    super::ends_well(lab, &mut writers)
}

fn container(lab: &Lab, node: Node, name: &str) -> Result<String> {
    host::must(lab, node, &["podman", "inspect", "--format", "{{.ID}}", name])
}

/// Restarts a member as OpenShift's certificate watcher does. The member must stay listed, and the attribute `restart_no_leave` must be
/// deleted afterwards.
///
/// Chance may prevent that. A monitor of the peer may run within a second after the stop. It finds no leader, and a node that is confirmed
/// stopped, so the peer rightly runs standalone. The member is no longer listed then, and the restart is repeated.
fn restart_without_leaving(lab: &Lab, node: Node) -> Result<()> {
    let passed_over = |from: usize| steps::said(lab, node.other(), from).contains("announcing that it runs standalone");
    for _ in 0..4 {
        let from = steps::log_length(lab, node.other());
        let member = etcd::wait_view(lab, node)?.member;
        cluster::set_attribute(lab, node, node, "reboot", FLAG, node.name())?;
        two_node_openshift::restart_etcd(lab, node)?;
        // The start deletes it once etcd serves, for which the code above has waited.
        let is_set = || cluster::attribute(lab, node, "reboot", FLAG);
        eventually("restart_no_leave is taken back", is_set, Option::is_none)?;
        if !passed_over(from) {
            let now = etcd::wait_view(lab, node)?.member;
            return must("restart_no_leave keeps the member", now, |now| *now == member).map(drop);
        }
    }
    Err("the peer ran standalone in each of four restarts".into())
}
