//! The cluster as `/etc/tandem/cluster.toml` describes it.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// All of it, checked: names differ, addresses differ and are of one family, and the preferred node is one of the two.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Description {
    /// The cluster's name, as Corosync has it.
    pub cluster: String,
    pub nodes: [Node; 2],
    /// Which node wins a split: the one whose fence device waits longer.
    pub preferred: String,
    /// How long the fencing of that node waits.
    #[serde(default = "fencing_delay")]
    pub fencing_delay: Duration,
    /// Which node is to lead; none where either may.
    #[serde(default)]
    pub primary: Option<String>,
    /// Whether a fence race decides a split, and no delay.
    #[serde(default)]
    pub race: bool,
    /// Whether the sole voter serves after it has booted alone, where its peer's BMC proves that the peer is off.
    #[serde(default)]
    pub lone_boot: bool,
    /// Corosync's token time-out.
    pub token: Duration,
    pub clone: Clone,
    pub etcd: Etcd,
    pub certificates: Certificates,
}

/// Returns how long the fencing of the preferred node waits where nothing else is described.
pub fn fencing_delay() -> Duration {
    Duration::from_secs(10)
}

/// One machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Node {
    pub name: String,
    /// Where its etcd is reached, and Corosync's first link.
    pub address: IpAddr,
    /// Corosync's further links.
    pub links: Vec<IpAddr>,
    /// Further addresses and DNS names that clients reach etcd at, such as an address that follows the leader: those of both nodes.
    #[serde(default)]
    pub names: Vec<String>,
    pub bmc: Bmc,
}

/// How a machine's BMC is reached: options of `fence_redfish_rs`, in its own words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bmc {
    /// `ip`, `ipport`, `username`, `systems_uri`, `ssl_fingerprint`, ...: never a password.
    pub options: Vec<(String, String)>,
    /// The file on both nodes that holds the password.
    pub password_file: PathBuf,
}

/// What runs as etcd.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Etcd {
    pub image: String,
    pub data_dir: PathBuf,
    /// `etcd_settings`, each a name and a value.
    pub settings: Vec<(String, String)>,
}

impl Description {
    /// Whether OpenShift's pod says what runs as etcd, and kubelet may run it at the moment.
    pub fn is_of_openshift(&self) -> bool {
        self.certificates == Certificates::OfThePod
    }
}

/// Whose certificates etcd shows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Certificates {
    /// Those of Tandem's own small CA, in `/etc/tandem/pki`.
    Own,
    /// The operator's, at the same places on both nodes.
    Given { ca: PathBuf, cert: PathBuf, key: PathBuf },
    /// OpenShift's: its pod's manifest names them, with the image and the settings.
    OfThePod,
}

/// How Pacemaker clones etcd's resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Clone {
    Plain,
    Promotable,
}
