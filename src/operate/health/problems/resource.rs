//! Problems of etcd and kubelet as resources, and failures of everything that Pacemaker runs.

use super::{Found, on};
use crate::adapters::pacemaker::attributes::CLUSTER_ID;
use crate::adapters::pacemaker::seen::{Failure, Instance, Resource};
use crate::agent::resource::params;
use crate::base::shell::command;
use crate::base::utc;
use crate::operate::cluster::Cluster;
use crate::operate::health::view::{self, ResourceSeen};
use crate::operate::health::{Problem, Severity};

const LOAD_THRESHOLD: &str = "load-threshold";
/// Pacemaker's default for `load-threshold`.
const DEFAULT_THRESHOLD: &str = "80%";
/// Largest `load-threshold` that is reported, in percent. A node reaches a load of 100% whenever all its processors work.
const HIGHEST_WITH_TURNS: u32 = 100;

pub(super) fn find(cluster: &Cluster, found: &mut Found) {
    let Some(seen) = ResourceSeen::of(cluster) else { return };
    let names = view::names(cluster);
    for resource in [&seen.configuration.etcd, &seen.configuration.kubelet].into_iter().flatten() {
        whole(cluster, seen, resource, found);
        for node in names.iter().filter(|name| view::is_online(cluster, name)) {
            on_node(seen, resource, node, found);
        }
    }
    for failure in latest(seen).into_iter().filter(|failure| view::is_online(cluster, &failure.node)) {
        failed(cluster, seen, failure, found);
    }
    by_turns(cluster, seen, found);
    outdated(seen, found);
}

/// Reports the value 0 of the parameter [`params::BACKUPS`], which the agent replaces by 1.
fn outdated(seen: ResourceSeen<'_>, found: &mut Found) {
    let Some(etcd) = &seen.configuration.etcd else { return };
    if etcd.parameters.get(params::BACKUPS).is_some_and(|value| params::keeps_no_backup(value)) {
        let (id, name) = (&etcd.id, params::BACKUPS);
        let text = format!("{id} has {name}=0, which would delete the last backup: it counts as 1");
        found.notice("no-backups", None, text).typed(command!("pcs resource update {} {}=3", id, name));
    }
}

/// Reports a `load-threshold` that makes Pacemaker start one etcd at a time, if no etcd runs and a start has failed. The start of a node
/// without data must wait for the other node's start. With one start at a time it waits in vain.
fn by_turns(cluster: &Cluster, seen: ResourceSeen<'_>, found: &mut Found) {
    let names = view::names(cluster);
    let is_stopped = |name: &String| view::is_online(cluster, name) && view::etcd_fact(cluster, name).is_absent();
    let known = |name: &String| seen.configuration.permanent.get(name);
    let had_data = |name: &String| known(name).is_some_and(|own| own.contains_key(CLUSTER_ID));
    let etcd = seen.configuration.etcd.as_ref().map(|etcd| etcd.id.as_str());
    let fails = latest(seen).iter().any(|failure| Some(failure.resource.as_str()) == etcd && failure.task == "start");
    let waits = names.len() > 1 && names.iter().all(is_stopped) && !names.iter().all(had_data);
    let threshold = seen.configuration.properties.get(LOAD_THRESHOLD).map_or(DEFAULT_THRESHOLD, String::as_str);
    let percent = threshold.trim().trim_end_matches('%').parse::<u32>().unwrap_or_default();
    if fails && waits && percent <= HIGHEST_WITH_TURNS {
        let text = format!(
            "{LOAD_THRESHOLD} is {threshold}, so on busier machines Pacemaker starts one etcd at a time, and one without data waits for the other's start"
        );
        found.notice("load-threshold", None, text).typed(command!("pcs property set {}=1000%", LOAD_THRESHOLD));
    }
}

