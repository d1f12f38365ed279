//! When a Node is not to be reset: an update, a deletion, or an operator's wish.

use crate::adapters::kubernetes::nodes::Node;

/// Annotations of Deckhouse that mark a Node which an update drains or restarts, or which an operator has taken out.
const ANNOTATIONS: &[&str] = &[
    "update.node.deckhouse.io/disruption-approved",
    "update.node.deckhouse.io/approved",
    "node-manager.deckhouse.io/fencing-disable",
];
/// The taint by which the cluster autoscaler marks a Node that it takes away.
const TAINT: &str = "ToBeDeletedByClusterAutoscaler";

/// Returns why the machine of the Node `name` is not to be reset. `uid` is the UID that the Node had at the first look.
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
