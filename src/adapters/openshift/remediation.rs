//! Operators that reset a machine when its Node is not healthy, next to Pacemaker: node health checks and machine health checks that select a
//! node of the pair, and remediations that are under way.

pub mod selector;

use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use crate::adapters::kubernetes::api::{body, connect, list};
use crate::adapters::kubernetes::kubeconfig::Access;
use crate::base::{Fact, json};

pub(super) const NODE_CHECKS: &str = "/apis/remediation.medik8s.io/v1alpha1/nodehealthchecks";
pub(super) const MACHINE_CHECKS: &str = "/apis/machine.openshift.io/v1beta1/machinehealthchecks";
pub(super) const FENCINGS: &str = "/apis/fence-agents-remediation.medik8s.io/v1alpha1/fenceagentsremediations";
pub(super) const SELF_RESETS: &str = "/apis/self-node-remediation.medik8s.io/v1alpha1/selfnoderemediations";
pub(super) const SELF_CONFIGS: &str = "/apis/self-node-remediation.medik8s.io/v1alpha1/selfnoderemediationconfigs";
const MACHINES: &str = "/apis/machine.openshift.io/v1beta1/machines";
const NODES: &str = "/api/v1/nodes/";
/// The JSON pointer to the annotation that names the Node of a remediation. A health check with several templates gives a remediation
/// another name than its Node's.
const NODE_NAME: &str = "/metadata/annotations/remediation.medik8s.io~1node-name";
/// The JSON pointer to the annotation that pauses a machine health check, whatever its value is.
const PAUSED: &str = "/metadata/annotations/cluster.x-k8s.io~1paused";

/// The kind of an object that can reset a node, or that can create an object which does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    NodeHealthCheck,
    MachineHealthCheck,
    FenceAgentsRemediation,
    SelfNodeRemediation,
    SelfNodeRemediationConfig,
}

impl Kind {
    /// Returns the name of the kind in the Kubernetes API.
    pub fn word(self) -> &'static str {
        match self {
            Self::NodeHealthCheck => "NodeHealthCheck",
            Self::MachineHealthCheck => "MachineHealthCheck",
            Self::FenceAgentsRemediation => "FenceAgentsRemediation",
            Self::SelfNodeRemediation => "SelfNodeRemediation",
            Self::SelfNodeRemediationConfig => "SelfNodeRemediationConfig",
        }
    }
}

/// An object in the Kubernetes API that resets one of the two etcd nodes, or may do so.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Remediation {
    pub kind: Kind,
    /// The namespace of the object; `None` if it belongs to the whole cluster.
    pub namespace: Option<String>,
    pub name: String,
    /// The etcd nodes that the object can reset: one of the two, or both; empty if it is about every node of the cluster.
    pub nodes: Vec<String>,
    pub is_paused: bool,
}

/// Returns the objects that reset `nodes` independently of Pacemaker, or may do so; `Absent` where there is no kubeconfig.
pub fn of(kubeconfig: &Path, nodes: &[String], patience: Duration) -> Fact<Vec<Remediation>> {
    if !kubeconfig.exists() {
        return Fact::Absent;
    }
    match ask(kubeconfig, nodes, patience) {
        Ok(found) => Fact::Known(found),
        Err(why) => Fact::Unknown(why),
    }
}

fn ask(kubeconfig: &Path, nodes: &[String], patience: Duration) -> Result<Vec<Remediation>, String> {
    let (agent, access) = connect(kubeconfig, patience)?;
    let pair = Pair::read(&agent, &access, nodes)?;
    let mut found = Vec::new();
    for (path, kind) in [(NODE_CHECKS, Kind::NodeHealthCheck), (MACHINE_CHECKS, Kind::MachineHealthCheck)] {
        found.extend(list(&agent, &access, path)?.iter().filter_map(|check| pair.selected(kind, check)));
    }
    for (path, kind) in [(FENCINGS, Kind::FenceAgentsRemediation), (SELF_RESETS, Kind::SelfNodeRemediation)] {
        found.extend(list(&agent, &access, path)?.iter().filter_map(|object| pair.under_way(kind, object)));
    }
    let configs = list(&agent, &access, SELF_CONFIGS)?;
    found.extend(configs.iter().filter_map(|config| remediation(Kind::SelfNodeRemediationConfig, config, Vec::new())));
    found.sort();
    Ok(found)
}

