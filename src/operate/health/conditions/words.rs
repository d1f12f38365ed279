//! The names of conditions, with the reasons for true and for false, as OpenShift has them.

use super::Status;

/// The name of a condition, and its reasons if it is true and if it is false.
#[derive(Clone, Copy, Debug)]
pub struct Word {
    pub kind: &'static str,
    if_true: &'static str,
    if_false: &'static str,
}

const fn word(kind: &'static str, if_true: &'static str, if_false: &'static str) -> Word {
    Word { kind, if_true, if_false }
}

/// The reason of a condition with an unknown status.
pub const NOT_OBSERVED: &str = "NotObserved";
/// The reason of a condition that belongs to a resource which the cluster does not have.
pub const NOT_CONFIGURED: &str = "NotConfigured";
/// The reason of a false `NodeCountAsExpected` if there are too many nodes, not too few.
pub const EXCESSIVE_NODES: &str = "ExcessiveNodes";

impl Word {
    pub fn reason(&self, status: Status) -> &'static str {
        match status {
            Status::True => self.if_true,
            Status::False => self.if_false,
            Status::Unknown => NOT_OBSERVED,
        }
    }
}

/// The conditions of a cluster.
pub const CLUSTER: &[Word] = &[
    word("Healthy", "ClusterHealthy", "ClusterUnhealthy"),
    word("InService", "InService", "InMaintenance"),
    word("NodeCountAsExpected", "AsExpected", "InsufficientNodes"),
];

/// The conditions of a node.
pub const NODE: &[Word] = &[
    word("Healthy", "NodeHealthy", "NodeUnhealthy"),
    word("Online", "Online", "Offline"),
    word("InService", "InService", "InMaintenance"),
    word("Active", "Active", "Standby"),
    word("Ready", "Ready", "Pending"),
    word("Clean", "Clean", "Unclean"),
    word("Member", "Member", "NotMember"),
    word("FencingAvailable", "FencingAvailable", "FencingUnavailable"),
    word("FencingHealthy", "FencingHealthy", "FencingUnhealthy"),
];

/// The conditions of a resource and of a fence device.
pub const RESOURCE: &[Word] = &[
    word("Healthy", "ResourceHealthy", "ResourceUnhealthy"),
    word("InService", "InService", "InMaintenance"),
    word("Managed", "Managed", "Unmanaged"),
    word("Enabled", "Enabled", "Disabled"),
    word("Operational", "Operational", "Failed"),
    word("Active", "Active", "Inactive"),
    word("Started", "Started", "Stopped"),
    word("Schedulable", "Schedulable", "Unschedulable"),
];
