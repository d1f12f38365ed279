//! Two Node OpenShift hands its etcd over. kubelet's static pods run it, the etcd operator's own commands create the
//! resources, and kubelet ends one static pod after the other. No write is lost, and no member is replaced.

use std::time::Duration;

use super::steps;
use crate::cluster::etcd;
use crate::cluster::pcs;
use crate::cluster::two_node_openshift;
use crate::cluster::up::Wish;
use crate::cluster::{self, ETCD_CLONE};
use crate::host;
use crate::host::node::{NODES, Node};
use crate::host::state::Lab;
use crate::judge::check::eventually;
use crate::judge::greps::{self, Found, When};
use crate::sh::{self, Result};

/// The lines of etcd's configuration that come from OpenShift's manifest.
const CONFIG: [&str; 3] =
    ["force-new-cluster: false", "listen-metrics-urls: \"https://0.0.0.0:9978\"", "quota-backend-bytes: 8589934592"];
/// The lines of etcd's configuration that come from OpenShift's manifest, and that etcd 3.4 does not know.
const CONFIG_FROM_3_5: [&str; 2] =
    ["experimental-warning-apply-duration: 200000000", "socket-options: {\"reuse-address\":true}"];

const PACEMAKERS_LOG: &str = "/var/log/pacemaker/pacemaker.log";

pub fn run(lab: &Lab, _: Wish) -> Result<()> {
    two_node_openshift::prepare(lab)?;
    two_node_openshift::start_static_pods(lab)?;
    let members = steps::members(lab)?;
    let mut writers = super::writing(lab)?;
    two_node_openshift::create_resources(lab, two_node_openshift::OPERATORS_DELAY)?;
    sh::wait_for(
        "both starts to wait for the static pods",
        Duration::from_secs(120),
        Duration::from_millis(300),
        || NODES.iter().all(|node| says(lab, *node, "waiting for kubelet's static pod")).then_some(()),
    )?;
    for node in NODES {
        two_node_openshift::end_static_pod(lab, node)?;
        sh::wait_for("the agent's etcd", Duration::from_secs(120), Duration::from_millis(200), || {
            etcd::pid(lab, node).is_some().then_some(())
        })?;
        etcd::wait_two_voters(lab, Duration::from_secs(120))?;
    }
    steps::same_members(lab, members)?;
    for node in NODES {
        check_node(lab, node)?;
    }
    looked_for(lab, When::Created, [1, 1])?;
    let logs = [pacemakers_log(lab, NODES[0])?, pacemakers_log(lab, NODES[1])?];
    pcs::run(lab, NODES[0], &["resource", "disable", ETCD_CLONE])?;
    steps::wait_stopped(lab, &NODES)?;
    looked_for(lab, When::Disabled, logs)?;
    pcs::run(lab, NODES[0], &["resource", "enable", ETCD_CLONE])?;
    etcd::wait_two_voters(lab, Duration::from_secs(120))?;
    looked_for(lab, When::Enabled, logs)?;
    super::ends_well(lab, &mut writers)
}

/// Returns the number that the next line of Pacemaker's own log will have.
fn pacemakers_log(lab: &Lab, node: Node) -> Result<usize> {
    let count = host::must(lab, node, &["sh", "-c", &format!("wc -l <{PACEMAKERS_LOG}")])?;
    Ok(count.trim().parse::<usize>()? + 1)
}

/// Runs the greps of OpenShift's tests and operators for the stage `when`, and compares the results with [`greps::LOOKS`]. `logs` has for
/// each node the number of the line at which the searched part of Pacemaker's log begins.
fn looked_for(lab: &Lab, when: When, logs: [usize; 2]) -> Result<()> {
    let mut looks = 0;
    for look in greps::LOOKS.iter().filter(|look| look.when == when) {
        for (node, from) in NODES.into_iter().zip(logs) {
            let wanted = match look.found {
                Found::Everywhere => true,
                Found::OnTheSecond => node == NODES[1],
                Found::Nowhere => false,
                Found::Differently(_) | Found::Elsewhere(_) => continue,
            };
            let command = look.command.replace("LOG", &format!("tail -n +{from} {PACEMAKERS_LOG}"));
            let is_found = || host::output(lab, node, &["sh", "-c", &command]).ok().map(|output| output.ok);
            let what =
                format!("on {node} '{command}' finds {}, as for {}", ["nothing", "it"][usize::from(wanted)], look.from);
            eventually(&what, is_found, |found| *found == Some(wanted))?;
            looks += 1;
        }
    }
    println!("   {looks} of OpenShift's own looks, {when:?}");
    Ok(())
}

fn says(lab: &Lab, node: Node, words: &str) -> bool {
    steps::said(lab, node, 0).contains(words)
}

/// Checks the node attributes, files and log lines of the agent that other programs read. The agent writes some of
/// them shortly after etcd serves.
fn check_node(lab: &Lab, node: Node) -> Result<()> {
    let attribute = |name: &str| cluster::attribute(lab, node, "forever", name);
    let address = Some(node.ip());
    eventually("node_ip is published", || attribute("node_ip"), |ip| *ip == address)?;
    let is_decimal = |id: &Option<String>| id.as_ref().is_some_and(|id| id.parse::<u64>().is_ok());
    eventually("cluster_id is published, in decimal", || attribute("cluster_id"), is_decimal)?;
    let member = Some(format!("{:x}", etcd::wait_view(lab, node)?.member));
    eventually("member_id is published, in hexadecimal", || attribute("member_id"), |id| *id == member)?;
    let config = || host::said(lab, node, &["cat", "/var/lib/etcd/config.yaml"]);
    for line in CONFIG {
        eventually(&format!("config.yaml has '{line}'"), config, |config| config.contains(line))?;
    }
    let is_known = lab.setting("etcd").as_deref() != Some("3.4");
    for line in CONFIG_FROM_3_5 {
        let what = format!("config.yaml has '{line}' where etcd knows it");
        eventually(&what, config, |config| !config.is_empty() && config.contains(line) == is_known)?;
    }
    check_container(lab, node)?;
    for words in ["active etcd resources", "a new working copy of /etc/kubernetes"] {
        eventually(&format!("the log of {node} says '{words}'"), || says(lab, node, words), |says| *says)?;
    }
    Ok(())
}

fn check_container(lab: &Lab, node: Node) -> Result<()> {
    let inspect = |format: &str| host::said(lab, node, &["podman", "inspect", "--format", format, "etcd"]);
    eventually(
        "podman shows the container as running",
        || inspect("{{.State.Running}}"),
        |said| said.trim() == "true",
    )?;
    let drop_in = format!("/run/systemd/transient/libpod-{}.scope.d/dep.conf", inspect("{{.ID}}").trim());
    let order = "Before=pacemaker.service";
    let read = || host::said(lab, node, &["cat", &drop_in]);
    eventually(&format!("{drop_in} says '{order}'"), read, |said| said.contains(order))?;
    let compare = || host::said(lab, node, &["cmp", two_node_openshift::MANIFEST, "/var/lib/etcd/pod.yaml"]);
    eventually("the manifest has a copy beside the data", compare, String::is_empty).map(drop)
}
