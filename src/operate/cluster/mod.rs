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

/// Everything that one observation found.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Cluster {
    /// The time of the observation.
    pub at: u64,
    /// The node that observed, by its name in the cluster; empty if unknown.
    pub here: String,
    /// The answer of `crm_mon`; `Absent` where Pacemaker is stopped on this node.
    pub pacemaker: Fact<Pacemaker>,
    /// The CIB; where Pacemaker is stopped, the one on this node's disk.
    pub configuration: Fact<Configuration>,
    /// Corosync's votequorum; `Absent` where Corosync is stopped on this node.
    pub quorum: Fact<Quorum>,
    /// Corosync's way to detect a lost node; `None` where this node's configuration cannot be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detection: Option<Detection>,
    /// Each configured node's etcd, asked over TLS; `Absent` where nothing listens.
    pub etcd: BTreeMap<String, Fact<Etcd>>,
    /// The facts that each configured node's collector published of its own machine; `Absent` where it published none.
    pub collected: BTreeMap<String, Fact<Collected>>,
    /// The power of each lost node, by its BMC; a node is missing where its BMC was not asked.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub power: BTreeMap<String, Power>,
    /// The last findings of this node's own fence devices. They are read fresh, because in a failure the collector would publish them
    /// seconds too late.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub own_notes: Vec<BmcNote>,
    /// The hand-over of leadership that is due, as this node's agent remembers it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hand_over: Option<DueHandOver>,
    /// Seconds for which this node's etcd has had no leader, where its agent counts them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leaderless_for_s: Option<u64>,
    /// True if Corosync or Pacemaker has just started on this node: `pacemaker` is `Absent` until both have connected.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_starting: bool,
}

/// A hand-over of leadership that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DueHandOver {
    pub cause: Cause,
    /// Seconds during which nothing has obstructed it.
    pub for_s: u64,
    /// Number of failed tries.
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
    /// No BMC reports either, for this reason.
    Unknown(String),
}

/// The answer of one etcd over TLS.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Etcd {
    pub version: String,
    /// Hexadecimal, as etcdctl shows it.
    pub cluster_id: String,
    pub member_id: String,
    /// The leader's member id; `None` without a leader.
    pub leader: Option<String>,
    pub term: u64,
    /// The raft index of the last entry in its log; `applied` is that of the last applied entry.
    pub index: u64,
    pub applied: u64,
    pub learner: bool,
    pub db_bytes: u64,
    pub db_in_use_bytes: u64,
    /// `--quota-backend-bytes`; `None` if unknown.
    pub quota_bytes: Option<u64>,
    /// `NOSPACE` and `CORRUPT`, of any member.
    pub alarms: Vec<String>,
    /// The member list of this etcd, which answers it without a majority.
    pub members: Vec<Member>,
    /// The outcome of a linearizable read. A success shows that writes can be committed. `Unknown` if it timed out.
    pub reads: Fact<()>,
    /// Duration of the answer, in milliseconds.
    pub millis: u64,
    /// Expiry of the certificate that it presented.
    pub certificate_ends: Option<u64>,
}

/// A member of an etcd.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Member {
    pub id: String,
    /// Empty for a member that never started.
    pub name: String,
    pub learner: bool,
    pub peer_urls: Vec<String>,
}

/// The facts that a node's collector knows of its own machine, published as a private node attribute.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Collected {
    /// The time of the collection, by that node's clock.
    pub at: u64,
    /// The version of Tandem on that node.
    pub tandem: String,
    /// The version of Pacemaker on that node; `None` if the collector did not know it.
    pub pacemaker: Option<String>,
    /// The machine's own UUID (`/sys/class/dmi/id/product_uuid`).
    pub dmi_uuid: Option<String>,
    /// Free space of the file system with etcd's data dir; `size_bytes` is its size.
    pub free_bytes: Option<u64>,
    pub size_bytes: Option<u64>,
    pub certificates: Vec<Certificate>,
    /// The last findings of this node's fence devices.
    pub bmcs: Vec<BmcNote>,
    /// Data dirs that were moved aside and still exist.
    pub moved_aside: Vec<MovedAside>,
    /// Join files in `/etc/tandem` that have expired: no command accepts them. They hold keys.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stale_join_files: Vec<String>,
    /// True for each of `corosync`, `pacemaker` and `pcsd` that systemd starts at boot; left out where there is no systemd.
    pub enabled: BTreeMap<String, bool>,
    /// This node's copy of each fence device's password file: a keyed digest of each line, or an empty text for each line if there is no
    /// key.
    pub passwords: BTreeMap<String, Vec<String>>,
    /// The interface over which the kernel reaches an address: each BMC's and the peer's.
    pub routes: BTreeMap<String, String>,
    /// The difference between each fence device and OpenShift's Secret of its node, where there is such a Secret.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub secrets: BTreeMap<String, SecretSeen>,
}

/// The comparison of a fence device with OpenShift's Secret.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SecretSeen {
    /// The time of the comparison, in seconds since 1970.
    pub at: u64,
    /// The parts that differ: `address`, `user`, `password`. It contains none of their values.
    pub differs: Vec<String>,
    /// Number of comparisons in a row that found a difference.
    pub looks: u64,
}

impl SecretSeen {
    /// Returns what differs, once two comparisons in a row have found a difference. One is not enough, because an operator may change
    /// the Secret first and the device next.
    pub fn difference(&self) -> Option<String> {
        (self.looks >= 2 && !self.differs.is_empty()).then(|| self.differs.join(" and "))
    }
}

/// The expiry of a certificate file on this node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Certificate {
    pub file: String,
    /// The earliest expiry among the file's certificates.
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

    /// Returns whether `whole` contains all of `part`; a later version adds fields.
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

    /// The fixtures are states of the lab. Reading and writing them loses nothing.
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
