//! The steps of a change of a pair.

use serde::{Deserialize, Serialize};

/// A step of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum PairStep {
    /// The node that stays is healthy, there is space, the new BMC answers, and a copy of the data exists.
    Check,
    /// The old node leaves the member list.
    Leave,
    /// The old node runs no part of the cluster.
    Out,
    /// Pacemaker has forgotten the old node.
    Forget,
    /// The new node can be fenced.
    Device,
    /// `node_ip_map` has the nodes of the future pair.
    Map,
    /// The new machine has everything that a node needs before Pacemaker starts.
    Prepare,
    /// The new node is in Pacemaker's cluster.
    Add,
    /// Files contain the old node's objects in OpenShift's API.
    Save,
    /// The API has no object of the old node.
    Delete,
    /// The new machine has a Node, and OpenShift's operators bring it into the cluster.
    Node,
    /// The new node's etcd votes.
    Join,
    /// Both nodes have the same data, and the new one can fence the other one.
    Verify,
}

/// The steps of a replacement, in their order.
pub(super) const OF_A_REPLACEMENT: [PairStep; 10] = [
    PairStep::Check,
    PairStep::Leave,
    PairStep::Out,
    PairStep::Forget,
    PairStep::Device,
    PairStep::Map,
    PairStep::Prepare,
    PairStep::Add,
    PairStep::Join,
    PairStep::Verify,
];

/// The nodes of a change; empty where there is none.
#[derive(Clone, Copy, Debug)]
pub(super) struct Names<'a> {
    pub(super) here: &'a str,
    pub(super) old: &'a str,
    pub(super) new: &'a str,
    /// True if there is a third voter, with which the node that stays keeps a majority.
    pub(super) third_voter: bool,
}

impl PairStep {
    /// Describes the step for people.
    pub(super) fn words(self, names: &Names<'_>) -> String {
        let Names { here, old, new, third_voter } = names;
        match self {
            Self::Check => format!("check that {here} is healthy, and take a snapshot"),
            Self::Leave if *third_voter => {
                format!("leave: {old} is fenced, and removed from the member list by {here} and the third voter")
            }
            Self::Leave => format!("leave: pcs node standby {old}, or {here} serves alone already"),
            Self::Out => format!("out: pcs cluster stop {old}, or it is off"),
            Self::Forget => format!("forget: pcs cluster node remove {old}, its fence device, its constraints"),
            Self::Device => format!("fence device of {new}, and its monitor"),
            Self::Map => "map: node_ip_map of the resource".to_owned(),
            Self::Prepare => format!("prepare: tandem setup join on {new}"),
            Self::Add => format!("add: pcs cluster node add {new}"),
            Self::Save => format!("save: what OpenShift's API has of {old}"),
            Self::Delete => format!("delete: etcd's Secrets of {old}, its BareMetalHost, its Machine and its jobs"),
            Self::Node => format!("node: 'oc apply' what is to be the new {new}; the etcd operator adds it"),
            Self::Join => format!("join: {new} gets a copy, and votes once it has caught up"),
            Self::Verify if new.is_empty() => format!("verify: {here} is the only voter, and takes writes"),
            Self::Verify if *third_voter => {
                format!(
                    "verify: three voters of which either node may be lost, {new} has equal data and can fence {here}"
                )
            }
            Self::Verify => {
                format!("verify: two voters with equal data, both agents ready, and {new} can fence {here}")
            }
        }
    }

    /// Returns the program or person that carries out the step.
    pub(super) fn who(self) -> &'static str {
        match self {
            Self::Join => "agent",
            Self::Prepare | Self::Node => "operator",
            _ => "tandem",
        }
    }

    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Check => "check",
            Self::Leave => "leave",
            Self::Out => "out",
            Self::Forget => "forget",
            Self::Device => "fence device",
            Self::Map => "map",
            Self::Prepare => "prepare",
            Self::Add => "add",
            Self::Save => "save",
            Self::Delete => "delete",
            Self::Node => "node",
            Self::Join => "join",
            Self::Verify => "verify",
        }
    }
}
