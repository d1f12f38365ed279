//! What a scenario needs: the state in which it begins, and the kind of hosts.

use crate::host;

/// The state of the lab in which a scenario begins.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Needs {
    /// Two voters, and no failure in Pacemaker. A lab that another scenario left healthy is good enough.
    Healthy,
    /// The state of [`Self::Healthy`], with the resource as a promotable clone.
    Promotable,
    /// The state of [`Self::Healthy`], with the shell agent.
    ShellAgent,
    /// The state of [`Self::Healthy`], on virtual machines where etcd has a disk of its own.
    EtcdDisk,
    /// The state of [`Self::Healthy`], on virtual machines where Pacemaker starts a fake kubelet, and etcd after it.
    Kubelet,
    /// Hosts with Pacemaker and fence devices, but without an etcd resource.
    NoEtcd,
    /// Two voters that `tandem setup` has set up.
    SetUp,
    /// Hosts with nothing but the packages, as RPMs leave them.
    Blank,
    /// Hosts with nothing but the packages, as Debian's packages leave them.
    BlankDebian,
    /// No lab at all, because the scenario makes its own.
    Nothing,
}

impl Needs {
    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Healthy => "two voters",
            Self::Promotable => "two voters of a promotable clone",
            Self::ShellAgent => "two voters of the shell agent",
            Self::EtcdDisk => "two voters, each on a disk of its own",
            Self::Kubelet => "two voters that start after kubelet",
            Self::NoEtcd => "hosts and fencing, without etcd",
            Self::SetUp => "two voters by 'tandem setup'",
            Self::Blank => "hosts with the packages alone, as RPMs leave them",
            Self::BlankDebian => "hosts with the packages alone, as Debian's leave them",
            Self::Nothing => "no lab: it makes its own",
        }
    }
}

/// The kinds of hosts on which a scenario can run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Hosts {
    Namespaces,
    Both,
    Vms,
}

impl Hosts {
    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Both => "in namespaces and in virtual machines",
            Self::Namespaces => "in namespaces",
            Self::Vms => "in virtual machines",
        }
    }

    pub(super) fn include(self, kind: host::Kind) -> bool {
        match self {
            Self::Both => true,
            Self::Namespaces => kind == host::Kind::Namespaces,
            Self::Vms => kind == host::Kind::Vm,
        }
    }
}
