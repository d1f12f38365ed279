//! The two agents under administrators' tools: meta-data, validation, debugging by hand, and the tester of OCF agents.

use std::time::Duration;

use crate::cluster::etcd;
use crate::cluster::pcs;
use crate::cluster::up::Wish;
use crate::demo::Victim;
use crate::host;
use crate::host::node::{NODES, Node};
use crate::host::state::Lab;
use crate::programs::image;
use crate::sh::{self, Output, Result};

const AGENT: &str = "/usr/lib/ocf/resource.d/tandem/podman-etcd";
const RESOURCE_METADATA: &str = include_str!("../../../metadata/podman-etcd.xml");
const FENCE_METADATA: &str = include_str!("../../../metadata/fence_redfish_rs.xml");
/// The text with which Pacemaker's tools report OCF's exit code 7, a resource that is not running. From Pacemaker 3.0
/// on it begins with a capital.
const NOT_RUNNING: &str = "not running";
/// The text with which Pacemaker's tools report OCF's exit code 8, a promoted resource. They treat it as a failure,
/// but a voter of a promotable clone rightly returns it.
const PROMOTED: &str = "Error performing operation: Promoted";

pub fn run(lab: &Lab, _: Wish) -> Result<()> {
    described(lab)?;
    validated(lab)?;
    debugged(lab)?;
    tested(lab)?;
    etcd::wait_two_voters(lab, Duration::from_secs(180))?;
    nothing_asserted(lab)?;
    super::clean(lab)
}

fn described(lab: &Lab) -> Result<()> {
    for (metadata, describe, show) in [
        (RESOURCE_METADATA, ["resource", "describe", "ocf:tandem:podman-etcd"], "ocf:tandem:podman-etcd"),
        (FENCE_METADATA, ["stonith", "describe", "fence_redfish_rs"], "stonith:fence_redfish_rs"),
    ] {
        // Pacemaker generates a fence agent's meta-data anew, with additional actions of its own.
        let shown = host::must(lab, Node::One, &["crm_resource", "--show-metadata", show])?;
        if names(&shown)? != names(metadata)? {
            return Err(format!("'crm_resource --show-metadata {show}' differs from metadata/: {shown}").into());
        }
        let mut words = vec!["pcs"];
        words.extend(describe);
        let text = host::must(lab, Node::One, &words)?;
        let names = names(metadata)?;
        // pcs leaves out options that make no sense in a cluster.
        let provided = ["action", "help", "version"];
        let missing: Vec<&String> =
            names.iter().filter(|name| !provided.contains(&name.as_str()) && !text.contains(*name)).collect();
        if !missing.is_empty() || names.len() < 10 {
            return Err(format!("'pcs {}' leaves out {missing:?}: {text}", describe.join(" ")).into());
        }
        println!("   pcs {}: {} parameters", describe.join(" "), names.len());
    }
    Ok(())
}

/// Returns the parameters in an agent's meta-data, except those with deprecated names.
fn names(metadata: &str) -> Result<Vec<String>> {
    let options = roxmltree::ParsingOptions { allow_dtd: true, ..Default::default() };
    let document = roxmltree::Document::parse_with_options(metadata, options)?;
    let parameters = document
        .descendants()
        .filter(|element| element.has_tag_name("parameter") && element.attribute("deprecated").is_none());
    Ok(parameters.filter_map(|element| element.attribute("name")).map(str::to_owned).collect())
}

/// Returns parameters for the etcd agent that fit a host, with `map` as the map of one or both nodes.
fn parameters(lab: &Lab, map: &str) -> Vec<String> {
    vec![
        format!("node_ip_map={map}"),
        format!("image={}", image::name(&lab.setting("etcd").unwrap_or_default())),
        "trusted_ca_file=/etc/tandem/ca.crt".to_owned(),
        "cert_file=/etc/tandem/etcd.crt".to_owned(),
        "key_file=/etc/tandem/etcd.key".to_owned(),
        "oom=0".to_owned(),
    ]
}

fn validated(lab: &Lab) -> Result<()> {
    let map = NODES.map(|node| format!("{node}:{}", node.ip())).join(";");
    let right = crm_resource_validate(lab, &parameters(lab, &map))?;
    if !right.ok {
        return Err(format!("crm_resource --validate does not like what is right: {}", right.text()).into());
    }
    let wrong = crm_resource_validate(lab, &parameters(lab, "node1"))?;
    if wrong.ok || !wrong.text().contains("is not 'name:address'") {
        return Err(format!("crm_resource --validate lets a wrong node_ip_map pass: {}", wrong.text()).into());
    }
    println!("   crm_resource --validate: right and wrong are told apart");
    Ok(())
}

