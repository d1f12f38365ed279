//! A machine that is to become a node: what there is on it, as data that can go over the wire, and what that means.

mod corosync;
mod disk;
pub mod judge;
mod look;
pub mod ports;
mod this_cluster;

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

pub use self::look::{is_described, look};

/// What a machine knows of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Facts {
    /// `uname -n`.
    pub host: String,
    pub is_root: bool,
    /// By its own wall clock, in milliseconds since 1970.
    pub at_millis: u64,
    /// Tandem's version.
    pub tandem: String,
    /// Versions of `pacemaker`, `corosync`, `pcs` and `podman`; `None` where it is not installed, or does not say.
    pub versions: BTreeMap<String, Option<String>>,
    pub addresses: Vec<IpAddr>,
    pub dmi_uuid: Option<String>,
    pub corosync: Corosync,
    /// The nodes that `corosync.conf` lists.
    pub cluster_nodes: Vec<String>,
    pub cib: Cib,
    pub data: Data,
    pub disk: Disk,
    /// Ports that something else has, by their words: `2379/tcp`.
    pub taken: Vec<String>,
}

/// What `/etc/corosync/corosync.conf` describes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Corosync {
    #[default]
    None,
    /// What a distribution's package leaves as an example: one node that nobody else can reach.
    Example,
    /// A cluster of this name.
    Cluster(String),
    Unreadable(String),
}

/// The CIB on this machine's disk.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Cib {
    #[default]
    None,
    Known {
        cluster: Option<String>,
        resources: usize,
    },
    Unreadable(String),
}

/// What is in the data dir.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Data {
    #[default]
    Blank,
    Present,
    Unknown(String),
}

/// The file system of the data dir.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Disk {
    pub free_bytes: u64,
    /// Of 100 small writes, each synced: the second slowest.
    pub sync_micros: Option<u64>,
    /// Why nothing could be written there.
    pub failure: Option<String>,
    /// Whether `member` in the data dir is a mount point itself.
    pub is_member_mounted: bool,
}
