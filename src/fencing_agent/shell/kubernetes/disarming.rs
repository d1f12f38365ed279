//! The reasons not to reset a Node: an update, a deletion, or an operator's request.

use crate::adapters::kubernetes::nodes::Node;

/// Deckhouse's annotations of a Node that must not be reset, because an update drains or restarts it, or an operator has excluded it.
const ANNOTATIONS: &[&str] = &[
    "update.node.deckhouse.io/disruption-approved",
    "update.node.deckhouse.io/approved",
    "node-manager.deckhouse.io/fencing-disable",
];
/// The cluster autoscaler's taint of a Node that it will remove.
const TAINT: &str = "ToBeDeletedByClusterAutoscaler";

/// Returns the reasons why the machine of the Node `name` must not be reset. `uid` is the Node's UID when it was first observed.
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