/// Returns whether another problem already reports why etcd does not run on `node`.
pub(super) fn explains(cluster: &Cluster, node: &str) -> bool {
    let Some(seen) = ResourceSeen::of(cluster) else { return cluster.pacemaker.is_absent() && node == cluster.here };
    let Some(etcd) = &seen.configuration.etcd else { return false };
    let latest = latest(seen);
    let failed = |id: &str| latest.iter().any(|failure| failure.resource == id && failure.node == node);
    // Pacemaker starts etcd after kubelet.
    let waits_for_kubelet = seen.configuration.kubelet.as_ref().is_some_and(|kubelet| {
        let runs = view::instance_on(seen.pacemaker, &kubelet.id, node).is_some_and(view::is_well);
        failed(&kubelet.id) && !runs
    });
    failed(&etcd.id)
        || waits_for_kubelet
        || view::is_disabled(etcd)
        || bans(seen, etcd).any(|(_, banned)| banned == node)
}

/// Returns whether the latest failure of etcd on `node` is a failed start.
pub(super) fn start_failed(cluster: &Cluster, node: &str) -> bool {
    let Some(seen) = ResourceSeen::of(cluster) else { return false };
    let Some(etcd) = &seen.configuration.etcd else { return false };
    let is_its = |failure: &&Failure| failure.resource == etcd.id && failure.node == node && failure.task == "start";
    latest(seen).into_iter().any(|failure| is_its(&failure))
}

/// The stage of a start of etcd that has neither succeeded nor failed: in progress, or expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Start {
    UnderWay,
    /// Pacemaker lists no operation of etcd on the node. The node has just joined, or something keeps etcd from it.
    Next,
}

/// Returns the stage of etcd's start on `node`; `None` if no start is in progress or expected.
pub(super) fn start(cluster: &Cluster, node: &str) -> Option<Start> {
    let seen = ResourceSeen::of(cluster)?;
    let etcd = seen.configuration.etcd.as_ref()?;
    let instance = view::instance_on(seen.pacemaker, &etcd.id, node);
    if instance.and_then(|instance| instance.pending.as_deref()) == Some("Starting") {
        return Some(Start::UnderWay);
    }
    // crm_mon leaves out a probe that found etcd stopped.
    let is_blank = seen.history(&etcd.id, node).is_none_or(|history| history.operations.is_empty());
    let may = view::may_start(cluster) && !seen.pacemaker.maintenance && !explains(cluster, node);
    (is_blank && may && instance.is_none_or(|instance| instance.managed)).then_some(Start::Next)
}

/// Returns the subcommand of `pcs` for `id`: `stonith` for a fence device, else `resource`.
pub(super) fn kind(seen: ResourceSeen<'_>, id: &str) -> &'static str {
    let is_device = seen.configuration.fence_devices.iter().any(|device| device.resource.id == id);
    if is_device { "stonith" } else { "resource" }
}

/// Reports a resource that is disabled or unmanaged.
fn whole(cluster: &Cluster, seen: ResourceSeen<'_>, resource: &Resource, found: &mut Found) {
    let id = resource.id.as_str();
    if view::is_disabled(resource) {
        let text = format!("{id} is disabled, so it runs nowhere");
        found.warning("resource-disabled", None, text).typed(command!("pcs resource enable {}", id));
    }
    let mut instances = seen.pacemaker.resources.iter().filter(|instance| instance.id == id && !instance.blocked);
    if instances.any(|instance| !instance.managed && !view::is_in_maintenance(cluster, instance)) {
        let text = format!("{id} is unmanaged, so it is neither started nor stopped");
        found.warning("resource-unmanaged", None, text).typed(command!("pcs resource manage {}", id));
    }
}

fn on_node(seen: ResourceSeen<'_>, resource: &Resource, node: &str, found: &mut Found) {
    let id = resource.id.as_str();
    let instance = view::instance_on(seen.pacemaker, id, node);
    if instance.is_some_and(|instance| instance.blocked) {
        let failure = latest(seen).into_iter().find(|failure| failure.resource == id && failure.node == node);
        let why = failure.map(failure_details).unwrap_or_default();
        let text = format!("{id} on {node} is blocked, as a stop failed and fencing is off or failed{why}");
        found.critical("resource-blocked", Some(node), text).typed(command!("pcs resource cleanup {}", id));
    }
    for (ban, _) in bans(seen, resource).filter(|(_, banned)| *banned == node) {
        let text = format!("the constraint {ban} keeps {id} from {node}");
        let clone = resource.clone.as_deref().unwrap_or(id);
        // `pcs resource ban` and `move` create constraints with this prefix.
        let problem = found.warning("resource-banned", Some(node), text);
        if ban.starts_with("cli-") {
            problem.typed(command!("pcs resource clear {} {}", clone, node));
        } else {
            problem.typed(command!("pcs constraint delete {}", ban));
        }
    }
    let history = seen.history(id, node).filter(|history| history.migration_threshold > 0);
    if let Some(history) = history.filter(|history| history.fail_count >= history.migration_threshold) {
        let text = format!("Pacemaker tries {id} on {node} no more, after {} failures", history.fail_count);
        found.critical("resource-given-up", Some(node), text).typed(command!(
            "pcs resource cleanup {} node={}",
            id,
            node
        ));
    }
}

/// Returns the ids of the constraints that ban a resource or its clone from a node, each with the node.
fn bans<'a>(seen: ResourceSeen<'a>, resource: &'a Resource) -> impl Iterator<Item = (&'a str, &'a str)> {
    let is_its = |name: &str| name == resource.id || resource.clone.as_deref() == Some(name);
    let bans = seen.pacemaker.bans.iter().filter(move |ban| is_its(&ban.resource));
    bans.map(|ban| (ban.id.as_str(), ban.node.as_str()))
}

