//! The programs that are named to operators, and the package that contains each.

/// The origin of a program that a printed command uses.
#[derive(Clone, Copy, Debug)]
pub(super) enum Package {
    /// The program is in a package that ours require or recommend. The names are those of the Debian package and of the RPM.
    Named { deb: &'static str, rpm: &'static str },
    /// The program is on every machine on which Pacemaker runs.
    Everywhere,
    /// The program is present where a text names it. It belongs to OpenShift, to a firewall, or is of the operator's choice.
    WhereItIsNamed,
}

/// The programs of one package that printed commands use.
#[derive(Debug)]
pub(super) struct Programs {
    pub(super) names: &'static [&'static str],
    pub(super) package: Package,
}

const fn named(names: &'static [&'static str], deb: &'static str, rpm: &'static str) -> Programs {
    Programs { names, package: Package::Named { deb, rpm } }
}

pub(super) const ALL: &[Programs] = &[
    named(&["pcs"], "pcs", "pcs"),
    named(&["podman"], "podman", "podman"),
    named(&["corosync-quorumtool", "corosync-cmapctl"], "corosync", "corosync"),
    named(&["pacemakerd"], "pacemaker", "pacemaker"),
    named(
        &["attrd_updater", "cibadmin", "cibsecret", "crm_attribute", "crm_node", "crm_resource", "stonith_admin"],
        "pacemaker-cli-utils",
        "pacemaker-cli",
    ),
    named(&["etcdctl"], "etcd-client", "%{_bindir}/etcdctl"),
    named(&["openssl"], "openssl", "openssl"),
    named(&["scp", "ssh"], "openssh-client", "openssh-clients"),
    Programs { names: &["fence_redfish_rs", "watchdog-mux", "fencing-agent"], package: Package::Everywhere },
    Programs {
        names: &[
            "cat",
            "cd",
            "chmod",
            "chown",
            "command",
            "df",
            "dmesg",
            "du",
            "echo",
            "findmnt",
            "getent",
            "hostnamectl",
            "install",
            "ip",
            "journalctl",
            "ls",
            "man",
            "mkdir",
            "modprobe",
            "mount",
            "mv",
            "pgrep",
            "ping",
            "ps",
            "readlink",
            "reboot",
            "rm",
            "ss",
            "systemctl",
            "timedatectl",
            "true",
            "ulimit",
            "uname",
            "wdctl",
        ],
        package: Package::Everywhere,
    },
    Programs {
        names: &["apt-get", "crictl", "curl", "dmidecode", "dnf", "etcdutl", "fio", "firewall-cmd", "kubectl", "oc"],
        package: Package::WhereItIsNamed,
    },
];

/// Returns the origin of `program`, or `None` if no row of [`ALL`] has it.
pub(super) fn package_of(program: &str) -> Option<Package> {
    ALL.iter().find(|programs| programs.names.contains(&program)).map(|programs| programs.package)
}
