//! The cluster as one node can observe both nodes of it: the questions, and their answers. `health` judges the answers, and nothing here
//! changes the cluster.
//!
//! What could not be asked is [`Fact::Unknown`] with the reason, and what the cluster does not have is [`Fact::Absent`]. Times are
//! seconds since 1970. Every type converts to JSON and back, so that a test reads its cluster from a file.

mod ask;
mod certificates;
mod error;
mod etcds;
mod look;
mod own;
mod published;
mod route;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::adapters::corosync::conf::Detection;
use crate::adapters::corosync::quorum::Quorum;
use crate::adapters::pacemaker::seen::{Configuration, Pacemaker};
use crate::base::Fact;
use crate::decide::evidence::Cause;
use crate::records::bmc_note::BmcNote;

pub use ask::ask;
pub use error::{MustBeRoot, NotPublished};
pub use look::{look, must_be_root};
pub use own::take_own;
pub use published::publish;

/// Everything that one observation of the cluster found.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Cluster {
    /// Time of the observation, in seconds since 1970.
    pub at: u64,
    /// Name of the observing node in the cluster; empty if unknown.
    pub here: String,
    /// Pacemaker's status, as `crm_mon` reports it; `Absent` where Pacemaker is stopped on this node.
    pub pacemaker: Fact<Pacemaker>,
    /// The CIB. Where Pacemaker is stopped, it is read from this node's disk.
    pub configuration: Fact<Configuration>,
    /// Quorum and votes as Corosync's votequorum reports them; `Absent` where Corosync is stopped on this node.
    pub quorum: Fact<Quorum>,
    /// The time-outs with which Corosync detects a lost node; `None` where `corosync.conf` cannot be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detection: Option<Detection>,
    /// The state of each configured node's etcd, queried over TLS; `Absent` where nothing listens on etcd's port.
    pub etcd: BTreeMap<String, Fact<Etcd>>,
    /// The facts that each configured node's collector published about its own machine; `Absent` where it published none.
    pub collected: BTreeMap<String, Fact<Collected>>,
    /// The power of each lost node, as its BMC reports it. A node is missing if its BMC was not queried.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub power: BTreeMap<String, Power>,
    /// The last results of the fence devices on this node, from the fence agent's files. In a failure the collector would publish them
    /// seconds too late.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub own_notes: Vec<BmcNote>,
    /// The pending hand-over of etcd's leadership, from this node's agent; `None` if none is pending.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hand_over: Option<DueHandOver>,
    /// Seconds for which this node's etcd has had no leader. `None` if it has a leader, or if the agent does not measure this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leaderless_for_s: Option<u64>,
    /// True if Corosync or Pacemaker has just started on this node. `pacemaker` is `Absent` until Pacemaker has connected to Corosync.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_starting: bool,
}

/// A pending hand-over of etcd's leadership from this node to its peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DueHandOver {
    pub cause: Cause,
    /// Seconds during which nothing has obstructed the hand-over.
    pub for_s: u64,
    /// Number of failed attempts to hand leadership over.
    pub tries: u8,
}

/// The power of a node, as its BMC reports it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Power {
    /// A BMC or its chassis reports On.
    On,
    /// The BMCs that answered report Off.
    Off,
    /// No BMC of the node reports On or Off. The text is the reason.
    Unknown(String),
}

/// The status of one etcd, queried over TLS.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Etcd {
    pub version: String,
    /// The cluster id in hexadecimal, as etcdctl shows it.
    pub cluster_id: String,
    /// The member id of this etcd in hexadecimal, as etcdctl shows it.
    pub member_id: String,
    /// The leader's member id in hexadecimal; `None` while there is no leader.
    pub leader: Option<String>,
    pub term: u64,
    /// The raft index of the last entry in this etcd's log.
    pub index: u64,
    /// The raft index of the last entry that this etcd has applied.
    pub applied: u64,
    pub learner: bool,
    pub db_bytes: u64,
    pub db_in_use_bytes: u64,
    /// The backend's quota (`--quota-backend-bytes`); `None` if unknown.
    pub quota_bytes: Option<u64>,
    /// The kinds of alarms that any member has raised: `NOSPACE` or `CORRUPT`.
    pub alarms: Vec<String>,
    /// The member list as this etcd has it. etcd answers this query even without a majority.
    pub members: Vec<Member>,
    /// The outcome of a linearizable read. A success shows that writes can be committed. `Unknown` if it timed out.
    pub reads: Fact<()>,
    /// Duration of the status query, in milliseconds.
    pub millis: u64,
    /// Expiry of the certificate that this etcd presented, in seconds since 1970; `None` if unknown.
    pub certificate_ends: Option<u64>,
}

