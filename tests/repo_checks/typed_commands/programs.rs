//! The programs that are named to operators, and the package that contains each.

/// The origin of a program.
#[derive(Clone, Copy, Debug)]
pub(super) enum Package {
    /// A package that ours require or recommend, by its name in either kind.
    Named { deb: &'static str, rpm: &'static str },
    /// Part of every machine on which Pacemaker runs.
    Everywhere,
    /// Present where it is named: a program of OpenShift, of a firewall, or of the operator's own choice.
    WhereItIsNamed,
}

/// The programs of one package.
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

/// Returns the package that contains `program`.
pub(super) fn package_of(program: &str) -> Option<Package> {
    ALL.iter().find(|programs| programs.names.contains(&program)).map(|programs| programs.package)
}
