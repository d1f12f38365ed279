//! Two Node OpenShift hands its etcd over: kubelet's static pods run it, the resources are created with the etcd
//! operator's own commands, and kubelet ends one static pod after the other. No write is lost, no member is replaced.

use std::time::Duration;

use crate::etcd;
use crate::host;
use crate::node::{NODES, Node};
use crate::sh::{self, Result};
use crate::state::Lab;
use crate::two_node_openshift::{self, must};
use crate::up::Wish;

pub fn run(lab: &Lab, _: Wish) -> Result<()> {
    two_node_openshift::prepare(lab)?;
    two_node_openshift::start_static_pods(lab)?;
    let members = NODES.map(|node| etcd::view(lab, node).map(|view| view.member));
    let mut writers = super::writing(lab)?;
    two_node_openshift::create_resources(lab)?;
    sh::wait_for(
        "both starts to wait for the static pods",
        Duration::from_secs(60),
        Duration::from_millis(300),
        || NODES.iter().all(|node| says(lab, *node, "waiting for kubelet's static pod")).then_some(()),
    )?;
    for node in NODES {
        two_node_openshift::end_static_pod(lab, node)?;
        sh::wait_for("the agent's etcd", Duration::from_secs(60), Duration::from_millis(200), || {
            etcd::pid(lab, node).is_some().then_some(())
        })?;
        etcd::wait_two_voters(lab, Duration::from_secs(60))?;
    }
    for (node, before) in NODES.into_iter().zip(members) {
        must(etcd::view(lab, node)?.member == before?, "the member is the one that the static pod ran")?;
        check_node(lab, node)?;
    }
    super::ends_well(lab, &mut writers)
}

fn says(lab: &Lab, node: Node, words: &str) -> bool {
    std::fs::read_to_string(lab.messages(node)).unwrap_or_default().contains(words)
}

/// What others read: attributes, files, words in the log.
fn check_node(lab: &Lab, node: Node) -> Result<()> {
    let permanent = |name: &str| two_node_openshift::attribute(lab, node, "forever", name);
    must(permanent("node_ip") == Some(node.ip()), "node_ip is published")?;
    must(permanent("cluster_id").is_some_and(|id| id.parse::<u64>().is_ok()), "cluster_id is published, in decimal")?;
    let member = format!("{:x}", etcd::view(lab, node)?.member);
    must(permanent("member_id") == Some(member), "member_id is published, in hexadecimal")?;
    let config = host::must(lab, node, &["cat", "/var/lib/etcd/config.yaml"])?;
    for line in [
        "force-new-cluster: false",
        "listen-metrics-urls: \"https://0.0.0.0:9978\"",
        "quota-backend-bytes: 8589934592",
        "experimental-warning-apply-duration: 200000000",
        "socket-options: {\"reuse-address\":true}",
    ] {
        must(config.contains(line), &format!("config.yaml has '{line}'"))?;
    }
    let id = host::must(lab, node, &["podman", "inspect", "--format", "{{.ID}}", "etcd"])?;
    let drop_in = format!("/run/systemd/transient/libpod-{}.scope.d/dep.conf", id.trim());
    host::must(lab, node, &["grep", "-q", "Before=pacemaker.service", &drop_in])?;
    host::must(lab, node, &["cmp", two_node_openshift::MANIFEST, "/var/lib/etcd/pod.yaml"])?;
    let running = host::must(lab, node, &["podman", "inspect", "--format", "{{.State.Running}}", "etcd"])?;
    must(running.trim() == "true", "podman shows the container as running")?;
    for words in ["active etcd resources", "a new working copy of /etc/kubernetes"] {
        must(says(lab, node, words), &format!("the log says '{words}'"))?;
    }
    Ok(())
}
