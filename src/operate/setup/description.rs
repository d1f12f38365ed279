//! The cluster that `/etc/tandem/cluster.toml` describes.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A checked description: names differ, addresses differ and are of one family, and the preferred node is one of the
/// two.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Description {
    /// The cluster's name in Corosync.
    pub cluster: String,
    pub nodes: [Node; 2],
    /// The node that wins a split: the device that fences it waits longer.
    pub preferred: String,
    /// The delay before the preferred node is fenced.
    #[serde(default = "fencing_delay")]
    pub fencing_delay: Duration,
    /// The node that should lead; `None` if either may.
    #[serde(default)]
    pub primary: Option<String>,
    /// True if a fence race decides a split instead of a delay.
    #[serde(default)]
    pub race: bool,
    /// True if the sole voter may serve after it has booted without its peer, once the peer's BMC proves that the peer
    /// is off.
    #[serde(default)]
    pub lone_boot: bool,
    /// Corosync's token time-out.
    pub token: Duration,
    pub clone: Clone,
    pub etcd: Etcd,
    pub certificates: Certificates,
}

/// Returns the default delay before the preferred node is fenced.
pub fn fencing_delay() -> Duration {
    Duration::from_secs(10)
}

/// A machine of the cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Node {
    pub name: String,
    /// The address of its etcd, and of Corosync's first link.
    pub address: IpAddr,
    /// Addresses of Corosync's further links.
    pub links: Vec<IpAddr>,
    /// Further addresses and DNS names at which clients reach etcd, such as an address that follows the leader. Both
    /// nodes have the same.
    #[serde(default)]
    pub names: Vec<String>,
    pub bmc: Bmc,
}

/// Access to a machine's BMC: options of `fence_redfish_rs` by their names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bmc {
    /// `ip`, `ipport`, `username`, `systems_uri`, `ssl_fingerprint`, ...; never a password.
    pub options: Vec<(String, String)>,
    /// The file with the password, at the same path on both nodes.
    pub password_file: PathBuf,
}

/// The image, data dir and settings of etcd.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Etcd {
    pub image: String,
    pub data_dir: PathBuf,
    /// Names and values of `etcd_settings`.
    pub settings: Vec<(String, String)>,
}

impl Description {
    /// Returns whether OpenShift's pod defines etcd. kubelet may run that pod now.
    pub fn is_of_openshift(&self) -> bool {
        self.certificates == Certificates::OfThePod
    }
}

/// The origin of the certificates that etcd presents.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Certificates {
    /// Issued by Tandem's own small CA, in `/etc/tandem/pki`.
    Own,
    /// The operator's, at the same paths on both nodes.
    Given { ca: PathBuf, cert: PathBuf, key: PathBuf },
    /// OpenShift's. The manifest of its pod names them, the image and the settings.
    OfThePod,
}

/// The kind of Pacemaker's clone of the etcd resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Clone {
    Plain,
    Promotable,
}
