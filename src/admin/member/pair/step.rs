//! The steps of a change of a pair.

use serde::{Deserialize, Serialize};

/// A step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Step {
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
    /// Its etcd votes.
    Join,
    /// Both have the same.
    Verify,
}

impl Step {
    /// Whose work it is.
    pub(super) fn who(self) -> &'static str {
        match self {
            Self::Join => "agent",
            Self::Prepare => "operator",
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
            Self::Join => "join",
            Self::Verify => "verify",
        }
    }
}
