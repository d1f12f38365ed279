//! The steps of a change of a pair.

use serde::{Deserialize, Serialize};

/// A step of a replacement, an addition or a removal of a node in a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum PairStep {
    /// The step that checks the node that stays, its free space and the new node's BMC, and takes a snapshot of the data.
    Check,
    /// The step that removes the old node from etcd's member list.
    Leave,
    /// The step that stops Pacemaker on the old node, or waits until the old node is fenced.
    Out,
    /// The step that removes the old node from the configuration of Corosync and Pacemaker.
    Forget,
    /// The step that creates the new node's fence device, and waits until Pacemaker runs it.
    Device,
    /// The step that writes the nodes of the future pair into the resource's parameter `node_ip_map`.
    Map,
    /// The step that sets up the new machine with everything that a node needs before Pacemaker starts.
    Prepare,
    /// The step that adds the new node to Corosync and Pacemaker, and starts both there.
    Add,
    /// The step that saves the old node's objects in OpenShift's API as files.
    Save,
    /// The step that deletes the old node's objects from OpenShift's API.
    Delete,
    /// The step that waits until the new machine is a ready Node of OpenShift. OpenShift's operators add it to the Pacemaker cluster.
    Node,
    /// The step that waits until the new node's etcd votes.
    Join,
    /// The last step, which checks that both nodes have the same data and that the new node can fence the other one.
    Verify,
}

/// The steps of a replacement of a node, in their order.
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

/// The names of the nodes in a change; empty for a node that the change does not have.
#[derive(Clone, Copy, Debug)]
pub(super) struct Names<'a> {
    pub(super) here: &'a str,
    pub(super) old: &'a str,
    pub(super) new: &'a str,
    /// True if there is a third voter, so that etcd keeps a majority while the old node is missing.
    pub(super) third_voter: bool,
}

impl PairStep {
    /// Returns the description of the step for the operator.
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

    /// Returns the program or person that carries out the step: `tandem`, `agent` or `operator`.
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