/// A member in etcd's member list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Member {
    pub id: String,
    /// The member's name; empty if the member has never started.
    pub name: String,
    pub learner: bool,
    pub peer_urls: Vec<String>,
}

/// The facts that a node's collector publishes about its own machine, in a private node attribute.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Collected {
    /// The time at which the facts were collected, in seconds since 1970 by the clock of the collecting node.
    pub at: u64,
    /// The version of Tandem on the collecting node.
    pub tandem: String,
    /// The version of Pacemaker on the collecting node; `None` if the collector did not know it.
    pub pacemaker: Option<String>,
    /// The machine's UUID (`/sys/class/dmi/id/product_uuid`); `None` if it is unknown.
    pub dmi_uuid: Option<String>,
    /// Free space of the file system that contains etcd's data dir, in bytes.
    pub free_bytes: Option<u64>,
    /// Size of the file system that contains etcd's data dir, in bytes.
    pub size_bytes: Option<u64>,
    pub certificates: Vec<Certificate>,
    /// The last results of the fence devices that ran on the collecting node.
    pub bmcs: Vec<BmcNote>,
    /// Backups and given-up histories that still exist next to etcd's current data (see `tandem data-dir list`).
    pub moved_aside: Vec<MovedAside>,
    /// Paths of join files in `/etc/tandem` that have expired. No command accepts them, and they still contain keys.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stale_join_files: Vec<String>,
    /// Whether systemd starts each of the units `corosync`, `pacemaker`, `pcsd` and `tandem-lone-boot` at boot, by unit. A unit that
    /// does not exist is missing.
    pub enabled: BTreeMap<String, bool>,
    /// A keyed digest of each line of a password file, by fence device. The digest is empty where there is no key.
    pub passwords: BTreeMap<String, Vec<String>>,
    /// The interface over which the kernel reaches each BMC and the peer, by address.
    pub routes: BTreeMap<String, String>,
    /// The comparison of each fence device with OpenShift's Secret of its node, by device. Devices without such a Secret are missing.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub secrets: BTreeMap<String, SecretSeen>,
}

/// The result of comparing a fence device with OpenShift's BMC Secret.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SecretSeen {
    /// The time of the last comparison, in seconds since 1970.
    pub at: u64,
    /// The parts in which the fence device and the Secret differ: `address`, `user` or `password`. Only these words are listed, no
    /// values.
    pub differs: Vec<String>,
    /// Number of comparisons in a row that found a difference between the device and the Secret.
    pub looks: u64,
}

impl SecretSeen {
    /// Returns the differing parts of device and Secret, once two comparisons in a row have found a difference. Returns `None` after
    /// a single one, because an operator may have changed the Secret and not yet the device.
    pub fn difference(&self) -> Option<String> {
        (self.looks >= 2 && !self.differs.is_empty()).then(|| self.differs.join(" and "))
    }
}

/// The expiry of a certificate file on this node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Certificate {
    pub file: String,
    /// The earliest expiry among the file's certificates, in seconds since 1970.
    pub ends: u64,
}

/// A backup or a given-up history next to etcd's current data.
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

    /// Returns whether the JSON value `whole` contains every field of `part`. A later version may have added fields to `whole`.
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

    /// Asserts that reading and rewriting a `Cluster` that was captured in the lab loses no field.
    #[test]
    fn every_captured_cluster_is_read_and_written_back() {
        let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/fixtures/cluster");
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
