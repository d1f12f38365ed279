//! The conditions that OpenShift's etcd operator keeps: of the cluster, of each node, of the resources on it, and of the devices that
//! fence it. The rules are pure. [`pacemaker_cluster`](super::pacemaker_cluster) makes its object of their results.
//!
//! A condition is true, false or unknown. One that could not be asked is never true.

mod addresses;
mod fencing;
mod resources;
pub mod words;

use std::net::IpAddr;

use serde::Serialize;

use self::words::{CLUSTER, NODE, Word};
use crate::adapters::pacemaker::seen::Node;
use crate::base::Fact;
use crate::operate::cluster::Cluster;

/// Number of nodes of a healthy cluster.
const EXPECTED_NODES: usize = 2;

/// The status of a condition, as Kubernetes defines it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Status {
    True,
    False,
    Unknown,
}

impl Status {
    /// Returns true if all `parts` are true, false if one is false, and else unknown.
    fn all(parts: impl IntoIterator<Item = Self>) -> Self {
        parts.into_iter().fold(Self::True, |so_far, part| match (so_far, part) {
            (Self::False, _) | (_, Self::False) => Self::False,
            (Self::Unknown, _) | (_, Self::Unknown) => Self::Unknown,
            (Self::True, Self::True) => Self::True,
        })
    }

    /// Returns true if one of `parts` is true, false if all are false, and else unknown.
    fn any(parts: impl IntoIterator<Item = Self>) -> Self {
        parts.into_iter().fold(Self::False, |so_far, part| match (so_far, part) {
            (Self::True, _) | (_, Self::True) => Self::True,
            (Self::Unknown, _) | (_, Self::Unknown) => Self::Unknown,
            (Self::False, Self::False) => Self::False,
        })
    }

    /// Returns the status as a boolean, for a metric; `None` if it is unknown.
    pub fn value(self) -> Option<bool> {
        match self {
            Self::True => Some(true),
            Self::False => Some(false),
            Self::Unknown => None,
        }
    }
}

impl From<bool> for Status {
    fn from(is_so: bool) -> Self {
        if is_so { Self::True } else { Self::False }
    }
}

/// A condition of the cluster, a node, a resource or a fence device, as OpenShift's `PacemakerCluster` has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Condition {
    #[serde(rename = "type")]
    pub kind: &'static str,
    pub status: Status,
    pub reason: &'static str,
    /// The parts that keep the condition from being true; empty if it is true, or has no parts.
    pub message: String,
}

impl Condition {
    fn new(word: &Word, status: Status) -> Self {
        Self { kind: word.kind, status, reason: word.reason(status), message: String::new() }
    }
}

/// Returns the status of the condition called `kind`, or unknown if `conditions` lacks it.
pub fn status(conditions: &[Condition], kind: &str) -> Status {
    conditions.iter().find(|condition| condition.kind == kind).map_or(Status::Unknown, |condition| condition.status)
}

/// The conditions of the cluster and of all its parts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Conditions {
    pub cluster: Vec<Condition>,
    /// The conditions of each node, sorted by the node's name.
    pub nodes: Vec<NodeConditions>,
}

/// The conditions of a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NodeConditions {
    pub name: String,
    /// The node's addresses. The first one is the address that etcd uses.
    pub addresses: Vec<IpAddr>,
    pub conditions: Vec<Condition>,
    /// The conditions of the kubelet and of etcd on the node.
    pub resources: Vec<ResourceConditions>,
    /// The conditions of the devices that fence the node.
    pub fencing: Vec<DeviceConditions>,
}

/// The conditions of a resource on a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ResourceConditions {
    /// The resource: `Kubelet` or `Etcd`.
    pub name: &'static str,
    pub conditions: Vec<Condition>,
    pub fail_count: Option<u64>,
    pub migration_threshold: Option<u64>,
    pub last_start: Option<u64>,
    pub last_stop: Option<u64>,
    pub last_failure: Option<u64>,
}

/// The conditions of a fence device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DeviceConditions {
    pub name: String,
    /// The protocol of the device; `None` if it is neither Redfish nor IPMI.
    pub method: Option<Method>,
    pub conditions: Vec<Condition>,
}

/// The protocol of a fence device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Method {
    Redfish,
    #[serde(rename = "IPMI")]
    Ipmi,
}

