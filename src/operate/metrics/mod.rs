//! The metrics of a cluster for Prometheus, in the classic text format of node_exporter's textfile directory. Names and meanings follow
//! OpenShift's `tnf_*`, under a prefix of our own; each further one is named next to its value.
//!
//! An unknown value is left out, so that a rule finds nothing instead of a zero.

pub mod disruptions;
mod etcd;
mod fencing;
mod page;
pub mod textfile;

use std::collections::BTreeMap;

pub use self::disruptions::Disruptions;
pub use self::fencing::{FencingTest, FencingTests};
use self::page::Page;
use crate::operate::cluster::Cluster;
use crate::operate::health::Health;
use crate::operate::health::conditions::words::{CLUSTER, NODE, RESOURCE, Word};
use crate::operate::health::conditions::{Condition, Conditions, status};
use crate::operate::members::under_way::UnderWay;

/// Values for the metrics that no single observation of the cluster shows, such as counts over time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Extras {
    /// The number of events by reason. A number never decreases.
    pub events: BTreeMap<String, u64>,
    /// The results of the fencing tests that this node conducted.
    pub fencing_tests: FencingTests,
    /// The number of times that each resource stopped.
    pub disruptions: Disruptions,
    /// The change of etcd's members that is in progress; `None` if there is none.
    pub member_change: Option<UnderWay>,
}

/// Returns all metrics in Prometheus' text format.
pub fn render(cluster: &Cluster, health: &Health, conditions: &Conditions, extras: &Extras) -> String {
    let mut page = Page::default();
    conditions_of(&mut page, conditions);
    etcd::tell(&mut page, cluster, health);
    fencing::tell(&mut page, cluster, &extras.fencing_tests);
    certificates(&mut page, cluster);
    versions(&mut page, cluster);
    collections(&mut page, cluster);
    if let Some(change) = &extras.member_change {
        let (parts, help) = (change.parts(), "Since when a change of the members has been under way");
        let labels = [("kind", parts.kind), ("old", parts.old), ("new", parts.new)];
        page.time("tandem_member_change_timestamp_seconds", help, &labels, change.since);
    }
    for (node, resource, count) in extras.disruptions.counts() {
        let help = "How often the collector saw that the resource had stopped on the node";
        page.count("tandem_resource_disruption_total", help, &[("node", node), ("resource", resource)], count);
    }
    for (reason, count) in &extras.events {
        page.count("tandem_events_total", "Events by their reason", &[("reason", reason)], *count);
    }
    page.text()
}

fn conditions_of(page: &mut Page, conditions: &Conditions) {
    each(page, "cluster", CLUSTER, &conditions.cluster, &[]);
    for node in &conditions.nodes {
        let name = ("node", node.name.as_str());
        each(page, "node", NODE, &node.conditions, &[name]);
        for resource in &node.resources {
            each(page, "resource", RESOURCE, &resource.conditions, &[name, ("resource", resource.name)]);
        }
    }
}

/// Writes one metric for each condition in `words`, unless the condition's status is unknown. `about` is `cluster`, `node` or `resource`.
fn each(page: &mut Page, about: &str, words: &[Word], conditions: &[Condition], labels: &[(&str, &str)]) {
    for word in words {
        let help = format!("The condition {} of the {about}: 1 is true, 0 is false", word.kind);
        if let Some(value) = status(conditions, word.kind).value() {
            page.flag(&format!("tandem_{about}_{}", snake_case(word.kind)), &help, labels, value);
        }
    }
}

/// Turns `NodeCountAsExpected` into `node_count_as_expected`.
fn snake_case(words: &str) -> String {
    let mut text = String::new();
    for letter in words.chars() {
        if letter.is_ascii_uppercase() && !text.is_empty() {
            text.push('_');
        }
        text.push(letter.to_ascii_lowercase());
    }
    text
}

fn certificates(page: &mut Page, cluster: &Cluster) {
    const NAME: &str = "tandem_certificate_expiry_timestamp_seconds";
    const HELP: &str = "When the first certificate of the file ends; the one that etcd shows has the name 'etcd'";
    for (node, collected) in &cluster.collected {
        for certificate in collected.known().map(|known| known.certificates.as_slice()).unwrap_or_default() {
            page.time(NAME, HELP, &[("node", node), ("file", &certificate.file)], certificate.ends);
        }
    }
    for (node, etcd) in &cluster.etcd {
        if let Some(ends) = etcd.known().and_then(|etcd| etcd.certificate_ends) {
            page.time(NAME, HELP, &[("node", node), ("file", "etcd")], ends);
        }
    }
}

fn versions(page: &mut Page, cluster: &Cluster) {
    let mut tell = |node: &str, component: &str, version: &str| {
        let labels = [("node", node), ("component", component), ("version", version)];
        if !version.is_empty() {
            page.flag("tandem_version_info", "Which version of what runs on the node", &labels, true);
        }
    };
    for (node, collected) in &cluster.collected {
        if let Some(known) = collected.known() {
            tell(node, "tandem", &known.tandem);
            tell(node, "pacemaker", known.pacemaker.as_deref().unwrap_or_default());
        }
    }
    for (node, etcd) in &cluster.etcd {
        if let Some(etcd) = etcd.known() {
            tell(node, "etcd", &etcd.version);
        }
    }
    if let Some(seen) = cluster.pacemaker.known()
        && !cluster.here.is_empty()
    {
        tell(&cluster.here, "pacemaker", &seen.version);
    }
}

/// Writes the time at which each node's collector last ran. For this node it is the time of the current observation.
fn collections(page: &mut Page, cluster: &Cluster) {
    let mut times: BTreeMap<&str, u64> = BTreeMap::new();
    for (node, collected) in &cluster.collected {
        times.extend(collected.known().map(|known| (node.as_str(), known.at)));
    }
    if !cluster.here.is_empty() {
        times.insert(&cluster.here, cluster.at);
    }
    for (node, at) in times {
        let help = "When the node's collector last looked, by the node's clock";
        page.time("tandem_collection_timestamp_seconds", help, &[("node", node)], at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_conditions_become_names_of_metrics() {
        for (kind, expected) in
            [("Healthy", "healthy"), ("InService", "in_service"), ("NodeCountAsExpected", "node_count_as_expected")]
        {
            assert_eq!(snake_case(kind), expected);
        }
    }

    #[test]
    fn a_change_of_the_members_is_there_while_it_is_under_way() {
        let page = |member_change| {
            let (cluster, extras) = (Cluster::default(), Extras { member_change, ..Extras::default() });
            let conditions = crate::operate::health::conditions::of(&cluster);
            render(&cluster, &Health::default(), &conditions, &extras)
        };
        let change =
            UnderWay { words: "node2 is replaced by node4, by node1 since x".to_owned(), since: 1_795_442_801 };
        let line = "tandem_member_change_timestamp_seconds{kind=\"replace\",new=\"node4\",old=\"node2\"} 1795442801\n";
        assert!(page(Some(change)).ends_with(line));
        assert_eq!(page(None), "");
    }

    #[test]
    fn of_a_cluster_of_which_nothing_is_known_nothing_is_told() {
        let cluster = Cluster::default();
        let conditions = crate::operate::health::conditions::of(&cluster);
        assert_eq!(render(&cluster, &Health::default(), &conditions, &Extras::default()), "");
    }
}
