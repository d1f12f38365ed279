//! The object that OpenShift's etcd operator keeps of its cluster: kind `PacemakerCluster` of `etcd.openshift.io/v1`, named `cluster`.
//! The previous object is an input, because a condition's time changes only with its status.

use serde::{Deserialize, Serialize};

use super::conditions::{self, Conditions, DeviceConditions, NodeConditions, ResourceConditions};
use super::words::rfc3339;
use crate::operate::cluster::Cluster;

/// Most nodes that OpenShift accepts in a `PacemakerCluster`. The next constants limit the addresses and fencing agents of a node.
const NODES: usize = 5;
const ADDRESSES: usize = 8;
const AGENTS: usize = 8;

/// OpenShift's object `PacemakerCluster`, of which Tandem writes the status.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PacemakerCluster {
    pub api_version: String,
    pub kind: String,
    pub metadata: Metadata,
    pub status: Status,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Metadata {
    pub name: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    pub conditions: Vec<Condition>,
    /// The time of the last observation, in RFC 3339. It never decreases.
    pub last_updated: String,
    pub nodes: Vec<Node>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    #[serde(rename = "type")]
    pub kind: String,
    pub status: String,
    pub reason: String,
    pub message: String,
    pub last_transition_time: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Node {
    pub node_name: String,
    pub addresses: Vec<Address>,
    pub conditions: Vec<Condition>,
    pub resources: Vec<Resource>,
    pub fencing_agents: Vec<FencingAgent>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Address {
    #[serde(rename = "type")]
    pub kind: String,
    pub address: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Resource {
    pub name: String,
    pub conditions: Vec<Condition>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fail_count: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub migration_threshold: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_start_time: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_stop_time: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_failure_time: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FencingAgent {
    pub name: String,
    pub method: String,
    pub conditions: Vec<Condition>,
}

/// The part of the collector's status file that contains the `PacemakerCluster`.
#[derive(Deserialize)]
struct Kept {
    pacemakercluster: PacemakerCluster,
}

/// Reads the `PacemakerCluster` from the collector's `/var/lib/tandem/status.json`; `None` if the text is not understood.
pub fn kept(status: &[u8]) -> Option<PacemakerCluster> {
    serde_json::from_slice::<Kept>(status).ok().map(|kept| kept.pacemakercluster)
}

/// Returns the `PacemakerCluster` for `cluster`. Conditions that are the same in `previous` keep their transition times.
pub fn of(cluster: &Cluster, previous: Option<&PacemakerCluster>) -> PacemakerCluster {
    render(&conditions::of(cluster), cluster.at, previous)
}

/// Returns the `PacemakerCluster` for `conditions`, which were observed at `at`. Conditions that are the same in `previous` keep their
/// transition times.
pub fn render(conditions: &Conditions, at: u64, previous: Option<&PacemakerCluster>) -> PacemakerCluster {
    let before = previous.map(|previous| &previous.status);
    let at = rfc3339(at);
    let written = Written { at: &at };
    let mut nodes: Vec<Node> = Vec::new();
    for node in &conditions.nodes {
        let found = node_name(&node.name).and_then(|name| {
            let before = before.and_then(|status| status.nodes.iter().find(|before| before.node_name == name));
            written.node(node, name, before)
        });
        let is_new = |node: &Node| nodes.iter().all(|other| other.node_name != node.node_name);
        nodes.extend(found.filter(is_new));
    }
    nodes.truncate(NODES);
    let before_cluster = before.map(|status| status.conditions.as_slice()).unwrap_or_default();
    let status = Status {
        conditions: written.conditions(&conditions.cluster, before_cluster),
        last_updated: before.map_or_else(|| at.clone(), |status| status.last_updated.clone().max(at.clone())),
        nodes,
    };
    PacemakerCluster {
        api_version: "etcd.openshift.io/v1".to_owned(),
        kind: "PacemakerCluster".to_owned(),
        metadata: Metadata { name: "cluster".to_owned() },
        status,
    }
}

/// A new `PacemakerCluster` in progress. `at` becomes the transition time of each condition that changes.
struct Written<'a> {
    at: &'a str,
}

impl Written<'_> {
    /// Returns the status of a node. Returns `None` if no address of the node is known now or in `before`.
    fn node(&self, node: &NodeConditions, name: String, before: Option<&Node>) -> Option<Node> {
        let address = |ip: &std::net::IpAddr| Address { kind: "InternalIP".to_owned(), address: ip.to_string() };
        let found: Vec<Address> = node.addresses.iter().take(ADDRESSES).map(address).collect();
        let addresses = if found.is_empty() { before?.addresses.clone() } else { found };
        let known = before.map(|node| node.conditions.as_slice()).unwrap_or_default();
        let resources = node.resources.iter().map(|resource| {
            let before = before.and_then(|node| node.resources.iter().find(|before| before.name == resource.name));
            self.resource(resource, before)
        });
        let mut agents: Vec<FencingAgent> = Vec::new();
        for device in &node.fencing {
            let agent = self.agent(device, before);
            let is_new = |agent: &FencingAgent| agents.iter().all(|other| other.name != agent.name);
            agents.extend(agent.filter(is_new));
        }
        agents.truncate(AGENTS);
        Some(Node {
            node_name: name,
            addresses,
            conditions: self.conditions(&node.conditions, known),
            resources: resources.collect(),
            fencing_agents: agents,
        })
    }

    fn resource(&self, resource: &ResourceConditions, before: Option<&Resource>) -> Resource {
        let before = before.map(|resource| resource.conditions.as_slice()).unwrap_or_default();
        Resource {
            name: resource.name.to_owned(),
            conditions: self.conditions(&resource.conditions, before),
            fail_count: resource.fail_count.map(as_int32),
            migration_threshold: resource.migration_threshold.map(as_int32),
            last_start_time: resource.last_start.map(rfc3339),
            last_stop_time: resource.last_stop.map(rfc3339),
            last_failure_time: resource.last_failure.map(rfc3339),
        }
    }

    /// Returns the status of a fence device. Returns `None` if its protocol is neither Redfish nor IPMI.
    fn agent(&self, device: &DeviceConditions, before: Option<&Node>) -> Option<FencingAgent> {
        let method = match device.method? {
            conditions::Method::Redfish => "Redfish",
            conditions::Method::Ipmi => "IPMI",
        };
        let takes = |letter: char| letter.is_ascii_alphanumeric() || "._-".contains(letter);
        let name: String =
            device.name.chars().map(|letter| if takes(letter) { letter } else { '-' }).take(300).collect();
        let before = before.and_then(|node| node.fencing_agents.iter().find(|agent| agent.name == name));
        let before = before.map(|agent| agent.conditions.as_slice()).unwrap_or_default();
        let conditions = self.conditions(&device.conditions, before);
        (!name.is_empty()).then(|| FencingAgent { name, method: method.to_owned(), conditions })
    }

    fn conditions(&self, found: &[conditions::Condition], before: &[Condition]) -> Vec<Condition> {
        let one = |condition: &conditions::Condition| {
            let status = match condition.status {
                conditions::Status::True => "True",
                conditions::Status::False => "False",
                conditions::Status::Unknown => "Unknown",
            };
            let is_same = |before: &&Condition| before.kind == condition.kind && before.status == status;
            let since = before.iter().find(is_same).map_or(self.at, |before| before.last_transition_time.as_str());
            Condition {
                kind: condition.kind.to_owned(),
                status: status.to_owned(),
                reason: condition.reason.to_owned(),
                message: condition.message.clone(),
                last_transition_time: since.to_owned(),
            }
        };
        found.iter().map(one).collect()
    }
}

/// Converts a node's name to the form that Kubernetes accepts: small letters, digits, '-' and '.', with a letter or digit at both ends.
fn node_name(name: &str) -> Option<String> {
    let lower = name.to_ascii_lowercase();
    let takes = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || "-.".contains(letter);
    let fitted: String = lower.chars().map(|letter| if takes(letter) { letter } else { '-' }).take(253).collect();
    let labels = fitted.split('.').map(|label| label.trim_matches('-')).filter(|label| !label.is_empty());
    Some(labels.collect::<Vec<&str>>().join(".")).filter(|name| !name.is_empty())
}

fn as_int32(count: u64) -> u64 {
    count.min(i32::MAX.unsigned_abs().into())
}
