//! The Debian release of the hosts. Their `/usr` and `/etc` are the machine's own if it has that release. Otherwise
//! they are from a tree that is made of the other release's packages.

use std::fs;
use std::path::{Path, PathBuf};

use crate::host::state::Lab;
use crate::programs::debian;
use crate::sh::Result;

/// The packages that a host of the lab needs in addition to a minimal machine. Each Debian release has the same
/// names.
const PACKAGES: &[&str] = &[
    "corosync",
    "pacemaker",
    "pacemaker-cli-utils",
    "pcs",
    "podman",
    "runc",
    "conmon",
    "etcd-client",
    "netavark",
    "openssh-server",
    "libfaketime",
    "iproute2",
    "iptables",
    "openssl",
    "ca-certificates",
    "procps",
    "psmisc",
    "strace",
    // ocf-tester, and its checker.
    "resource-agents",
    "libxml2-utils",
];
/// The name of the lab's setting that contains the root directory of the hosts' files.
const SETTING: &str = "root";

/// The Debian release of the hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Release {
    /// The release of this machine.
    Own,
    Twelve,
    Thirteen,
}

impl Release {
    pub fn parse(text: &str) -> Result<Self> {
        match text {
            "" => Ok(Self::Own),
            "12" => Ok(Self::Twelve),
            "13" => Ok(Self::Thirteen),
            other => Err(format!("the lab has no hosts of Debian {other}; type --release 12 or --release 13").into()),
        }
    }

    pub fn number(self) -> &'static str {
        match self {
            Self::Own => "",
            Self::Twelve => "12",
            Self::Thirteen => "13",
        }
    }

    fn suite(self) -> Option<&'static str> {
        match self {
            Self::Own => None,
            Self::Twelve => Some("bookworm"),
            Self::Thirteen => Some("trixie"),
        }
    }

    /// Returns the Debian suite for a virtual machine. The default is the newest one, because a virtual machine
    /// shares nothing with this machine.
    pub fn suite_of_a_vm(self) -> &'static str {
        self.suite().unwrap_or("trixie")
    }

    /// Returns the root of the files of a host with this release: `/` for the machine's own, or a tree of packages.
    /// The first call makes the tree.
    pub fn root(self) -> Result<PathBuf> {
        match self.suite() {
            Some(suite) if !is_own(suite) => debian::root_tree(suite, PACKAGES),
            _ => Ok(PathBuf::from("/")),
        }
    }
}

fn is_own(suite: &str) -> bool {
    let about = fs::read_to_string("/etc/os-release").unwrap_or_default();
    about.lines().any(|line| line.strip_prefix("VERSION_CODENAME=") == Some(suite))
}

/// Stores the root of the hosts' files for later commands on this lab.
pub fn remember(lab: &Lab, root: &Path) -> Result<()> {
    lab.set(SETTING, &root.display().to_string())
}

/// Returns the root of the files below the hosts' `/usr` and `/etc`. Callers must not write there.
pub fn root(lab: &Lab) -> PathBuf {
    PathBuf::from(lab.setting(SETTING).unwrap_or_else(|| "/".to_owned()))
}

/// Returns the user id and the group id of Pacemaker's user `hacluster` on the hosts.
pub fn hacluster(lab: &Lab) -> Result<(u32, u32)> {
    let passwd = root(lab).join("etc/passwd");
    let text = fs::read_to_string(&passwd)?;
    let fields = text.lines().find_map(|line| line.strip_prefix("hacluster:")).map(|rest| rest.split(':').skip(1));
    let numbers: Vec<u32> = fields.into_iter().flatten().take(2).filter_map(|field| field.parse().ok()).collect();
    match numbers[..] {
        [user, group] => Ok((user, group)),
        _ => Err(format!("{} has no user hacluster; run tests/lab/setup", passwd.display()).into()),
    }
}
