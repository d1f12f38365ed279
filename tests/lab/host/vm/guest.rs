//! A virtual machine's configuration, in addition to its packages: systemd's units, ssh, and the stream of its journal
//! to the lab.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use super::tree;
use crate::host::blank::{self, Blank};
use crate::host::node::Node;
use crate::host::tls;
use crate::sh::{self, Result};

/// The systemd units to mask, because a virtual machine without real hardware does not need them. Each would cost an
/// emulated core half a second.
const MASKED: &[&str] = &[
    "apt-daily.timer",
    "apt-daily-upgrade.timer",
    "dpkg-db-backup.timer",
    "e2scrub_all.timer",
    "e2scrub_reap.service",
    "fstrim.timer",
    "logrotate.timer",
    "man-db.timer",
    "systemd-tmpfiles-clean.timer",
    "getty@tty1.service",
    "serial-getty@ttyS0.service",
    "systemd-logind.service",
    "systemd-networkd.service",
    "systemd-networkd.socket",
    "systemd-networkd-wait-online.service",
    "systemd-network-generator.service",
    "networking.service",
    "systemd-udevd.service",
    "systemd-udevd-control.socket",
    "systemd-udevd-kernel.socket",
    "systemd-udev-trigger.service",
    "systemd-udev-load-credentials.service",
    "systemd-hwdb-update.service",
    "systemd-pcrphase.service",
    "systemd-pcrphase-sysinit.service",
    "systemd-tpm2-setup.service",
    "systemd-tpm2-setup-early.service",
    "systemd-pstore.service",
    "systemd-random-seed.service",
    "systemd-modules-load.service",
    "systemd-machine-id-commit.service",
    "systemd-update-utmp.service",
    "systemd-firstboot.service",
    "systemd-journal-catalog-update.service",
    "systemd-update-done.service",
    "systemd-binfmt.service",
    "proc-sys-fs-binfmt_misc.automount",
    "systemd-ask-password-console.path",
    "systemd-ask-password-wall.path",
    "modprobe@configfs.service",
    "modprobe@dm_mod.service",
    "modprobe@drm.service",
    "modprobe@efi_pstore.service",
    "modprobe@fuse.service",
    "modprobe@loop.service",
    "kmod-static-nodes.service",
    "sys-kernel-config.mount",
    "sys-kernel-debug.mount",
    "sys-kernel-tracing.mount",
    "sys-fs-fuse-connections.mount",
    "dev-hugepages.mount",
    "keyboard-setup.service",
    "console-setup.service",
    "ldconfig.service",
    "podman.socket",
    "podman-auto-update.timer",
    "podman-restart.service",
    "podman-clean-transient.service",
];
const ENABLED: &[&str] = &["ssh", "lab-net", "lab-journal"];
/// The units to enable on hosts that come up with a cluster. pcsd is masked there, because the lab makes the cluster without it.
const CLUSTER: &[&str] = &["corosync", "pacemaker"];
const NO_CLUSTER_IS_MADE: &[&str] = &["pcsd.service", "pcsd-ruby.service"];

/// A script that streams a virtual machine's journal to the lab as the journal is written. So the lab also has the
/// lines that the guest had not synced when its power failed. The format is the one that [`crate::judge::timeline`]
/// merges.
const JOURNAL: &str = r"#!/bin/sh
journalctl --follow --lines=all --boot --utc --output=short-iso-precise |
    sed -u -E 's/^([-0-9]+T[0-9:]+[.][0-9]{3})[0-9]*[+]00:?00 ([a-z0-9]+) /\1Z \2: /' > $(echo /dev/vport*p1)
";
const JOURNAL_UNIT: &str = "[Unit]
Description=The journal, for the lab
After=systemd-journald.service
DefaultDependencies=no
[Service]
ExecStart=/usr/local/sbin/lab-journal
[Install]
WantedBy=sysinit.target
";

const SSHD: &str = "UseDNS no\nUsePAM no\nPermitRootLogin prohibit-password\nPasswordAuthentication no\n\
                    MaxSessions 64\nMaxStartups 64\n";

