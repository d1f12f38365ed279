//! A machine that should become a node: its facts, as data for the wire, and their judgement.

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

/// The facts that a machine reports about itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Facts {
    /// The host name, from `uname -n`.
    pub host: String,
    pub is_root: bool,
    /// The machine's wall clock, in milliseconds since 1970.
    pub at_millis: u64,
    /// The version of Tandem.
    pub tandem: String,
    /// Versions of `pacemaker`, `corosync`, `pcs` and `podman`. `None` if the program is not installed or reports no
    /// version.
    pub versions: BTreeMap<String, Option<String>>,
    pub addresses: Vec<IpAddr>,
    pub dmi_uuid: Option<String>,
    pub corosync: Corosync,
    /// The nodes that `corosync.conf` lists.
    pub cluster_nodes: Vec<String>,
    pub cib: Cib,
    pub data: Data,
    pub disk: Disk,
    /// Ports that another program holds, such as `2379/tcp`.
    pub taken: Vec<String>,
}

/// The content of `/etc/corosync/corosync.conf`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Corosync {
    #[default]
    None,
    /// The example of a distribution's package: one node that no other machine can reach.
    Example,
    /// A cluster with this name.
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

/// The content of the data dir.
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
    /// The second slowest of 100 small writes, each synced.
    pub sync_micros: Option<u64>,
    /// The reason why a test file could not be written.
    pub failure: Option<String>,
    /// True if `member` in the data dir is itself a mount point.
    pub is_member_mounted: bool,
}