/// One of the two etcd nodes, with its Node and its Machine from the Kubernetes API; `None` where the API has none.
struct Known {
    name: String,
    node: Option<Value>,
    machine: Option<Value>,
}

/// The two etcd nodes.
struct Pair(Vec<Known>);

impl Pair {
    fn read(agent: &ureq::Agent, access: &Access, nodes: &[String]) -> Result<Self, String> {
        let machines = list(agent, access, MACHINES)?;
        let known = |name: &String| {
            let text = body(agent, access, &format!("{NODES}{name}"))?;
            let node = text.map(|text| json::from_text(&text)).transpose();
            let node = node.map_err(|_| "the API's Node is not understood".to_owned())?;
            let is_its = |machine: &&Value| text_at(machine, "/status/nodeRef/name") == Some(name);
            Ok(Known { name: name.clone(), node, machine: machines.iter().find(is_its).cloned() })
        };
        nodes.iter().map(known).collect::<Result<_, String>>().map(Self)
    }

    /// Returns the health check `check` as a [`Remediation`] if its selector matches one of the two nodes, or that node's Machine; else
    /// `None`.
    fn selected(&self, kind: Kind, check: &Value) -> Option<Remediation> {
        let selector = check.pointer("/spec/selector");
        let object: fn(&Known) -> Option<&Value> = match kind {
            Kind::MachineHealthCheck => |known| known.machine.as_ref(),
            _ => |known| known.node.as_ref(),
        };
        let is_selected = |known: &&Known| object(known).is_some_and(|object| selector::matches(selector, object));
        let nodes: Vec<String> = self.0.iter().filter(is_selected).map(|known| known.name.clone()).collect();
        if nodes.is_empty() {
            return None;
        }
        let requests = check.pointer("/spec/pauseRequests").and_then(Value::as_array);
        let is_paused = requests.is_some_and(|requests| !requests.is_empty()) || check.pointer(PAUSED).is_some();
        Some(Remediation { is_paused, ..remediation(kind, check, nodes)? })
    }

    /// Returns `object`, a remediation in progress, if it is about one of the two nodes; else `None`. It is about a node if it has the name
    /// of the node or of the node's Machine, or an annotation with the node's name.
    fn under_way(&self, kind: Kind, object: &Value) -> Option<Remediation> {
        let names = [text_at(object, "/metadata/name"), text_at(object, NODE_NAME)];
        let is_its = |known: &&Known| {
            let machine = known.machine.as_ref().and_then(|machine| text_at(machine, "/metadata/name"));
            names.iter().flatten().any(|name| *name == known.name || Some(*name) == machine)
        };
        let nodes: Vec<String> = self.0.iter().filter(is_its).map(|known| known.name.clone()).collect();
        if nodes.is_empty() { None } else { remediation(kind, object, nodes) }
    }
}

fn remediation(kind: Kind, object: &Value, nodes: Vec<String>) -> Option<Remediation> {
    let name = text_at(object, "/metadata/name")?.to_owned();
    let namespace = text_at(object, "/metadata/namespace").map(str::to_owned);
    Some(Remediation { kind, namespace, name, nodes, is_paused: false })
}

fn text_at<'a>(object: &'a Value, pointer: &str) -> Option<&'a str> {
    object.pointer(pointer).and_then(Value::as_str)
}

#[cfg(test)]
#[path = "remediation/tests.rs"]
mod tests;
