//! The cluster as it can be known from one node, about both: what was asked, and what was answered. Nothing here judges it,
//! which is `health`'s part, and nothing here changes it.
//!
//! What could not be asked is [`Fact::Unknown`] with the reason, and what the cluster does not have is [`Fact::Absent`].
//! Times are seconds since 1970. Everything can be written and read as JSON, so that a cluster of a test is a file.

mod certificates;
mod configuration;
mod crm_mon;
mod error;
mod etcds;
mod fence_device;
mod limits;
mod look;
mod own;
mod primitive;
mod published;
mod quorum;
mod route;
mod times;
mod units;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::base::Fact;
use crate::records::bmc_note::BmcNote;

pub(crate) use configuration::properties;
pub use crm_mon::ask as ask_pacemaker;
pub use error::{MustBeRoot, NotPublished};
pub(crate) use fence_device::all as fence_devices;
pub use limits::Limits;
pub use look::{look, must_be_root};
pub use own::{own_uuid, take_own};
pub(crate) use primitive::{Primitives, is_secret};
pub use published::publish;
pub use quorum::ask as ask_quorum;
pub use units::enabled as enabled_units;

/// All of it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Cluster {
    /// When it was asked.
    pub at: u64,
    /// The node on which it was asked, as the cluster calls it; empty where nobody could say.
    pub here: String,
    /// What `crm_mon` shows; `Absent` where Pacemaker is stopped on this node.
    pub pacemaker: Fact<Pacemaker>,
    /// The CIB; where Pacemaker is stopped, the one on this node's disk.
    pub configuration: Fact<Configuration>,
    /// Corosync's votequorum; `Absent` where Corosync is stopped on this node.
    pub quorum: Fact<Quorum>,
    /// Each configured node's etcd, asked over TLS; `Absent` where nothing listens.
    pub etcd: BTreeMap<String, Fact<Etcd>>,
    /// What each configured node's collector published of itself; `Absent` where it published nothing.
    pub collected: BTreeMap<String, Fact<Collected>>,
}

/// What `crm_mon --output-as=xml` shows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Pacemaker {
    /// Its version, such as `2.1.5`.
    pub version: String,
    /// The designated controller, where there is one.
    pub dc: Option<String>,
    pub has_quorum: bool,
    /// The whole cluster is in maintenance mode.
    pub maintenance: bool,
    pub stonith_enabled: bool,
    pub nodes: Vec<Node>,
    /// One for each instance: a clone's are several, a fence device's is one.
    pub resources: Vec<Instance>,
    /// The operation history, by node and resource.
    pub histories: Vec<History>,
    pub failures: Vec<Failure>,
    /// Newest first.
    pub fencing: Vec<Fencing>,
    /// Location constraints that keep a resource from a node, Pacemaker's own and an operator's.
    pub bans: Vec<Ban>,
}

/// A node as the cluster sees it.
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

/// A resource on a node, or nowhere.
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own that Pacemaker tells")]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Instance {
    /// Without the number of a clone's instance.
    pub id: String,
    /// The clone that it is of.
    pub clone: Option<String>,
    /// `ocf:heartbeat:podman-etcd`, `systemd:kubelet`, `stonith:fence_redfish_rs`.
    pub agent: String,
    /// Where it is active. Of one that is active nowhere: none.
    pub nodes: Vec<String>,
    /// `Started`, `Stopped`, `Promoted`, `Unpromoted` (older words are translated), `Starting` and the like as `pending`.
    pub role: String,
    pub target_role: Option<String>,
    pub active: bool,
    pub managed: bool,
    pub maintenance: bool,
    pub blocked: bool,
    pub failed: bool,
    pub orphaned: bool,
    /// What is under way with it: `Starting`, `Monitoring`.
    pub pending: Option<String>,
}

/// What Pacemaker remembers of a resource on a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct History {
    pub node: String,
    /// Without the number of a clone's instance.
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
    /// Pacemaker's code: 0 is done, 7 is "not running", 8 is "promoted".
    pub rc: i32,
    pub call: i64,
    /// When its result last changed.
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

/// A fencing that ended, or that is under way.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Fencing {
    pub target: String,
    /// `off`, `on`, `reboot`.
    pub action: String,
    /// `success`, `failed`, `pending`.
    pub status: String,
    pub reason: Option<String>,
    /// The node that carried it out.
    pub delegate: Option<String>,
    /// The node that asked, and the program there.
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
    /// Configured nodes, in the order of their names.
    pub nodes: Vec<String>,
    /// Cluster properties.
    pub properties: BTreeMap<String, String>,
    /// Each node's permanent attributes.
    pub permanent: BTreeMap<String, BTreeMap<String, String>>,
    /// Each node's transient attributes, in the CIB's status.
    pub transient: BTreeMap<String, BTreeMap<String, String>>,
    /// The resource of our agent; `None` where there is none or several and none was named.
    pub etcd: Option<Resource>,
    /// The ids of all resources of our agent.
    pub etcd_resources: Vec<String>,
    /// A resource that runs `systemd:kubelet`.
    pub kubelet: Option<Resource>,
    pub fence_devices: Vec<FenceDevice>,
    /// Alert agents: id and path.
    pub alerts: BTreeMap<String, String>,
    /// Since which epoch: `admin_epoch:epoch:num_updates`.
    pub version: String,
}

