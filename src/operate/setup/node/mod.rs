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

/// The facts that a machine reports about itself to the setup.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Facts {
    /// The machine's host name, as `uname -n` prints it.
    pub host: String,
    pub is_root: bool,
    /// The machine's wall clock, in milliseconds since 1970.
    pub at_millis: u64,
    /// The version of Tandem on the machine.
    pub tandem: String,
    /// Versions of `pacemaker`, `corosync`, `pcs` and `podman`. A version is `None` if the program is not installed or
    /// prints none.
    pub versions: BTreeMap<String, Option<String>>,
    pub addresses: Vec<IpAddr>,
    pub dmi_uuid: Option<String>,
    pub corosync: Corosync,
    /// Names of the nodes in the machine's `corosync.conf`.
    pub cluster_nodes: Vec<String>,
    pub cib: Cib,
    pub data: Data,
    pub disk: Disk,
    /// Needed ports that another program holds, such as `2379/tcp`.
    pub taken: Vec<String>,
}

/// The kind of content of the machine's `/etc/corosync/corosync.conf`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Corosync {
    #[default]
    None,
    /// The example of a distribution's package: one node that no other machine can reach.
    Example,
    /// A real cluster with this name.
    Cluster(String),
    Unreadable(String),
}

/// The content of the CIB on the machine's disk.
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

/// The content of etcd's data dir.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Data {
    #[default]
    Blank,
    Present,
    Unknown(String),
}

/// The file system of etcd's data dir.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Disk {
    pub free_bytes: u64,
    /// Microseconds of the second slowest among 100 small writes, each synced; `None` if they failed.
    pub sync_micros: Option<u64>,
    /// The reason why the free space could not be read or a test file not be written; `None` if both succeeded.
    pub failure: Option<String>,
    /// True if the directory `member` in the data dir is itself a mount point.
    pub is_member_mounted: bool,
}
