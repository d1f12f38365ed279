//! A PodDisruptionBudget that lets one control-plane node be drained at a time.

use serde::Serialize;

use super::look;
use super::source::Target;
use crate::operate::failure::Failure;

/// The namespace of a PodDisruptionBudget, and the label (key, value) of the pods that it counts.
#[derive(Clone, Debug)]
pub struct Place {
    pub namespace: String,
    pub selector: (String, String),
}

/// A PodDisruptionBudget, and the number of voters from which it follows.
#[derive(Debug, Serialize)]
pub struct Guard {
    pub voters: usize,
    pub min_available: usize,
    pub manifest: Manifest,
}

/// A PodDisruptionBudget in the format of the Kubernetes API.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Manifest {
    api_version: &'static str,
    kind: &'static str,
    metadata: Metadata,
    spec: Spec,
}

#[derive(Debug, Serialize)]
struct Metadata {
    name: &'static str,
    namespace: String,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Spec {
    min_available: usize,
    selector: Selector,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Selector {
    match_labels: serde_json::Map<String, serde_json::Value>,
}

/// Builds the PodDisruptionBudget for the voters that `target` is to have. It does not write to the API.
pub fn guard(target: &Target, place: &Place) -> Result<Guard, Failure> {
    let seen = look::of_target(target)?;
    match seen.wanted_unknown {
        Some(why) => Err(Failure(why)),
        None => of(seen.membership.wanted, place),
    }
}

/// Builds the PodDisruptionBudget that lets one of `voters` pods be evicted at a time.
pub fn of(voters: usize, place: &Place) -> Result<Guard, Failure> {
    let min_available = voters.saturating_sub(1);
    if min_available == 0 {
        return Err(Failure(
            "a budget for one voter would guard nothing: 'tandem member add NAME=ADDRESS' first".to_owned(),
        ));
    }
    let (key, value) = place.selector.clone();
    let match_labels = [(key, value.into())].into_iter().collect();
    let manifest = Manifest {
        api_version: "policy/v1",
        kind: "PodDisruptionBudget",
        metadata: Metadata { name: "etcd-quorum-guard", namespace: place.namespace.clone() },
        spec: Spec { min_available, selector: Selector { match_labels } },
    };
    Ok(Guard { voters, min_available, manifest })
}

impl Manifest {
    /// Formats the PodDisruptionBudget as YAML. Label values are quoted as in JSON, which YAML reads alike.
    pub fn yaml(&self) -> String {
        let Metadata { name, namespace } = &self.metadata;
        let labels = self.spec.selector.match_labels.iter();
        let labels = labels.map(|(key, value)| format!("\n      \"{key}\": {value}")).collect::<Vec<_>>().concat();
        format!(
            "apiVersion: {}\nkind: {}\nmetadata:\n  name: {name}\n  namespace: \"{namespace}\"\nspec:\n  minAvailable: {}\n  selector:\n    \
             matchLabels:{labels}",
            self.api_version, self.kind, self.spec.min_available
        )
    }
}
