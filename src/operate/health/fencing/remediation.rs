//! The check that no other operator resets these nodes next to Pacemaker.

use super::{About, Case, Severity};
use crate::adapters::openshift::remediation::{Kind, Remediation};
use crate::base::Fact;
use crate::base::shell::command;

pub(super) fn check(case: &mut Case<'_>) {
    let remediations = match &case.asked.remediations {
        Fact::Known(remediations) => remediations,
        Fact::Unknown(why) => {
            // The problem of the BareMetalHosts already reports that the API does not answer.
            if !matches!(case.asked.attached_hosts, Fact::Unknown(_)) {
                let text = format!("whether another operator resets these nodes is not known: {why}");
                let command = Some("oc get nodehealthchecks,machinehealthchecks --all-namespaces".to_owned());
                case.add("remediation-not-known", Severity::Warning, About::Cluster, text, command);
            }
            return;
        }
        Fact::Absent | Fact::NotAsked => return,
    };
    for remediation in remediations {
        one(case, remediation);
    }
}

fn one(case: &mut Case<'_>, remediation: &Remediation) {
    let Remediation { kind, name, nodes, is_paused, .. } = remediation;
    let (word, of) = (kind.word(), nodes.join(" and "));
    let about = match nodes.as_slice() {
        [node] => About::Node(node),
        _ => About::Cluster,
    };
    let is_check = matches!(kind, Kind::NodeHealthCheck | Kind::MachineHealthCheck);
    let (id, severity, text) = match kind {
        _ if is_check && *is_paused => (
            "other-remediation",
            Severity::Notice,
            format!(
                "{word} {name} selects {of}, and is paused: once it is not, its operator resets a node whatever Pacemaker decides"
            ),
        ),
        _ if is_check => (
            "other-remediation",
            Severity::Warning,
            format!(
                "{word} {name} selects {of}: where one is not ready, its operator resets it whatever Pacemaker decides"
            ),
        ),
        Kind::SelfNodeRemediationConfig => (
            "other-remediation",
            Severity::Warning,
            format!(
                "{word} {name} has each node reset itself once it does not reach the API, whatever Pacemaker decides"
            ),
        ),
        _ => (
            "remediation-under-way",
            Severity::Critical,
            format!("{word} {name} resets {of} now, next to Pacemaker: two hands on one power switch"),
        ),
    };
    case.add(id, severity, about, text, Some(way_out(remediation)));
}

/// Returns the command that keeps `remediation` from resetting a node. It pauses a health check, and deletes any other object. For a
/// health check that is already paused, it shows the object.
fn way_out(remediation: &Remediation) -> String {
    let Remediation { kind, namespace, name, is_paused, .. } = remediation;
    let namespace = namespace.as_deref().unwrap_or("default");
    match kind {
        Kind::NodeHealthCheck if *is_paused => command!("oc get nodehealthcheck {} --output yaml", name),
        Kind::MachineHealthCheck if *is_paused => {
            command!("oc -n {} get machinehealthcheck {} --output yaml", namespace, name)
        }
        Kind::NodeHealthCheck => {
            let patch = r#"{"spec":{"pauseRequests":["Pacemaker fences these nodes"]}}"#;
            command!("oc patch nodehealthcheck {} --type merge --patch {}", name, patch)
        }
        Kind::MachineHealthCheck => {
            command!("oc -n {} annotate machinehealthcheck {} cluster.x-k8s.io/paused=", namespace, name)
        }
        Kind::FenceAgentsRemediation => command!("oc -n {} delete fenceagentsremediation {}", namespace, name),
        Kind::SelfNodeRemediation => command!("oc -n {} delete selfnoderemediation {}", namespace, name),
        Kind::SelfNodeRemediationConfig => command!("oc -n {} delete selfnoderemediationconfig {}", namespace, name),
    }
}
