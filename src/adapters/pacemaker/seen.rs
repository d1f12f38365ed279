//! The types of Pacemaker's state: the cluster from `crm_mon`, and the configuration from the CIB. Each can be written and read
//! as JSON. Times are seconds since 1970.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The state of the cluster as `crm_mon --output-as=xml` shows it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Pacemaker {
    /// The version of Pacemaker, such as `2.1.5`.
    pub version: String,
    /// The node with the designated controller (DC); `None` if there is none.
    pub dc: Option<String>,
    pub has_quorum: bool,
    /// True if the whole cluster is in maintenance mode.
    pub maintenance: bool,
    pub stonith_enabled: bool,
    pub nodes: Vec<Node>,
    /// The resources, with one entry for each instance. A clone has several entries, and a fence device has one.
    pub resources: Vec<Instance>,
    /// The operation history of each resource on each node.
    pub histories: Vec<History>,
    pub failures: Vec<Failure>,
    /// The fencings that the fencer remembers, newest first.
    pub fencing: Vec<Fencing>,
    /// The location constraints that ban a resource from a node: Pacemaker's own, and those of an operator.
    pub bans: Vec<Ban>,
}

/// A member of the cluster or a remote node, as `crm_mon` shows it.
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
    /// The type of the node: `member` or `remote`.
    pub kind: String,
    /// The permanent and transient attributes of the node, as `crm_mon` shows them.
    pub attributes: BTreeMap<String, String>,
}

/// An instance of a resource, as `crm_mon` shows it.
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own that Pacemaker tells")]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Instance {
    /// The id of the resource, without the number of a clone's instance.
    pub id: String,
    /// The id of the clone around the resource; `None` if it is not cloned.
    pub clone: Option<String>,
    /// The agent of the resource: `ocf:heartbeat:podman-etcd`, `systemd:kubelet`, `stonith:fence_redfish_rs`.
    pub agent: String,
    /// The nodes where the resource is active. Empty if it is active nowhere.
    pub nodes: Vec<String>,
    /// The role of the resource: `Started`, `Stopped`, `Promoted` or `Unpromoted`. The words of older versions are translated. The field
    /// `pending` has words such as `Starting`.
    pub role: String,
    pub target_role: Option<String>,
    pub active: bool,
    pub managed: bool,
    pub maintenance: bool,
    pub blocked: bool,
    pub failed: bool,
    pub orphaned: bool,
    /// The operation that is under way: `Starting`, `Monitoring`; `None` if there is none.
    pub pending: Option<String>,
}

/// The operation history of a resource on a node, as Pacemaker remembers it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct History {
    pub node: String,
    /// The id of the resource, without the number of a clone's instance.
    pub resource: String,
    pub fail_count: u64,
    pub migration_threshold: u64,
    pub last_failure: Option<u64>,
    pub operations: Vec<Operation>,
}

/// An operation of a resource that has ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Operation {
    /// The name of the operation: `start`, `stop`, `monitor`, `promote` or `demote`. A monitor that is not repeated is named `probe`.
    pub task: String,
    /// The result of the operation in OCF's codes: 0 is success, 7 is "not running", 8 is "promoted".
    pub rc: i32,
    pub call: i64,
    /// The time at which the operation first had its present result, in seconds since 1970.
    pub last_change: Option<u64>,
    pub exec_millis: Option<u64>,
    pub interval_millis: u64,
}

/// An operation that failed and has not been cleaned up since.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Failure {
    pub node: String,
    pub resource: String,
    pub task: String,
    pub interval_millis: u64,
    pub rc: i32,
    /// Pacemaker's word for the exit code `rc`, such as `error` or `not running`.
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
    /// The action of the fencing: `off`, `on` or `reboot`.
    pub action: String,
    /// The state of the fencing: `success`, `failed` or `pending`.
    pub status: String,
    pub reason: Option<String>,
    /// The node that carried out the fencing; `None` if Pacemaker does not show it.
    pub delegate: Option<String>,
    /// The node that requested the fencing.
    pub origin: String,
    /// The program that requested the fencing, on the node [`Self::origin`].
    pub client: String,
    pub completed: Option<u64>,
}

/// A location constraint with the score -INFINITY, which bans a resource from a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Ban {
    pub id: String,
    pub resource: String,
    pub node: String,
}

/// The configuration in the CIB, as far as this program needs it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Configuration {
    /// The names of the configured nodes, sorted.
    pub nodes: Vec<String>,
    pub properties: BTreeMap<String, String>,
    /// The permanent attributes of each node, by its name.
    pub permanent: BTreeMap<String, BTreeMap<String, String>>,
    /// The transient attributes of each node, by its name.
    pub transient: BTreeMap<String, BTreeMap<String, String>>,
    /// The resource of the agent `podman-etcd`; `None` if there is none, or if there are several and none was named.
    pub etcd: Option<Resource>,
    /// The ids of all resources of the agent `podman-etcd`.
    pub etcd_resources: Vec<String>,
    /// The resource of the agent `systemd:kubelet`; `None` if there is none.
    pub kubelet: Option<Resource>,
    pub fence_devices: Vec<FenceDevice>,
    /// The path of each alert agent, by the alert's id.
    pub alerts: BTreeMap<String, String>,
    /// The version of the CIB: `admin_epoch:epoch:num_updates`.
    pub version: String,
}

/// A primitive in the configuration of the CIB.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Resource {
    pub id: String,
    pub agent: String,
    pub clone: Option<String>,
    pub promotable: bool,
    /// The parameters of the resource. Secrets such as `password` and `passwd` are omitted.
    pub parameters: BTreeMap<String, String>,
    /// The meta-attributes of the resource. Its own ones override those of its clone.
    pub meta: BTreeMap<String, String>,
    /// The operations of the resource: name, interval and time-out, both in milliseconds.
    pub operations: Vec<(String, u64, u64)>,
}

/// A fence device in the configuration of the CIB.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FenceDevice {
    pub resource: Resource,
    /// The nodes that the device fences, from `pcmk_host_list` and `pcmk_host_map`. Empty if neither is set.
    pub targets: Vec<String>,
    /// The plug of each target that has one in `pcmk_host_map` or `plug`, by the target's name.
    pub plugs: BTreeMap<String, String>,
    /// The nodes from which a location constraint bans the device.
    pub banned_from: Vec<String>,
}

impl FenceDevice {
    /// Returns the name with which the device logs in, also from the older option `login`; `None` if neither option is set.
    pub fn user(&self) -> Option<&str> {
        let option = |name| self.resource.parameters.get(name).map(String::as_str).filter(|value| !value.is_empty());
        option("username").or_else(|| option("login"))
    }
}