/// Writes the configuration that all virtual machines of the lab share into the tree of packages.
pub fn configure(tree: &Path, blank: Option<Blank>) -> Result<()> {
    let put = |path: &str, content: &str| {
        let path = tree.join(path);
        sh::make_dir(path.parent().unwrap_or(tree))?;
        sh::write(&path, content)
    };
    put("etc/fstab", "")?;
    // An empty file makes each machine generate its own id.
    put("etc/machine-id", "")?;
    put("etc/ssh/sshd_config.d/lab.conf", SSHD)?;
    put("etc/systemd/system.conf.d/lab.conf", "[Manager]\nDefaultTimeoutStartSec=600\nDefaultTimeoutStopSec=300\n")?;
    put("etc/systemd/system/lab-journal.service", JOURNAL_UNIT)?;
    put("usr/local/sbin/lab-journal", JOURNAL)?;
    let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(tree.join("usr/local/sbin/lab-journal"), executable)?;
    put(
        "etc/systemd/system/lab-net.service",
        "[Unit]\n[Service]\nExecStart=/bin/true\n[Install]\nWantedBy=multi-user.target\n",
    )?;
    sh::make_dir(&tree.join("var/log/journal"))?;
    let systemctl = |verb, units: &[&str]| tree::run(tree, &[&["systemctl", verb, "--quiet"][..], units].concat());
    systemctl("mask", MASKED)?;
    systemctl("enable", ENABLED)?;
    systemctl("set-default", &["multi-user.target"])?;
    match blank {
        None => {
            systemctl("mask", NO_CLUSTER_IS_MADE)?;
            systemctl("enable", CLUSTER).map(drop)
        }
        // The packages are Debian's, so nothing has to change.
        Some(Blank::Debian) => Ok(()),
        Some(Blank::Rpm) => {
            systemctl("disable", blank::ENABLED)?;
            let paths = blank::CONFIGURED.iter().map(|path| tree.join("etc").join(path));
            Ok(paths.filter(|path| path.exists()).try_for_each(fs::remove_file)?)
        }
    }
}

/// Returns the systemd unit that gives a virtual machine its IP addresses.
pub fn net_unit(node: Node) -> String {
    let (cluster, fencing) = (node.ip(), node.fence_ip());
    format!(
        "[Unit]
Description=The addresses of {node}
DefaultDependencies=no
After=local-fs.target
Before=network-pre.target network.target network-online.target
Wants=network.target network-online.target
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/bin/ip link set lo up
ExecStart=/bin/ip address replace {cluster}/24 dev eth0
ExecStart=/bin/ip address replace {fencing}/24 dev eth1
ExecStart=/bin/ip link set eth0 up
ExecStart=/bin/ip link set eth1 up
[Install]
WantedBy=multi-user.target
"
    )
}

/// The unit that mounts etcd's own disk. systemd's mount units wait for udev, which these machines do not run.
const ETCD_DISK_UNIT: &str = "[Unit]
Description=The disk of etcd
DefaultDependencies=no
After=local-fs.target
Before=pacemaker.service
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/bin/mkdir -p /var/lib/etcd
ExecStart=/bin/mount -t ext4 /dev/vdb /var/lib/etcd
[Install]
WantedBy=multi-user.target
";

/// Writes and enables the unit that mounts etcd's own disk, in a machine's directory of units.
pub fn mount_etcd_disk(units: &Path) -> Result<()> {
    const NAME: &str = "lab-etcd-disk.service";
    sh::write(&units.join(NAME), ETCD_DISK_UNIT)?;
    let wanted = units.join("multi-user.target.wants");
    sh::make_dir(&wanted)?;
    Ok(symlink(Path::new("..").join(NAME), wanted.join(NAME))?)
}

/// Adds the lab's ssh key to the keys with which root can log in on a virtual machine.
pub fn authorize(ssh_of_root: &Path, public_key: &Path) -> Result<()> {
    sh::make_dir(ssh_of_root)?;
    fs::set_permissions(ssh_of_root, std::os::unix::fs::PermissionsExt::from_mode(0o700))?;
    let keys = ssh_of_root.join("authorized_keys");
    let (others, lab) = (fs::read_to_string(&keys).unwrap_or_default(), fs::read_to_string(public_key)?);
    if others.contains(&lab) { Ok(()) } else { tls::write_secret(&keys, (others + &lab).as_bytes()) }
}
