//! Findings about the cluster as a whole, and about each of its nodes.

use std::collections::BTreeSet;

use super::{About, Case, Level};
use crate::adapters::options::yes_no;
use crate::base::Fact;
use crate::base::shell::command;
use crate::operate::cluster::{Cluster, Etcd};
use crate::operate::health::problems::{on, way_back, way_there};
use crate::operate::health::view;

/// Services that must start at boot, so that a fenced node rejoins the cluster by itself.
const DAEMONS: [&str; 3] = ["corosync", "pacemaker", "pcsd"];

pub(super) fn check(case: &mut Case<'_>) {
    enabled(case);
    nodes(case);
    voters(case);
    daemons(case);
    bare_metal_hosts(case);
}

fn enabled(case: &mut Case<'_>) {
    let property = case.configuration.properties.get("stonith-enabled");
    if property.and_then(|value| yes_no::of_pacemaker(value)) == Some(false) {
        let text =
            "fencing is switched off for the whole cluster: after a failure nobody is fenced, and nothing goes on";
        let command = "pcs property set stonith-enabled=true";
        case.add("stonith-disabled", Level::Failure, About::Cluster, text.to_owned(), Some(command.to_owned()));
    }
}

fn nodes(case: &mut Case<'_>) {
    match &case.cluster.pacemaker {
        Fact::Known(pacemaker) => {
            for name in &case.configuration.nodes {
                let node = pacemaker.nodes.iter().find(|node| node.name == *name);
                if node.is_some_and(|node| node.online && !node.unclean && !node.pending) {
                    continue;
                }
                let text = format!(
                    "{name} is not online, so it was not asked, and could not fence{}",
                    way_there(case.cluster, name)
                );
                let command = Some(way_back(case.cluster, name));
                case.add("node-not-online", Level::Warning, About::Node(name), text, command);
            }
        }
        Fact::Absent => {
            let text = "Pacemaker is stopped on this node: nothing here fences".to_owned();
            case.add("pacemaker-stopped", Level::Failure, About::Cluster, text, Some("pcs cluster start".to_owned()));
        }
        unknown => {
            let text = format!("Pacemaker was not asked: {}", unknown.why_unknown());
            case.add("not-known", Level::Unknown, About::Cluster, text, Some("pcs status".to_owned()));
        }
    }
}

/// Returns the names of the voters, from the member list of the etcd with the newest term. Etcds that have a leader take precedence.
pub fn voters_of(cluster: &Cluster) -> Option<BTreeSet<String>> {
    let known = cluster.etcd.values().filter_map(Fact::known).filter(|etcd| !etcd.members.is_empty());
    let newest: &Etcd = known.max_by_key(|etcd| (etcd.leader.is_some(), etcd.term))?;
    Some(newest.members.iter().filter(|member| !member.learner).map(|member| member.name.clone()).collect())
}

fn voters(case: &mut Case<'_>) {
    let text = match voters_of(case.cluster) {
        Some(voters) if case.configuration.nodes.iter().all(|node| voters.contains(node)) => return,
        Some(voters) => {
            let voters: Vec<String> = voters.into_iter().collect();
            format!("only {} votes: whoever is fenced now may be the only one with all data", voters.join(" and "))
        }
        None if case.configuration.etcd.is_none() => return,
        None => "no etcd says who votes".to_owned(),
    };
    case.add("not-two-voters", Level::Warning, About::Cluster, text, Some("tandem status".to_owned()));
}

fn daemons(case: &mut Case<'_>) {
    for node in &case.configuration.nodes {
        let collected = match case.cluster.collected.get(node) {
            Some(Fact::Known(collected)) => collected,
            // A node that is down publishes nothing, and has a finding of its own.
            _ if !view::is_online(case.cluster, node) => continue,
            _ => {
                let text = format!(
                    "{node} publishes nothing of itself: its UUID, its network and what its own fence devices measured \
                     are not compared"
                );
                let command = Some(on(case.cluster, node, "systemctl enable --now tandem-collect.timer"));
                case.add("not-collected", Level::Warning, About::Node(node), text, command);
                continue;
            }
        };
        for daemon in DAEMONS {
            if collected.enabled.get(daemon) == Some(&false) {
                let text =
                    format!("{daemon} is not started at boot on {node}: once fenced, it does not come back by itself");
                let command = Some(on(case.cluster, node, command!("systemctl enable {}", daemon)));
                case.add("not-enabled", Level::Warning, About::Node(node), text, command);
            }
        }
    }
}

fn bare_metal_hosts(case: &mut Case<'_>) {
    match &case.asked.attached_hosts {
        Fact::Known(hosts) => {
            for host in hosts {
                let text = format!(
                    "OpenShift's bare-metal operator manages the power of {host}, too: it may switch on a node that was \
                     fenced off, or the other way round"
                );
                let command = command!(
                    "oc -n openshift-machine-api annotate baremetalhost {} baremetalhost.metal3.io/detached=",
                    host
                );
                case.add("host-not-detached", Level::Warning, About::Cluster, text, Some(command));
            }
        }
        Fact::Unknown(why) => {
            let text = format!("whether OpenShift manages the power of these nodes, too, is not known: {why}");
            let command = Some("oc -n openshift-machine-api get baremetalhost".to_owned());
            case.add("hosts-not-known", Level::Warning, About::Cluster, text, command);
        }
        Fact::Absent | Fact::NotAsked => {}
    }
}