/// Returns the conditions of `cluster` and of its nodes, resources and fence devices.
pub fn of(cluster: &Cluster) -> Conditions {
    let names = names(cluster);
    let nodes: Vec<NodeConditions> = names.iter().flatten().map(|name| of_node(cluster, name)).collect();
    let in_service = known(cluster).map_or(Status::Unknown, |seen| (!seen.maintenance).into());
    let count = names.as_ref().map(Vec::len);
    let as_expected = count.map_or(Status::Unknown, |count| (count == EXPECTED_NODES).into());
    let healthy = nodes.iter().map(|node| status(&node.conditions, "Healthy"));
    let healthy = Status::all(healthy.chain([in_service, as_expected]));
    let mut conditions = together(CLUSTER, &[healthy, in_service, as_expected]);
    if count.is_some_and(|count| count > EXPECTED_NODES) {
        conditions[2].reason = words::EXCESSIVE_NODES;
    }
    let parts = nodes.iter().map(|node| (node.name.as_str(), status(&node.conditions, "Healthy")));
    let message = missing(&conditions[1..], parts);
    conditions[0].message = message;
    Conditions { cluster: conditions, nodes }
}

/// Returns the conditions that `table` describes. `statuses` contains their statuses in the order of the table.
fn together(table: &'static [Word], statuses: &[Status]) -> Vec<Condition> {
    table.iter().zip(statuses).map(|(word, status)| Condition::new(word, *status)).collect()
}

/// Returns a message with each of `conditions` and `parts` that is false or unknown.
fn missing<'a>(conditions: &[Condition], parts: impl Iterator<Item = (&'a str, Status)>) -> String {
    let own = conditions.iter().map(|condition| -> (&'a str, Status) { (condition.kind, condition.status) });
    let not_true = own.chain(parts).filter(|(_, status)| *status != Status::True);
    let worded = not_true.map(|(name, status)| match status {
        Status::Unknown => format!("{name} is unknown"),
        Status::False | Status::True => format!("{name} is false"),
    });
    worded.collect::<Vec<String>>().join(", ")
}

fn known(cluster: &Cluster) -> Option<&crate::adapters::pacemaker::seen::Pacemaker> {
    cluster.pacemaker.known()
}

/// Returns the names of the nodes in the CIB. If the CIB is unknown, returns the names that Pacemaker shows. Returns `None` if neither is
/// known.
fn names(cluster: &Cluster) -> Option<Vec<String>> {
    let mut names = match (&cluster.configuration, &cluster.pacemaker) {
        (Fact::Known(configuration), _) => configuration.nodes.clone(),
        (_, Fact::Known(seen)) => seen.nodes.iter().map(|node| node.name.clone()).collect(),
        _ => return None,
    };
    names.sort();
    names.dedup();
    Some(names)
}

fn of_node(cluster: &Cluster, name: &str) -> NodeConditions {
    let resources = resources::of(cluster, name);
    let fencing = fencing::of(cluster, name);
    let own = known(cluster).map_or([Status::Unknown; 6], |seen| {
        let node = seen.nodes.iter().find(|node| node.name == name);
        node.map_or_else(of_missing_node, of_seen_node)
    });
    let (available, all_healthy) = (fencing.available, fencing.healthy);
    let running = resources::running(&resources).map(|(_, status)| status);
    let healthy = Status::all(own.into_iter().chain([available]).chain(running));
    let statuses: Vec<Status> = [healthy].into_iter().chain(own).chain([available, all_healthy]).collect();
    let mut conditions = together(NODE, &statuses);
    // A failed device leaves the node healthy as long as another device works.
    let message = missing(&conditions[1..8], resources::running(&resources));
    conditions[0].message = message;
    let addresses = addresses::of(cluster, name);
    NodeConditions { name: name.to_owned(), addresses, conditions, resources, fencing: fencing.devices }
}

/// Returns a node's conditions Online, InService, Active, Ready, Clean and Member.
fn of_seen_node(node: &Node) -> [Status; 6] {
    let is_member = node.kind == "member";
    [node.online, !node.maintenance, !node.standby, !node.pending, !node.unclean, is_member].map(Status::from)
}

/// Returns the conditions of a configured node that Pacemaker does not show. Online and Member are false, and InService, Active, Ready
/// and Clean are true.
fn of_missing_node() -> [Status; 6] {
    [false, true, true, true, true, false].map(Status::from)
}
