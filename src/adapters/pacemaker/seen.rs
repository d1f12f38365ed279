//! The types of Pacemaker's state: the cluster from `crm_mon`, and the configuration from the CIB. Each can be written and read
//! as JSON. Times are seconds since 1970.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The cluster's state, as `crm_mon --output-as=xml` shows it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Pacemaker {
    /// Pacemaker's version, such as `2.1.5`.
    pub version: String,
    /// The designated controller, where there is one.
    pub dc: Option<String>,
    pub has_quorum: bool,
    /// Maintenance mode of the whole cluster.
    pub maintenance: bool,
    pub stonith_enabled: bool,
    pub nodes: Vec<Node>,
    /// The resources, one entry for each instance. A clone has several, and a fence device has one.
    pub resources: Vec<Instance>,
    /// The operation history, by node and resource.
    pub histories: Vec<History>,
    pub failures: Vec<Failure>,
    /// The fencing history, newest first.
    pub fencing: Vec<Fencing>,
    /// Location constraints that keep a resource from a node, both Pacemaker's own and an operator's.
    pub bans: Vec<Ban>,
}

/// A member or a remote node, as the cluster sees it.
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own that Pacemaker tells")]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Node {
    pub name: String,
    pub id: String,
    pub online: bool,
    pub standby: bool,
    pub maintenance: bool,
    pub pending: bool,
    pub unclean: bool,
    pub shutdown: bool,
    pub expected_up: bool,
    pub is_dc: bool,
    /// `member` or `remote`.
    pub kind: String,
    /// The node's attributes as crm_mon shows them, permanent and transient.
    pub attributes: BTreeMap<String, String>,
}

/// A resource on a node, or on none.
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own that Pacemaker tells")]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Instance {
    /// The resource's id, without the number of a clone's instance.
    pub id: String,
    /// The clone of the resource.
    pub clone: Option<String>,
    /// `ocf:heartbeat:podman-etcd`, `systemd:kubelet`, `stonith:fence_redfish_rs`.
    pub agent: String,
    /// The nodes where it is active; empty where there are none.
    pub nodes: Vec<String>,
    /// The role: `Started`, `Stopped`, `Promoted` or `Unpromoted`, with older words translated. `Starting` and similar words are
    /// in `pending`.
    pub role: String,
    pub target_role: Option<String>,
    pub active: bool,
    pub managed: bool,
    pub maintenance: bool,
    pub blocked: bool,
    pub failed: bool,
    pub orphaned: bool,
    /// The operation that is under way: `Starting`, `Monitoring`.
    pub pending: Option<String>,
}

/// Pacemaker's memory of a resource on a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct History {
    pub node: String,
    /// The resource's id, without the number of a clone's instance.
    pub resource: String,
    pub fail_count: u64,
    pub migration_threshold: u64,
    pub last_failure: Option<u64>,
    pub operations: Vec<Operation>,
}

/// An operation that ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Operation {
    /// `start`, `stop`, `monitor`, `promote`, `demote`; `probe` for a monitor that is not repeated.
    pub task: String,
    /// Pacemaker's code: 0 is success, 7 is "not running", 8 is "promoted".
    pub rc: i32,
    pub call: i64,
    /// The time at which its result last changed.
    pub last_change: Option<u64>,
    pub exec_millis: Option<u64>,
    pub interval_millis: u64,
}

/// An operation that failed and was not cleaned up.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Failure {
    pub node: String,
    pub resource: String,
    pub task: String,
    pub interval_millis: u64,
    pub rc: i32,
    /// Pacemaker's word for the code.
    pub status: String,
    pub reason: String,
    pub at: Option<u64>,
    pub call: i64,
}

/// A fencing that has ended or is under way.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Fencing {
    pub target: String,
    /// `off`, `on`, `reboot`.
    pub action: String,
    /// `success`, `failed`, `pending`.
    pub status: String,
    pub reason: Option<String>,
    /// The node that carried out the fencing.
    pub delegate: Option<String>,
    /// The node that asked for the fencing. The next field is the program there.
    pub origin: String,
    pub client: String,
    pub completed: Option<u64>,
}

/// A location constraint with the score -INFINITY.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Ban {
    pub id: String,
    pub resource: String,
    pub node: String,
}

/// The CIB's configuration, as far as it matters here.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Configuration {
    /// The configured nodes, in the order of their names.
    pub nodes: Vec<String>,
    pub properties: BTreeMap<String, String>,
    /// Each node's permanent attributes.
    pub permanent: BTreeMap<String, BTreeMap<String, String>>,
    /// Each node's transient attributes, from the CIB's status.
    pub transient: BTreeMap<String, BTreeMap<String, String>>,
    /// The agent's resource; `None` where there is none, and where there are several and none was named.
    pub etcd: Option<Resource>,
    /// The ids of all resources of the agent.
    pub etcd_resources: Vec<String>,
    /// The resource that runs `systemd:kubelet`.
    pub kubelet: Option<Resource>,
    pub fence_devices: Vec<FenceDevice>,
    /// The alert agents: the path by id.
    pub alerts: BTreeMap<String, String>,
    /// The CIB's version: `admin_epoch:epoch:num_updates`.
    pub version: String,
}

/// A primitive in the configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Resource {
    pub id: String,
    pub agent: String,
    pub clone: Option<String>,
    pub promotable: bool,
    /// The parameters. Secrets were left out when the CIB was read: `password`, `passwd` and similar names.
    pub parameters: BTreeMap<String, String>,
    /// The meta-attributes. The resource's own override its clone's.
    pub meta: BTreeMap<String, String>,
    /// The operations: name, interval and time-out in milliseconds.
    pub operations: Vec<(String, u64, u64)>,
}

/// A fence device in the configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FenceDevice {
    pub resource: Resource,
    /// The nodes that it fences, by `pcmk_host_list` and `pcmk_host_map`; empty where neither is set.
    pub targets: Vec<String>,
    /// The plug of each target, where `pcmk_host_map` or `plug` sets one.
    pub plugs: BTreeMap<String, String>,
    /// The nodes that a constraint bans it from.
    pub banned_from: Vec<String>,
}
