//! The cluster that `/etc/tandem/cluster.toml` describes.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The cluster that `/etc/tandem/cluster.toml` describes, after its checks. Names and addresses differ, and all
/// addresses are of one family. The preferred node is one of the two.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Description {
    /// Name of the cluster in Corosync.
    pub cluster: String,
    pub nodes: [Node; 2],
    /// Name of the node that wins a split, because the device that fences this node waits longer.
    pub preferred: String,
    /// The delay before the preferred node is fenced. With a race, it applies only if a BMC cannot decide the race.
    #[serde(default = "fencing_delay")]
    pub fencing_delay: Duration,
    /// Name of the node that should lead etcd; `None` if either may.
    #[serde(default)]
    pub primary: Option<String>,
    /// True if a race for the BMCs decides a split, instead of a fencing delay.
    #[serde(default)]
    pub race: bool,
    /// True if the sole voter may serve after a boot without its peer, once the peer's BMC proves that the peer is off.
    #[serde(default)]
    pub lone_boot: bool,
    /// Corosync's token timeout.
    pub token: Duration,
    pub clone: Clone,
    pub etcd: Etcd,
    pub certificates: Certificates,
}

/// Returns the default delay before the preferred node is fenced.
pub fn fencing_delay() -> Duration {
    Duration::from_secs(10)
}

/// One of the two machines of the cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Node {
    pub name: String,
    /// The address of the node's etcd, and of Corosync's first link.
    pub address: IpAddr,
    /// The node's addresses on Corosync's links other than the first.
    pub links: Vec<IpAddr>,
    /// Further addresses and DNS names at which clients reach etcd, such as an address that follows the leader. Both
    /// nodes have the same names.
    #[serde(default)]
    pub names: Vec<String>,
    pub bmc: Bmc,
}

/// Access to a node's BMC, as options of `fence_redfish_rs`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bmc {
    /// Names and values of options such as `ip`, `username` or `ssl_fingerprint`; never a password.
    pub options: Vec<(String, String)>,
    /// Path of the file with the BMC's password, equal on both nodes.
    pub password_file: PathBuf,
}

/// The image, data dir and settings of etcd.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Etcd {
    pub image: String,
    pub data_dir: PathBuf,
    /// Names and values for the resource's parameter `etcd_settings`.
    pub settings: Vec<(String, String)>,
}

impl Description {
    /// Returns whether a pod of OpenShift defines etcd. In this case kubelet may already run etcd.
    pub fn is_of_openshift(&self) -> bool {
        self.certificates == Certificates::OfThePod
    }
}

/// The origin of the certificates that etcd presents.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Certificates {
    /// Certificates of Tandem's own CA, in `/etc/tandem/pki`.
    Own,
    /// The operator's certificates, at the same paths on both nodes.
    Given { ca: PathBuf, cert: PathBuf, key: PathBuf },
    /// OpenShift's certificates. The manifest of etcd's pod has their paths, the image and the settings.
    OfThePod,
}

/// The kind of the Pacemaker clone that contains the etcd resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Clone {
    Plain,
    Promotable,
}
