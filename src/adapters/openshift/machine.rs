//! The question whether OpenShift is deleting a node's Machine. The deletion waits until the member is gone, so the agent must
//! not add the member again. The question goes to the Kubernetes API, with a time limit.

use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use crate::adapters::kubernetes::api::{connect, list};
use crate::base::Fact;

/// The time limit of the request that reads whether a Machine is being deleted.
pub const PATIENCE: Duration = Duration::from_secs(3);
/// The API paths of the lists of Machines, in the Machine API and in the Cluster API.
const LISTS: &[&str] = &[
    "/apis/machine.openshift.io/v1beta1/namespaces/openshift-machine-api/machines",
    "/apis/cluster.x-k8s.io/v1beta1/namespaces/openshift-cluster-api/machines",
];

/// Returns whether the Machine of `node` is being deleted, as the Kubernetes API reports. The result is `Absent` without a
/// kubeconfig, because then no controller deletes Machines.
pub fn is_being_deleted(kubeconfig: &Path, node: &str, patience: Duration) -> Fact<bool> {
    if !kubeconfig.exists() {
        return Fact::Absent;
    }
    match ask(kubeconfig, node, patience) {
        Ok(deleted) => Fact::Known(deleted),
        Err(why) => Fact::Unknown(format!("whether the Machine of {node} is being deleted is not known: {why}")),
    }
}

fn ask(kubeconfig: &Path, node: &str, patience: Duration) -> Result<bool, String> {
    let (agent, access) = connect(kubeconfig, patience)?;
    for path in LISTS {
        let machines = list(&agent, &access, path)?;
        let fitting: Vec<&Value> = machines.iter().filter(|machine| is_of(machine, node)).collect();
        match fitting[..] {
            [] => {}
            [machine] => return Ok(machine.pointer("/metadata/deletionTimestamp").is_some_and(Value::is_string)),
            _ => return Err(format!("{} Machines fit it", fitting.len())),
        }
    }
    Ok(false)
}

fn is_of(machine: &Value, node: &str) -> bool {
    if let Some(named) = machine.pointer("/status/nodeRef/name").and_then(Value::as_str) {
        return named == node;
    }
    // For a node that has left the cluster, the machine's name is all that is left.
    let addresses = machine.pointer("/status/addresses").and_then(Value::as_array);
    addresses.is_some_and(|addresses| addresses.iter().any(|address| address["address"] == node))
}

#[cfg(test)]
#[path = "machine/tests.rs"]
mod tests;
