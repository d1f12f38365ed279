//! The reasons not to reset a Node: an update, a deletion, or an operator's request.

use crate::adapters::kubernetes::nodes::Node;

/// Annotations of Deckhouse on a Node that an update drains or restarts, or that an operator has excluded.
const ANNOTATIONS: &[&str] = &[
    "update.node.deckhouse.io/disruption-approved",
    "update.node.deckhouse.io/approved",
    "node-manager.deckhouse.io/fencing-disable",
];
/// The taint of a Node that the cluster autoscaler removes.
const TAINT: &str = "ToBeDeletedByClusterAutoscaler";

/// Returns the reasons not to reset the machine of the Node `name`. `uid` is the UID at the first observation.
pub(super) fn reasons(name: &str, node: Option<&Node>, uid: Option<&str>) -> Vec<String> {
    let Some(node) = node else { return vec![format!("the Node {name} is gone")] };
    let mut reasons = Vec::new();
    if uid.is_some_and(|uid| uid != node.uid) {
        reasons.push(format!("the Node {name} is another one (UID {})", node.uid));
    }
    if node.is_being_deleted {
        reasons.push(format!("the Node {name} is being deleted"));
    }
    let annotated = ANNOTATIONS.iter().filter(|annotation| node.annotations.contains(**annotation));
    reasons.extend(annotated.map(|annotation| format!("annotation {annotation}")));
    if node.taints.contains(TAINT) {
        reasons.push(format!("taint {TAINT}"));
    }
    reasons
}