/// Returns the latest failure of each resource on each node.
pub(super) fn latest(seen: ResourceSeen<'_>) -> Vec<&Failure> {
    let mut latest: Vec<&Failure> = Vec::new();
    for failure in &seen.pacemaker.failures {
        match latest.iter_mut().find(|known| known.node == failure.node && known.resource == failure.resource) {
            Some(known) if (known.at, known.call) < (failure.at, failure.call) => *known = failure,
            Some(_) => {}
            None => latest.push(failure),
        }
    }
    latest
}

/// Returns the time and the reason of a failure, as far as they are known: ` at TIME: REASON`.
pub(super) fn failure_details(failure: &Failure) -> String {
    format!("{}{}", failure_when(failure), failure_why(failure))
}

fn failure_when(failure: &Failure) -> String {
    failure.at.map(|at| format!(" at {}", utc(at))).unwrap_or_default()
}

fn failure_why(failure: &Failure) -> String {
    let why = if failure.reason.is_empty() { &failure.status } else { &failure.reason };
    if why.is_empty() { String::new() } else { format!(": {why}") }
}

fn failed(cluster: &Cluster, seen: ResourceSeen<'_>, failure: &Failure, found: &mut Found) {
    let (resource, node, task) = (failure.resource.as_str(), failure.node.as_str(), failure.task.as_str());
    let kind = kind(seen, resource);
    let runs = |instance: &Instance| view::is_well(instance) && instance.pending.is_none();
    // A device that now runs on the other node has recovered.
    let instances = || seen.pacemaker.resources.iter().filter(|instance| instance.id == resource);
    let healed = match kind {
        "stonith" => instances().any(runs),
        _ => view::instance_on(seen.pacemaker, resource, node).is_some_and(runs),
    };
    if healed {
        let (when, why) = (failure_when(failure), failure_why(failure));
        let text = format!("the {task} of {resource} on {node} failed{when} and healed by itself{why}");
        let problem = Problem::new("failure-healed", Severity::Notice, Some(node), text);
        let problem = if kind == "stonith" { problem.of_device(resource) } else { problem };
        found.add(problem).typed(command!("pcs {} cleanup {}", kind, resource));
    } else if kind == "stonith" || instances().any(|instance| instance.blocked) {
        // The device's fault and the blocked resource are problems of their own.
    } else if task == "start" {
        let text = format!("{resource} does not start on {node}, the last time{}", failure_details(failure));
        let problem = found.warning("start-failed", Some(node), text);
        match unit(seen, resource) {
            Some(unit) => {
                problem.typed(on(cluster, node, command!("journalctl --no-pager --lines 50 --unit {}", unit)));
            }
            None => problem.typed(on(cluster, node, "tandem explain")),
        }
    } else {
        let text = format!("the {task} of {resource} on {node} failed{}", failure_details(failure));
        found.warning("operation-failed", Some(node), text).typed(command!("pcs {} cleanup {}", kind, resource));
    }
}