fn crm_resource_validate(lab: &Lab, parameters: &[String]) -> Result<Output> {
    let mut words = vec!["crm_resource", "--validate", "--class=ocf", "--provider=tandem", "--agent=podman-etcd"];
    for parameter in parameters {
        words.extend(["--option", parameter]);
    }
    host::output(lab, Node::One, &words)
}

/// Calls the agent by `pcs resource debug-...` on the follower, with the resource unmanaged. Stops etcd, checks that it is stopped, starts
/// it, and checks that it runs. Pacemaker's recurring monitors are not disabled, because they list and promote the learner.
fn debugged(lab: &Lab) -> Result<()> {
    let node = Victim::Follower.node(etcd::wait_two_voters(lab, Duration::from_secs(60))?.leader);
    pcs::run(lab, node, &["resource", "unmanage", "etcd"])?;
    debug(lab, node, "debug-monitor")?;
    debug(lab, node, "debug-stop")?;
    let stopped = host::output(lab, node, &["pcs", "resource", "debug-monitor", "etcd"])?;
    if stopped.ok || !stopped.text().to_lowercase().contains(NOT_RUNNING) {
        return Err(format!("debug-monitor of a stopped etcd should say '{NOT_RUNNING}': {}", stopped.text()).into());
    }
    debug(lab, node, "debug-start")?;
    debug(lab, node, "debug-monitor")?;
    etcd::wait_two_voters(lab, Duration::from_secs(120))?;
    pcs::run(lab, node, &["resource", "manage", "etcd"])?;
    pcs::run(lab, node, &["resource", "cleanup", "etcd"])?;
    println!("   pcs resource debug-stop, debug-monitor and debug-start on {node}");
    etcd::wait_two_voters(lab, Duration::from_secs(120)).map(drop)
}

fn debug(lab: &Lab, node: Node, verb: &str) -> Result<()> {
    let said = host::output(lab, node, &["pcs", "resource", verb, "etcd"])?;
    if said.ok || said.text().contains(PROMOTED) {
        return Ok(());
    }
    Err(format!("'pcs resource {verb} etcd' on {node}: {}", said.text()).into())
}

/// Checks that Pacemaker has logged no failed assertion about the agents' meta-data, which it reads before the first
/// start.
fn nothing_asserted(lab: &Lab) -> Result<()> {
    for log in NODES.map(|node| lab.disk(node, "var-log").join("pacemaker/pacemaker.log")) {
        let text = String::from_utf8_lossy(&std::fs::read(&log)?).into_owned();
        let line = text.lines().find(|line| line.contains("assertion"));
        line.map_or(Ok(()), |line| Err(format!("{}: {line}", log.display())))?;
    }
    println!("   no assertion of Pacemaker has failed");
    Ok(())
}

/// Runs Pacemaker's tester of OCF agents on an etcd of its own, while the cluster's etcd is disabled.
fn tested(lab: &Lab) -> Result<()> {
    pcs::run_and_wait(lab, Node::One, &["resource", "disable", "etcd"])?;
    // The agent refuses an empty data dir if a cluster is recorded, and data without the recorded forks. So the records
    // are deleted first.
    for (node, name) in NODES.iter().flat_map(|node| [(node, "cluster_id"), (node, "etcd_lineage")]) {
        // A node that never forked has recorded none.
        host::output(lab, Node::One, &["crm_attribute", "--node", node.name(), "--name", name, "--delete"])?;
    }
    let mut options = parameters(lab, &format!("{}:{}", Node::One, Node::One.ip()));
    options.push("name=etcd-tester".to_owned());
    options.push("data_dir=/var/lib/etcd-tester".to_owned());
    sh::make_dir(&lab.disk(Node::One, "var-lib").join("etcd-tester"))?;
    let mut words = vec!["ocf-tester", "-n", "tester"];
    for option in &options {
        words.extend(["-o", option]);
    }
    words.push(AGENT);
    let said = host::output(lab, Node::One, &words)?;
    if !said.ok || !said.stdout.contains("passed all tests") {
        return Err(format!("ocf-tester: {}", said.text()).into());
    }
    println!("   ocf-tester: {}", said.stdout.lines().last().unwrap_or_default());
    pcs::run(lab, Node::One, &["resource", "enable", "etcd"])
}
