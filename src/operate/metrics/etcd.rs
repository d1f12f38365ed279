//! The metrics of etcd: whether it accepts writes, and which members vote, lead and lag.

use std::collections::BTreeSet;

use super::page::Page;
use crate::adapters::pacemaker::attributes::{LINEAGE, parse_lineage};
use crate::operate::cluster::{Cluster, Etcd};
use crate::operate::health::view::leads;
use crate::operate::health::{Health, Verdict};

/// Alarms of etcd that the metrics show even while they are not raised.
const ALARMS: [&str; 2] = ["NOSPACE", "CORRUPT"];

pub(super) fn tell(page: &mut Page, cluster: &Cluster, health: &Health) {
    let serving = match health.verdict {
        Verdict::Redundant | Verdict::Degraded => Some(true),
        Verdict::Down => Some(false),
        Verdict::Unknown => None,
    };
    if let Some(serving) = serving {
        page.flag("tandem_etcd_serving", "Whether etcd takes writes", &[], serving);
    }
    if let Some(redundant) = redundant(cluster, health) {
        page.flag("tandem_etcd_redundant", "Whether two voters answer", &[], redundant);
    }
    if let Some(since) = health.since {
        let help = "Since when there are two voters, or are not";
        page.time("tandem_etcd_redundancy_changed_timestamp_seconds", help, &[], since);
    }
    members(page, cluster);
    alarms(page, cluster);
    forks(page, cluster);
    identity(page, cluster);
}

fn answers(cluster: &Cluster) -> impl Iterator<Item = (&str, &Etcd)> {
    cluster.etcd.iter().filter_map(|(node, etcd)| Some((node.as_str(), etcd.known()?)))
}

/// Returns the status of the leader's etcd. If no etcd leads, returns the one with the newest log; `None` if no etcd
/// answered.
fn newest(cluster: &Cluster) -> Option<&Etcd> {
    answers(cluster).map(|(_, etcd)| etcd).max_by_key(|etcd| (leads(etcd), etcd.term, etcd.index))
}

/// Returns whether two members vote. Returns `None` if an etcd that might vote could not be queried.
fn redundant(cluster: &Cluster, health: &Health) -> Option<bool> {
    let voters = answers(cluster).filter(|(_, etcd)| !etcd.learner && etcd.leader.is_some()).count();
    if voters > 1 {
        return Some(true);
    }
    let cannot_be = newest(cluster).is_some_and(|etcd| voters_of(etcd) < 2) || health.verdict == Verdict::Down;
    let all_told =
        !cluster.etcd.is_empty() && cluster.etcd.values().all(|etcd| etcd.known().is_some() || etcd.is_absent());
    (cannot_be || all_told || one_is_off(cluster)).then_some(false)
}

fn voters_of(etcd: &Etcd) -> usize {
    etcd.members.iter().filter(|member| !member.learner && !member.name.is_empty()).count()
}

/// Returns whether Pacemaker reports any node as offline.
fn one_is_off(cluster: &Cluster) -> bool {
    let nodes = cluster.pacemaker.known().map(|seen| seen.nodes.as_slice()).unwrap_or_default();
    nodes.iter().any(|node| !node.online)
}

fn members(page: &mut Page, cluster: &Cluster) {
    let newest = newest(cluster);
    if let Some(newest) = newest {
        page.time("tandem_etcd_voters", "Started voters in etcd's member list", &[], voters_of(newest) as u64);
    }
    for (node, etcd) in answers(cluster) {
        let labels = [("node", node)];
        page.flag("tandem_etcd_leader", "Whether the node's etcd leads", &labels, leads(etcd));
        page.flag("tandem_etcd_voter", "Whether the node's etcd votes", &labels, !etcd.learner);
        page.flag("tandem_etcd_learner", "Whether the node's etcd is a learner", &labels, etcd.learner);
        // A lag is known only relative to a leader.
        if let Some(leader) = newest.filter(|newest| etcd.learner && leads(newest)) {
            let help = "How many entries of the leader's log a learner has not applied yet";
            page.time("tandem_etcd_learner_lag_entries", help, &labels, leader.index.saturating_sub(etcd.applied));
        }
    }
}

fn alarms(page: &mut Page, cluster: &Cluster) {
    if answers(cluster).next().is_none() {
        return;
    }
    let raised: BTreeSet<&str> =
        answers(cluster).flat_map(|(_, etcd)| etcd.alarms.iter().map(String::as_str)).collect();
    let names: BTreeSet<&str> = raised.iter().copied().chain(ALARMS).collect();
    for name in names {
        page.flag("tandem_etcd_alarm", "Whether etcd raises the alarm", &[("alarm", name)], raised.contains(name));
    }
}

/// Writes how often a node's data continued without the other node's data. The agent counts this in a node attribute.
fn forks(page: &mut Page, cluster: &Cluster) {
    let Some(configuration) = cluster.configuration.known() else { return };
    for (node, attributes) in &configuration.permanent {
        if let Some(lineage) = attributes.get(LINEAGE).and_then(|value| parse_lineage(value)) {
            let help = "How often the node's data continued standalone";
            page.count("tandem_etcd_forks_total", help, &[("node", node)], lineage.forks);
        }
    }
}

/// Writes the cluster's name and the id of its etcd, which distinguish this cluster from others in Prometheus.
fn identity(page: &mut Page, cluster: &Cluster) {
    let properties = cluster.configuration.known().map(|configuration| &configuration.properties);
    let name = properties.and_then(|properties| properties.get("cluster-name")).map(String::as_str).unwrap_or_default();
    let id = newest(cluster).map(|etcd| etcd.cluster_id.as_str()).unwrap_or_default();
    if !(name.is_empty() && id.is_empty()) {
        let help = "The cluster's name, and the id of its etcd";
        page.flag("tandem_cluster_info", help, &[("cluster", name), ("id", id)], true);
    }
}
