//! Attributes of another time or another agent, or left by hand. None of them makes an agent force, wipe or refuse, and
//! the agents correct their own.

use std::time::Duration;

use crate::cluster::pcs;
use crate::cluster::up::Wish;
use crate::cluster::{self, ETCD_CLONE};
use crate::host;
use crate::host::node::NODES;
use crate::host::state::Lab;
use crate::scenarios::steps;
use crate::sh::{self, Result};

/// The cluster properties that the scenario sets to wrong values, each as name and value.
const PROPERTIES: &[(&str, &str)] =
    &[("standalone_node", "node2"), ("learner_node", "node1"), ("etcd_primary", "node7")];
/// The node attributes that the scenario sets to wrong values, each as name, value and lifetime.
const ATTRIBUTES: &[(&str, &str, &str)] = &[
    ("force_new_cluster", "rubbish", "reboot"),
    ("restart_no_leave", "1", "reboot"),
    ("etcd_record", "{", "reboot"),
    ("member_removal_lock", "1700000000", "forever"),
    ("revision", "999999999", "forever"),
    ("cluster_id", "rubbish", "forever"),
    ("member_id", "0", "forever"),
    ("etcd_lineage", "many:node1", "forever"),
];

pub fn run(lab: &Lab, _: Wish) -> Result<()> {
    let before = steps::members(lab)?;
    let logs = NODES.map(|node| steps::log_length(lab, node));
    let mut writers = crate::scenarios::writing(lab)?;
    pcs::run(lab, NODES[0], &["resource", "disable", ETCD_CLONE])?;
    steps::wait_stopped(lab, &NODES)?;
    leave(lab)?;
    pcs::run(lab, NODES[0], &["resource", "enable", ETCD_CLONE])?;
    crate::scenarios::ends_well(lab, &mut writers)?;
    steps::same_members(lab, before)?;
    steps::nothing_forced(lab, logs)?;
    put_right(lab)?;
    for (name, _, lifetime) in
        ATTRIBUTES.iter().filter(|(name, ..)| !name.starts_with("etcd_") && !name.ends_with("_id"))
    {
        for node in NODES {
            host::must(
                lab,
                node,
                &["crm_attribute", "--node", node.name(), "--lifetime", lifetime, "--name", name, "--delete"],
            )?;
        }
    }
    Ok(())
}

fn leave(lab: &Lab) -> Result<()> {
    for (name, value) in PROPERTIES {
        host::must(lab, NODES[0], &["crm_attribute", "--type", "crm_config", "--name", name, "--update", value])?;
    }
    for (name, value, lifetime) in ATTRIBUTES {
        for node in NODES {
            cluster::set_attribute(lab, NODES[0], node, lifetime, name, value)?;
        }
    }
    lab.event("attributes of another time are left");
    Ok(())
}

/// Waits until the agents delete the cluster properties in [`PROPERTIES`], at the latest in their next monitors. The properties are wrong
/// for two voters: no node is standalone or a learner, and no choice is pending.
fn put_right(lab: &Lab) -> Result<()> {
    let query = |name: &str| {
        let words = ["crm_attribute", "--type", "crm_config", "--name", name, "--query", "--quiet"];
        host::must(lab, NODES[0], &words).ok().map(|value| value.trim().to_owned())
    };
    for (name, _) in PROPERTIES {
        let what = format!("{name} to be taken back");
        sh::wait_for(&what, Duration::from_secs(75), Duration::from_millis(500), || {
            query(name).is_none_or(|value| value.is_empty()).then_some(())
        })?;
    }
    Ok(())
}
