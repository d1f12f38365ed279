//! Problems of the cluster as a whole, and of each of its nodes.

use std::collections::BTreeSet;

use super::{About, Case, Severity};
use crate::base::Fact;
use crate::base::shell::command;
use crate::operate::cluster::{Cluster, Etcd};
use crate::operate::health::problems::{collector, machine, on, stack};
use crate::operate::health::view;

/// Services that must start at boot, so that a fenced node rejoins the cluster by itself.
const DAEMONS: [&str; 3] = ["corosync", "pacemaker", "pcsd"];

pub(super) fn check(case: &mut Case<'_>) {
    let cluster = case.cluster;
    case.take(|found| {
        stack::find_of_fencing(cluster, found);
        machine::find_absent(cluster, found);
        collector::find_silent(cluster, found);
    });
    voters(case);
    daemons(case);
    bare_metal_hosts(case);
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
            format!(
                "only {} votes: the node that is fenced now may be the only one with all data",
                voters.join(" and ")
            )
        }
        None if case.configuration.etcd.is_none() => return,
        None => "no etcd says which members vote".to_owned(),
    };
    case.add("not-two-voters", Severity::Warning, About::Cluster, text, Some("tandem status".to_owned()));
}

fn daemons(case: &mut Case<'_>) {
    for node in &case.configuration.nodes {
        let Some(collected) = view::collected(case.cluster, node) else { continue };
        for daemon in DAEMONS {
            if collected.enabled.get(daemon) == Some(&false) {
                let text =
                    format!("{daemon} is not started at boot on {node}: once fenced, it does not come back by itself");
                let command = Some(on(case.cluster, node, command!("systemctl enable {}", daemon)));
                case.add("not-enabled", Severity::Warning, About::Node(node), text, command);
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
                case.add("host-not-detached", Severity::Warning, About::Cluster, text, Some(command));
            }
        }
        Fact::Unknown(why) => {
            let text = format!("whether OpenShift manages the power of these nodes, too, is not known: {why}");
            let command = Some("oc -n openshift-machine-api get baremetalhost".to_owned());
            case.add("hosts-not-known", Severity::Warning, About::Cluster, text, command);
        }
        Fact::Absent | Fact::NotAsked => {}
    }
}
