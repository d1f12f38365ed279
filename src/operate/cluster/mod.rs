//! The cluster as it can be known from one node, about both: what was asked, and what was answered. Nothing here judges it,
//! which is `health`'s part, and nothing here changes it.
//!
//! What could not be asked is [`Fact::Unknown`] with the reason, and what the cluster does not have is [`Fact::Absent`].
//! Times are seconds since 1970. Everything can be written and read as JSON, so that a cluster of a test is a file.

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
    /// How Corosync notices a lost node; none where this node's configuration cannot be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detection: Option<Detection>,
    /// Each configured node's etcd, asked over TLS; `Absent` where nothing listens.
    pub etcd: BTreeMap<String, Fact<Etcd>>,
    /// What each configured node's collector published of itself; `Absent` where it published nothing.
    pub collected: BTreeMap<String, Fact<Collected>>,
    /// The power of each lost node, by its BMC; a node is missing where its BMC was not asked.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub power: BTreeMap<String, Power>,
    /// What this node's own fence devices found last, by now: in a failure the seconds count in which no collector publishes it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub own_notes: Vec<BmcNote>,
    /// What this node's agent remembers of a hand-over of leadership that is due.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hand_over: Option<DueHandOver>,
    /// For how many seconds this node's etcd has had no leader, where its agent counts them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leaderless_for_s: Option<u64>,
    /// Whether Corosync or Pacemaker was started on this node a moment ago: `pacemaker` is `Absent` until both have connected.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_starting: bool,
}

/// A hand-over of leadership that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DueHandOver {
    pub cause: Cause,
    /// For how many seconds nothing has obstructed it.
    pub for_s: u64,
    /// How many tries were in vain.
    pub tries: u8,
}

/// A node's power, by its BMC.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Power {
    /// A BMC reports On, or its chassis does.
    On,
    /// The BMCs that answered say Off.
    Off,
    /// No BMC reports either, for this reason.
    Unknown(String),
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
    /// Join files in `/etc/tandem` that no command takes any more. They hold keys.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stale_join_files: Vec<String>,
    /// Whether systemd starts them at boot: `corosync`, `pacemaker`, `pcsd`; left out where there is no systemd.
    pub enabled: BTreeMap<String, bool>,
    /// Of each fence device with a password file what this node's copy has: a keyed digest of each line, or an empty text for
    /// each where there is no key.
    pub passwords: BTreeMap<String, Vec<String>>,
    /// The interface over which the kernel reaches an address: each BMC's and the peer's.
    pub routes: BTreeMap<String, String>,
    /// Of each fence device what differs from OpenShift's Secret of its node, where there is one.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub secrets: BTreeMap<String, SecretSeen>,
}

/// How a fence device compares with OpenShift's Secret.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SecretSeen {
    /// When they were compared, in seconds since 1970.
    pub at: u64,
    /// What differs: `address`, `user`, `password`. None of their values is here.
    pub differs: Vec<String>,
    /// How many comparisons in a row came to a difference.
    pub looks: u64,
}

impl SecretSeen {
    /// Returns what differs, where two comparisons in a row have shown that anything does: the Secret and the device may be changed one after the
    /// other.
    pub fn difference(&self) -> Option<String> {
        (self.looks >= 2 && !self.differs.is_empty()).then(|| self.differs.join(" and "))
    }
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