/// Returns the systemd unit that the resource `id` runs; `None` if the resource is no unit.
fn unit<'a>(seen: ResourceSeen<'a>, id: &str) -> Option<&'a str> {
    let instance = seen.pacemaker.resources.iter().find(|instance| instance.id == id)?;
    instance.agent.strip_prefix("systemd:")
}

#[cfg(test)]
mod tests {
    use super::super::of;
    use super::*;
    use crate::adapters::pacemaker::seen::{Configuration, Pacemaker};
    use crate::base::Fact;
    use crate::operate::health::samples;

    /// Asserts that if the kubelet does not start, it is reported with the command that shows its journal. The stopped etcd is not
    /// reported, because the kubelet is the reason for it.
    #[test]
    fn a_kubelet_that_does_not_start_is_told_with_its_journal_and_says_why_etcd_does_not_run() {
        let told = |change: fn(&mut Configuration, &mut Pacemaker)| {
            let mut cluster = samples::read("start-failed");
            let (Fact::Known(configuration), Fact::Known(pacemaker)) =
                (&mut cluster.configuration, &mut cluster.pacemaker)
            else {
                panic!("nothing is known")
            };
            let (id, agent) = ("kubelet".to_owned(), "systemd:kubelet".to_owned());
            pacemaker.resources.push(Instance { id: id.clone(), agent: agent.clone(), ..Instance::default() });
            configuration.kubelet = Some(Resource { id: id.clone(), agent, ..Resource::default() });
            pacemaker.failures.iter_mut().for_each(|failure| failure.resource.clone_from(&id));
            change(configuration, pacemaker);
            let is_of_both = |id| ["start-failed", "etcd-stopped", "etcd-starting"].contains(&id);
            let problems = of(&cluster).into_iter().filter(|problem| is_of_both(problem.id));
            problems.map(|problem| (problem.id, problem.text, problem.command.unwrap_or_default())).collect::<Vec<_>>()
        };
        let problems = told(|_, _| {});
        let [(id, text, command)] = &problems[..] else { panic!("{problems:?}") };
        assert_eq!((*id, &**command), ("start-failed", "ssh node2 journalctl --no-pager --lines 50 --unit kubelet"));
        assert!(text.starts_with("kubelet does not start on node2, the last time at "), "{text}");
        let names_etcd = |problems: &[(&str, String, String)]| problems.iter().any(|(id, ..)| *id == "etcd-stopped");
        let it_is_another = told(|configuration, _| configuration.kubelet = None);
        assert!(names_etcd(&it_is_another), "{it_is_another:?}");
        let it_runs = told(|_, pacemaker| {
            for instance in pacemaker.resources.iter_mut().filter(|instance| instance.id == "kubelet") {
                (instance.active, instance.nodes) = (true, vec!["node2".to_owned()]);
            }
        });
        assert!(names_etcd(&it_runs), "{it_runs:?}");
    }

    #[test]
    fn a_low_load_threshold_is_named_where_it_can_keep_etcd_from_starting_and_nowhere_else() {
        let is_named = |change: fn(&mut Configuration, &mut Pacemaker)| {
            let mut cluster = samples::read("starts-by-turns");
            let (Fact::Known(configuration), Fact::Known(pacemaker)) =
                (&mut cluster.configuration, &mut cluster.pacemaker)
            else {
                panic!("nothing is known")
            };
            change(configuration, pacemaker);
            of(&cluster).iter().any(|problem| problem.id == "load-threshold")
        };
        assert!(is_named(|_, _| {}));
        assert!(is_named(|configuration, _| drop(
            configuration.properties.insert(LOAD_THRESHOLD.into(), "100%".into())
        )));
        assert!(!is_named(|configuration, _| drop(
            configuration.properties.insert(LOAD_THRESHOLD.into(), "1000%".into())
        )));
        assert!(!is_named(|_, pacemaker| pacemaker.failures.clear()), "they may be about to start");
        assert!(!is_named(|_, pacemaker| pacemaker.nodes[1].online = false), "the other one is not there to wait for");
        assert!(
            !is_named(|configuration, _| {
                configuration.permanent.values_mut().for_each(|own| drop(own.insert(CLUSTER_ID.into(), "1".into())));
            }),
            "who has data does not wait so"
        );
    }
}
