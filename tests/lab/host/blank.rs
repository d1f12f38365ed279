//! Blank hosts: they have the packages, but no cluster, certificates or keys, and `root` of either host may log in on
//! the other. A service manager of the lab ([`crate::host::units`]) does on hosts of namespaces what systemd does on a real
//! host.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::host::node::{NODES, Node};
use crate::host::state::Lab;
use crate::host::tls;
use crate::host::units;
use crate::programs::release;
use crate::sh::{self, Result};

/// The state in which a distribution's packages leave a host that has no cluster yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blank {
    /// A host after the installation of RPMs: there is no configuration, and sshd is the only service that runs.
    Rpm,
    /// A host after the installation of Debian's packages: pcsd runs, and so do Corosync and Pacemaker with an
    /// example of a `corosync.conf`. Each host is a cluster of its own.
    Debian,
}

const SETTING: &str = "blank";
/// The systemd units that Debian's packages enable at their installation. RPMs enable none of them.
pub const ENABLED: &[&str] = &["corosync", "pacemaker", "pcsd", "pcsd-ruby"];
/// The files below `/etc` that Debian's packages create, and RPMs do not.
pub const CONFIGURED: &[&str] = &["corosync/corosync.conf", "corosync/authkey", "pacemaker/authkey"];
/// The directories that the cluster's packages create, relative to the host's `/var`, with their modes.
const DIRS: &[(&str, u32)] = &[
    ("lib/corosync", 0o755),
    ("lib/containers", 0o755),
    ("lib/cni", 0o755),
    ("lib/pcsd", 0o700),
    ("log/corosync", 0o755),
    ("log/pcsd", 0o700),
    ("log/cluster", 0o755),
];
const WANTS: &str = "systemd/system/multi-user.target.wants";

impl Blank {
    pub fn parse(text: &str) -> Result<Self> {
        match text {
            "rpm" => Ok(Self::Rpm),
            "debian" => Ok(Self::Debian),
            other => Err(format!("'{other}' is no kind of blank host; type --blank rpm or --blank debian").into()),
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Rpm => "rpm",
            Self::Debian => "debian",
        }
    }

    /// Returns the kind of blank hosts that a running lab has. `None` if its hosts were brought up with a cluster.
    pub fn of(lab: &Lab) -> Option<Self> {
        lab.setting(SETTING).and_then(|word| Self::parse(&word).ok())
    }
}

/// Stores the kind of blank hosts for later commands on this lab.
pub fn remember(lab: &Lab, blank: Option<Blank>) -> Result<()> {
    lab.set(SETTING, blank.map_or("", Blank::word))
}

/// Fills the host's disks with what the packages create, and with no cluster. `blank` is the distribution to imitate,
/// because the machine's own packages are Debian's.
pub fn furnish(lab: &Lab, node: Node, blank: Blank) -> Result<()> {
    for (path, mode) in DIRS {
        let (role, rest) = path.split_once('/').unwrap_or((path, ""));
        let dir = lab.disk(node, &format!("var-{role}")).join(rest);
        sh::make_dir(&dir)?;
        fs::set_permissions(&dir, fs::Permissions::from_mode(*mode))?;
    }
    if blank == Blank::Rpm {
        let links = ENABLED.iter().map(|unit| format!("{WANTS}/{unit}.service"));
        for path in CONFIGURED.iter().map(|path| (*path).to_owned()).chain(links) {
            take_away(lab, node, &path)?;
        }
    }
    let systemctl = lab.disk(node, "usr").join("bin/systemctl");
    sh::make_dir(&lab.disk(node, "usr").join("bin"))?;
    sh::write(&systemctl, units::SYSTEMCTL)?;
    let systemd_run = lab.disk(node, "usr").join("bin/systemd-run");
    sh::write(&systemd_run, units::SYSTEMD_RUN)?;
    fs::set_permissions(&systemd_run, fs::Permissions::from_mode(0o755))?;
    Ok(fs::set_permissions(&systemctl, fs::Permissions::from_mode(0o755))?)
}

/// Hides a file of the machine's `/etc` from a host. Without this the host would see the file, because its `/etc` is an overlay on the
/// machine's `/etc`.
fn take_away(lab: &Lab, node: Node, path: &str) -> Result<()> {
    let below = release::root(lab).join("etc").join(path);
    if fs::symlink_metadata(&below).is_err() {
        return Ok(());
    }
    let hidden = lab.disk(node, "etc").join(path);
    sh::make_dir(hidden.parent().unwrap_or(Path::new("/")))?;
    // A character device 0:0 marks a deleted file in an overlay.
    sh::run("mknod", &[hidden.as_os_str(), "c".as_ref(), "0".as_ref(), "0".as_ref()]).map(drop)
}

/// Creates the hosts' ssh keys, and keys with which `root` of each host can log in on the other without a password.
pub fn make_keys(lab: &Lab) -> Result<()> {
    NODES.into_iter().try_for_each(|node| make_keys_of(lab, node))?;
    for node in NODES {
        let peer = node.other();
        let public = |role: &str, path: &str| fs::read_to_string(lab.disk(peer, role).join(path));
        let ssh = lab.disk(node, "root").join(".ssh");
        let names = format!("{peer},{},{}", peer.ip(), peer.ipv6());
        let known = format!("{names} {}", public("etc", "ssh/ssh_host_ed25519_key.pub")?);
        sh::write(&ssh.join("known_hosts"), known)?;
        tls::write_secret(&ssh.join("authorized_keys"), public("root", ".ssh/id_ed25519.pub")?.as_bytes())?;
    }
    Ok(())
}

/// Creates the ssh keys of one host. The other host does not trust them yet.
pub fn make_keys_of(lab: &Lab, node: Node) -> Result<()> {
    let (ssh, root) = (lab.disk(node, "etc").join("ssh"), lab.disk(node, "root").join(".ssh"));
    for dir in [&ssh, &root] {
        sh::make_dir(dir)?;
    }
    fs::set_permissions(lab.disk(node, "root"), fs::Permissions::from_mode(0o700))?;
    fs::set_permissions(&root, fs::Permissions::from_mode(0o700))?;
    for (file, who) in
        [(ssh.join("ssh_host_ed25519_key"), format!("root@{node}")), (root.join("id_ed25519"), format!("root@{node}"))]
    {
        let words = ["-q", "-t", "ed25519", "-N", "", "-C", &who, "-f"].map(std::ffi::OsStr::new);
        sh::run("ssh-keygen", &[&words[..], &[file.as_os_str()]].concat())?;
    }
    // Without this file, sshd would use the machine's own host keys.
    let config = ssh.join("sshd_config.d");
    sh::make_dir(&config)?;
    sh::write(&config.join("host-key.conf"), "HostKey /etc/ssh/ssh_host_ed25519_key\n")
}
