//! The conditions of the kubelet and of etcd on a node.

use super::words::{NOT_CONFIGURED, RESOURCE};
use super::{Condition, ResourceConditions, Status, known, missing, status, together};
use crate::adapters::options::yes_no;
use crate::adapters::pacemaker::seen::{Configuration, History, Instance, Node, Pacemaker, Resource};
use crate::operate::cluster::Cluster;

const KUBELET: &str = "Kubelet";
const ETCD: &str = "Etcd";

/// A resource that the conditions report: the kubelet or etcd.
struct Kind {
    name: &'static str,
    /// The end of the agent's name, by which OpenShift's operator finds the resource.
    agent: &'static str,
    configured: fn(&Configuration) -> Option<&Resource>,
}

const KINDS: [Kind; 2] = [
    Kind { name: KUBELET, agent: "systemd:kubelet", configured: |configuration| configuration.kubelet.as_ref() },
    Kind { name: ETCD, agent: ":podman-etcd", configured: |configuration| configuration.etcd.as_ref() },
];

pub(super) fn of(cluster: &Cluster, node: &str) -> Vec<ResourceConditions> {
    KINDS.iter().map(|kind| of_kind(cluster, node, kind)).collect()
}

/// Returns whether the kubelet and etcd run, as parts of a node's health. The kubelet is left out if the cluster does not have it.
pub(super) fn running(resources: &[ResourceConditions]) -> impl Iterator<Item = (&'static str, Status)> {
    let there = resources.iter().filter(|resource| {
        let is_configured = resource.conditions.iter().all(|condition| condition.reason != NOT_CONFIGURED);
        is_configured || resource.name == ETCD
    });
    there.map(|resource| {
        let runs = ["Active", "Started"].map(|kind| status(&resource.conditions, kind));
        (resource.name, Status::all(runs))
    })
}

fn of_kind(cluster: &Cluster, node: &str, kind: &Kind) -> ResourceConditions {
    let configured = cluster.configuration.known().and_then(kind.configured);
    let seen = known(cluster);
    // Pacemaker shows every resource, including stopped ones.
    let id = configured.map(|resource| resource.id.as_str()).or_else(|| {
        let is_one = |instance: &&Instance| instance.agent.ends_with(kind.agent) && !instance.orphaned;
        seen?.resources.iter().find(is_one).map(|instance| instance.id.as_str())
    });
    let (Some(seen), Some(id)) = (seen, id) else {
        let is_known = seen.is_some() || cluster.configuration.known().is_some();
        return unknown(kind.name, is_known && id.is_none());
    };
    let conditions = match instance_on(seen, id, node) {
        Some(instance) => of_instance(seen, instance, instance.nodes.iter().any(|other| other == node)),
        None => of_absent(seen.maintenance, configured),
    };
    with_history(kind.name, conditions, seen, id, node)
}

fn unknown(name: &'static str, is_not_configured: bool) -> ResourceConditions {
    let mut conditions = together(RESOURCE, &[Status::Unknown; 8]);
    if is_not_configured {
        for condition in &mut conditions {
            condition.reason = NOT_CONFIGURED;
        }
    }
    let (fail_count, migration_threshold, last_start, last_stop, last_failure) = (None, None, None, None, None);
    ResourceConditions { name, conditions, fail_count, migration_threshold, last_start, last_stop, last_failure }
}

/// Returns the instance of the resource `id` on `node`. If `node` has none, returns an instance that runs on no node. A clone has one of
/// these for each node on which it does not run.
fn instance_on<'a>(seen: &'a Pacemaker, id: &str, node: &str) -> Option<&'a Instance> {
    let instances = || seen.resources.iter().filter(|instance| instance.id == id && !instance.orphaned);
    let here = instances().find(|instance| instance.nodes.iter().any(|other| other == node));
    here.or_else(|| instances().find(|instance| instance.nodes.is_empty()))
}

/// Returns the conditions of an instance on a node. If `is_there` is false, the instance is not on that node, so it is neither active nor
/// started.
pub(super) fn of_instance(seen: &Pacemaker, instance: &Instance, is_there: bool) -> Vec<Condition> {
    // Older versions of crm_mon show a resource in maintenance only as unmanaged.
    let is_in_maintenance = |node: &Node| node.maintenance && instance.nodes.contains(&node.name);
    let in_service = !(instance.maintenance || seen.maintenance || seen.nodes.iter().any(is_in_maintenance));
    let is_started = ["Started", "Promoted", "Unpromoted"].contains(&instance.role.as_str());
    all([
        in_service,
        instance.managed,
        instance.target_role.as_deref() != Some("Stopped"),
        !instance.failed,
        is_there && instance.active,
        is_there && is_started,
        !instance.blocked,
    ])
}

/// Returns the conditions of a resource that has no instance for a node. They follow from its configuration.
pub(super) fn of_absent(cluster_in_maintenance: bool, configured: Option<&Resource>) -> Vec<Condition> {
    let meta = |name: &str| configured.and_then(|resource| resource.meta.get(name)).map(String::as_str);
    let in_service = !cluster_in_maintenance && meta("maintenance").and_then(yes_no::of_pacemaker) != Some(true);
    let managed = in_service && meta("is-managed").and_then(yes_no::of_pacemaker) != Some(false);
    let enabled = !meta("target-role").is_some_and(|role| role.eq_ignore_ascii_case("stopped"));
    all([in_service, managed, enabled, true, false, false, true])
}

/// Returns a resource's conditions from InService, Managed, Enabled, Operational, Active, Started and Schedulable, in this order.
/// InService does not affect Healthy. In maintenance Managed is false, because Pacemaker manages nothing.
fn all(parts: [bool; 7]) -> Vec<Condition> {
    let parts = parts.map(Status::from);
    let mut statuses = vec![Status::all(parts[1..].iter().copied())];
    statuses.extend(parts);
    let mut conditions = together(RESOURCE, &statuses);
    let message = missing(&conditions[2..], std::iter::empty());
    conditions[0].message = message;
    conditions
}

fn with_history(
    name: &'static str,
    conditions: Vec<Condition>,
    seen: &Pacemaker,
    id: &str,
    node: &str,
) -> ResourceConditions {
    let is_this = |history: &&History| history.node == node && history.resource == id;
    let history = seen.histories.iter().find(is_this);
    let last = |task: &str| {
        let operations = history.map(|history| history.operations.as_slice()).unwrap_or_default();
        operations.iter().filter(|operation| operation.task == task).filter_map(|operation| operation.last_change).max()
    };
    let failures = seen.failures.iter().filter(|failure| failure.node == node && failure.resource == id);
    let last_failure = failures.filter_map(|failure| failure.at).max();
    ResourceConditions {
        name,
        conditions,
        fail_count: history.map(|history| history.fail_count),
        migration_threshold: history.map(|history| history.migration_threshold),
        last_start: last("start"),
        last_stop: last("stop"),
        last_failure: history.and_then(|history| history.last_failure).max(last_failure),
    }
}
