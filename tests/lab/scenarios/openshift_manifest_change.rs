//! The pod manifest changes: where only its version differs the container stays, else it is replaced and kept.

use std::time::Duration;

use crate::etcd;
use crate::host;
use crate::node::{NODES, Node};
use crate::sh::{self, Result};
use crate::state::Lab;
use crate::two_node_openshift::{self, must};
use crate::up::Wish;

pub fn run(lab: &Lab, _: Wish) -> Result<()> {
    two_node_openshift::up(lab)?;
    let mut writers = super::writing(lab)?;
    let node = NODES[1];
    let first = container(lab, node, "etcd")?;

    let revision = two_node_openshift::manifest(lab).replace("\"revision\": \"7\"", "\"revision\": \"8\"");
    host::put(lab, node, two_node_openshift::MANIFEST, &revision)?;
    two_node_openshift::restart_etcd(lab, node)?;
    must(container(lab, node, "etcd")? == first, "another version alone keeps the container")?;

    host::put(lab, node, two_node_openshift::MANIFEST, &revision.replace("\"8589934592\"", "\"4294967296\""))?;
    two_node_openshift::restart_etcd(lab, node)?;
    must(container(lab, node, "etcd")? != first, "another setting makes another container")?;
    must(container(lab, node, "etcd-previous")? == first, "the old one is kept as etcd-previous")?;
    host::must(lab, node, &["grep", "-q", "quota-backend-bytes: 4294967296", "/var/lib/etcd/config.yaml"])?;
    let archive = host::must(lab, node, &["tar", "-tzf", "/var/lib/etcd/config-previous.tar.gz"])?;
    must(archive.contains("config.yaml") && archive.contains("pod.yaml"), "the old configuration is kept")?;

    // As external tests do it: without the copy nobody knows what the container was made from.
    let second = container(lab, node, "etcd")?;
    host::must(lab, node, &["rm", "/var/lib/etcd/pod.yaml"])?;
    two_node_openshift::restart_etcd(lab, node)?;
    must(container(lab, node, "etcd-previous")? == second, "a copy that is gone makes another container")?;
    host::must(lab, node, &["test", "-s", "/var/lib/etcd/pod.yaml"])?;

    restart_without_leaving(lab, node)?;
    super::ends_well(lab, &mut writers)
}

fn container(lab: &Lab, node: Node, name: &str) -> Result<String> {
    host::must(lab, node, &["podman", "inspect", "--format", "{{.ID}}", name])
}

/// As OpenShift's certificate watcher restarts a member: it stays listed, and the flag is taken back.
fn restart_without_leaving(lab: &Lab, node: Node) -> Result<()> {
    let member = etcd::view(lab, node)?.member;
    let name = "restart_no_leave";
    let words =
        ["crm_attribute", "--lifetime", "reboot", "--node", node.name(), "--name", name, "--update", node.name()];
    host::must(lab, node, &words)?;
    two_node_openshift::restart_etcd(lab, node)?;
    must(etcd::view(lab, node)?.member == member, "restart_no_leave keeps the member")?;
    // The start takes it back once etcd serves, which is what was waited for until here.
    sh::wait_for("restart_no_leave to be taken back", Duration::from_secs(20), Duration::from_millis(300), || {
        two_node_openshift::attribute(lab, node, "reboot", name).is_none().then_some(())
    })
}
