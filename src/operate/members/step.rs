//! The steps of a change of a pair.

use serde::{Deserialize, Serialize};

/// A step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum PairStep {
    /// The node that stays is healthy, there is room, the new BMC answers, and there is a copy of the data.
    Check,
    /// The old node leaves the member list.
    Leave,
    /// The old node runs nothing any more.
    Out,
    /// Pacemaker forgets the old node.
    Forget,
    /// The new node can be fenced.
    Device,
    /// `node_ip_map` has the nodes that are to be.
    Map,
    /// The new machine has what a node has before Pacemaker begins.
    Prepare,
    /// The new node is in Pacemaker's cluster.
    Add,
    /// What OpenShift's API has of the old node is in files.
    Save,
    /// The API has none of it any more.
    Delete,
    /// The new machine has a Node, and OpenShift's operators bring it into the cluster.
    Node,
    /// Its etcd votes.
    Join,
    /// Both have the same.
    Verify,
}

/// Those of a replacement, in their order.
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

/// The nodes of a change; one that it has not is empty.
#[derive(Clone, Copy, Debug)]
pub(super) struct Names<'a> {
    pub(super) here: &'a str,
    pub(super) old: &'a str,
    pub(super) new: &'a str,
    /// Whether a third voter votes, which keeps a majority with the node that stays.
    pub(super) third_voter: bool,
}

impl PairStep {
    /// For whoever reads.
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

    /// Whose work it is.
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