/// A primitive as it is configured.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Resource {
    pub id: String,
    pub agent: String,
    pub clone: Option<String>,
    pub promotable: bool,
    /// Secrets are left out where the CIB was read: `password`, `passwd` and their like.
    pub parameters: BTreeMap<String, String>,
    /// Its own meta-attributes over its clone's.
    pub meta: BTreeMap<String, String>,
    /// Operations: name, interval and time-out in milliseconds.
    pub operations: Vec<(String, u64, u64)>,
}

/// A fence device as it is configured.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FenceDevice {
    pub resource: Resource,
    /// The nodes that it fences, by `pcmk_host_list` and `pcmk_host_map`; empty where it says none.
    pub targets: Vec<String>,
    /// The plug of each of them, where `pcmk_host_map` or `plug` says one.
    pub plugs: BTreeMap<String, String>,
    /// Nodes that a constraint keeps it from.
    pub banned_from: Vec<String>,
}

/// What Corosync says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Quorum {
    pub quorate: bool,
    pub two_node: bool,
    /// It waits until it has seen both nodes since its start.
    pub waits_for_all: bool,
    pub expected_votes: u32,
    pub total_votes: u32,
    /// This node, by Corosync's ids.
    pub node_id: u32,
    /// Members of this node's partition, by Corosync's ids.
    pub members: Vec<u32>,
}

/// One etcd, asked over TLS.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Etcd {
    pub version: String,
    /// Hexadecimal, as etcdctl shows them.
    pub cluster_id: String,
    pub member_id: String,
    /// The leader's member id; `None` where it has none.
    pub leader: Option<String>,
    pub term: u64,
    /// The raft index of the last entry that it has, and of the last that it applied.
    pub index: u64,
    pub applied: u64,
    pub learner: bool,
    pub db_bytes: u64,
    pub db_in_use_bytes: u64,
    /// `--quota-backend-bytes`; `None` where it cannot be told.
    pub quota_bytes: Option<u64>,
    /// `NOSPACE`, `CORRUPT`, of any member.
    pub alarms: Vec<String>,
    /// As it has them; it answers this itself, without a majority.
    pub members: Vec<Member>,
    /// Whether a linearizable read was answered: writes can be committed. `Unknown` where it was not within its time.
    pub reads: Fact<()>,
    /// How long the answer took, in milliseconds.
    pub millis: u64,
    /// When the certificate that it showed ends.
    pub certificate_ends: Option<u64>,
}

/// A member of an etcd.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Member {
    pub id: String,
    /// Empty where it never started.
    pub name: String,
    pub learner: bool,
    pub peer_urls: Vec<String>,
}

/// What a node's collector knows of its own machine, published as a private node attribute.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Collected {
    /// When it was collected, by that node's clock.
    pub at: u64,
    /// Tandem's version there.
    pub tandem: String,
    /// Pacemaker's version there; `None` where the collector did not say.
    pub pacemaker: Option<String>,
    /// What the machine says it is (`/sys/class/dmi/id/product_uuid`).
    pub dmi_uuid: Option<String>,
    /// Where etcd's data dir is.
    pub free_bytes: Option<u64>,
    pub size_bytes: Option<u64>,
    pub certificates: Vec<Certificate>,
    /// What this node's fence devices found last.
    pub bmcs: Vec<BmcNote>,
    /// Data dirs that were moved aside and lie there still.
    pub moved_aside: Vec<MovedAside>,
    /// Whether systemd starts them at boot: `corosync`, `pacemaker`, `pcsd`; left out where there is no systemd.
    pub enabled: BTreeMap<String, bool>,
    /// Of each fence device with a password file what this node's copy has: a keyed digest of each line, or an empty text for
    /// each where there is no key.
    pub passwords: BTreeMap<String, Vec<String>>,
    /// The interface over which the kernel reaches an address: each BMC's and the peer's.
    pub routes: BTreeMap<String, String>,
}

/// A certificate of this node's.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Certificate {
    pub file: String,
    /// When the first of the file's certificates ends.
    pub ends: u64,
}

/// A data dir that was moved aside.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MovedAside {
    pub path: String,
    pub at: u64,
    pub bytes: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether `whole` has all of `part`; a later version adds fields.
    fn holds(whole: &serde_json::Value, part: &serde_json::Value) -> bool {
        match (whole.as_object(), part.as_object(), whole.as_array(), part.as_array()) {
            (Some(whole), Some(part), ..) => {
                part.iter().all(|(name, value)| whole.get(name).is_some_and(|found| holds(found, value)))
            }
            (.., Some(whole), Some(part)) => {
                whole.len() == part.len() && whole.iter().zip(part).all(|(found, value)| holds(found, value))
            }
            _ => whole == part,
        }
    }

    /// As the lab said it, state by state; nothing of it is lost on the way through a file.
    #[test]
    fn every_captured_cluster_is_read_and_written_back() {
        let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/cluster");
        let mut count = 0;
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let text = std::fs::read_to_string(&path).unwrap();
            let cluster: Cluster =
                serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            assert!(!cluster.here.is_empty() && cluster.configuration.known().is_some(), "{}", path.display());
            assert!(!text.contains("lab-secret"), "{}: a password", path.display());
            let (said, written) = (serde_json::from_str(&text).unwrap(), serde_json::to_value(&cluster).unwrap());
            assert!(holds(&written, &said), "{}", path.display());
            count += 1;
        }
        assert!(count >= 12, "{count}");
    }
}
