//! Problems with the histories of both nodes' data, and with data that was moved aside.

use std::path::Path;

use super::{Found, on, power, resource};
use crate::adapters::data_dir::AsideKind;
use crate::adapters::pacemaker::attributes::{LINEAGE, PRIMARY, parse_lineage};
use crate::base::shell::command;
use crate::base::utc;
use crate::decide::evidence::Lineage;
use crate::operate::cluster::Cluster;
use crate::operate::health::{view, words};

/// Returns how often each node's data continued without the other node's. The agent keeps this count in a node attribute.
fn lineages(cluster: &Cluster) -> Vec<(String, Lineage)> {
    let Some(configuration) = cluster.configuration.known() else { return Vec::new() };
    let of = |name: String| {
        let lineage = parse_lineage(configuration.permanent.get(&name)?.get(LINEAGE)?)?;
        Some((name, lineage))
    };
    view::names(cluster).into_iter().filter_map(of).collect()
}

pub(super) fn find_histories(cluster: &Cluster, found: &mut Found) {
    // Two voters share one history, whatever earlier records contain.
    if view::voters(cluster).is_some_and(|voters| voters >= 2) {
        return;
    }
    let all = lineages(cluster);
    let [(one, first), (other, second)] = all.as_slice() else { return };
    if first.forks == second.forks {
        let chosen = cluster.configuration.known().is_some_and(|known| known.properties.contains_key(PRIMARY));
        if first.is_beyond(second) && !chosen && waits_for_a_choice(cluster, one, other) {
            let keeps_neither = super::two_histories(cluster) == Some("primary");
            let why = if keeps_neither { "; two_histories=primary keeps neither here" } else { "" };
            let text = format!(
                "{one} and {other} both ran standalone, and no program can merge what they took: choose the data to keep{why}"
            );
            found.critical("histories-split", None, text).typed("crm_attribute --name etcd_primary --update NODE");
        }
        return;
    }
    let (ahead, behind) = if first.forks > second.forks { (one, other) } else { (other, one) };
    let serves = view::etcd(cluster, behind).is_some_and(|etcd| etcd.leader.is_some());
    if !view::is_online(cluster, ahead) && view::is_online(cluster, behind) && !serves {
        let text = format!(
            "{ahead} ran standalone and may have taken writes that {behind} lacks: start {ahead}, and nothing is lost"
        );
        found.critical("left-behind", Some(behind), text).typed(power::way_back(cluster, ahead));
    }
}

/// Returns whether the operator must choose which node's data to keep. False while both nodes are online and no start has failed, because
/// the agents may still join one node to the other by an earlier decision. Also false once both run in one cluster.
fn waits_for_a_choice(cluster: &Cluster, one: &str, other: &str) -> bool {
    let of = |name: &str| view::etcd(cluster, name).map(|etcd| etcd.cluster_id.as_str());
    let (runs_here, runs_there) = (of(one), of(other));
    if runs_here.is_some() && runs_there.is_some() {
        return runs_here != runs_there;
    }
    let both_are_there = view::is_online(cluster, one) && view::is_online(cluster, other);
    let refused = [one, other].iter().any(|name| resource::start_failed(cluster, name));
    refused || !both_are_there
}

/// Reports backups and given-up histories next to etcd's data, with the command that reads each on its node.
pub(super) fn find_moved_aside(cluster: &Cluster, found: &mut Found) {
    for name in view::names(cluster) {
        for moved in view::collected(cluster, &name).map(|known| known.moved_aside.as_slice()).unwrap_or_default() {
            let (path, at, size) = (&moved.path, utc(moved.at), words::size(moved.bytes));
            if AsideKind::of(Path::new(path)) == Some(AsideKind::History) {
                let text = format!(
                    "a history that was given up lies in {path} on {name}, of {at}, {size}, with writes that may exist nowhere else: \
                     'tandem data-dir forget {}' there once you know that nothing in it is missed",
                    name_of(path)
                );
                found.notice("moved-aside", Some(&name), text).typed(on(
                    cluster,
                    &name,
                    command!("tandem data-dir diff {} live", path),
                ));
                continue;
            }
            // A backup needs no 'forget', because the agent itself deletes all but the newest ones.
            let text = format!(
                "data that was moved aside lies in {path} on {name}, of {at}, {size}: 'rm -r' it once you know that nothing in it is missed"
            );
            found.notice("moved-aside", Some(&name), text).typed(on(
                cluster,
                &name,
                command!("tandem data-dir show {}", path),
            ));
        }
    }
}

/// Returns the last part of a path.
fn name_of(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::super::of;
    use super::*;
    use crate::base::Fact;
    use crate::operate::health::samples;

    fn is_told(cluster: &Cluster) -> bool {
        of(cluster).iter().any(|problem| problem.id == "histories-split")
    }

    #[test]
    fn a_parameter_that_keeps_neither_history_is_named() {
        let mut cluster = samples::read("histories-split");
        let text =
            |cluster: &Cluster| of(cluster).into_iter().find(|problem| problem.id == "histories-split").unwrap().text;
        assert!(text(&cluster).ends_with("choose the data to keep"));
        let Fact::Known(configuration) = &mut cluster.configuration else { panic!("no configuration") };
        let etcd = configuration.etcd.as_mut().unwrap();
        for (name, value) in [("configured_primary", "node1"), ("two_histories", "primary")] {
            etcd.parameters.insert(name.to_owned(), value.to_owned());
        }
        assert!(text(&cluster).ends_with("choose the data to keep; two_histories=primary keeps neither here"));
    }

    /// Asserts that no choice of the data is asked for while the agent joins the nodes by itself. The operator is asked once a start has
    /// failed.
    #[test]
    fn a_choice_is_asked_for_once_a_start_has_refused_and_of_no_node_that_has_joined() {
        let mut cluster = samples::read("histories-split");
        assert!(is_told(&cluster));
        assert!(!is_told(&samples::read("histories-split-starting")), "the agent is choosing");
        cluster.etcd = samples::read("learner").etcd;
        assert!(!is_told(&cluster), "it has joined");
        let mut away = samples::read("histories-split-starting");
        let Fact::Known(pacemaker) = &mut away.pacemaker else { panic!("no crm_mon") };
        pacemaker.nodes[1].online = false;
        assert!(is_told(&away), "nobody is there to choose");
    }
}
