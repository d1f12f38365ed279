//! Interprets the state of the cluster for an upgrade. Pure.

use crate::adapters::etcd::version::Version;
use crate::base::Fact;
use crate::decide::may_stop::{Answer, may_stop};
use crate::operate::cluster::Cluster;
use crate::operate::health::{self, view};

/// The state of the new image on a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Stand {
    /// etcd on the node runs from the new image.
    Runs,
    /// The node has pulled the new image, and etcd's next start uses it. The release is `None` if it is unknown.
    Ready(Option<Version>),
    /// etcd's next start would use the new image, but the node has not pulled it.
    Missing,
    /// The agent on the node has not yet published which image it would start.
    Unsaid,
}

pub(super) fn stand(cluster: &Cluster, node: &str, image: &str) -> Stand {
    let Some(running) = view::running_image(cluster, node) else { return Stand::Unsaid };
    match running.next {
        None if running.image == image => Stand::Runs,
        Some(next) if next.image == image && next.id.is_none() => Stand::Missing,
        Some(next) if next.image == image => Stand::Ready(next.version),
        _ => Stand::Unsaid,
    }
}

/// Returns the nodes in the order in which an upgrade restarts their etcds. The leader comes last.
pub(super) fn in_order(cluster: &Cluster) -> Vec<String> {
    let leader = view::leading(cluster).map(|(name, _)| name.clone());
    let mut names = view::names(cluster);
    names.sort_by_key(|name| leader.as_ref() == Some(name));
    names
}

/// Returns the etcd releases of the running members.
pub(super) fn versions(cluster: &Cluster) -> Vec<Version> {
    cluster.etcd.values().filter_map(|etcd| Version::of(&etcd.known()?.version)).collect()
}

/// Fails with the reason if stopping etcd on `node` would pause the writes.
pub(super) fn may_be_stopped(cluster: &Cluster, node: &str) -> Result<(), String> {
    let because = |why: String| Err(format!("{node} may not be stopped now: {why}"));
    match may_stop(&health::outlook(cluster, node)) {
        Answer::Yes => Ok(()),
        Answer::No(why) => because(why.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")),
        Answer::Unknown(why) => because(why.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")),
    }
}

/// Checks that both nodes vote. The error names what is missing.
pub(super) fn both_vote(cluster: &Cluster) -> Result<(), String> {
    let is_voter = |name: &String| view::etcd(cluster, name).is_some_and(|etcd| !etcd.learner && etcd.leader.is_some());
    if view::voters(cluster) == Some(2) && view::names(cluster).iter().all(is_voter) {
        return Ok(());
    }
    let waits = view::names(cluster).into_iter().find(|name| !is_voter(name));
    let name = waits.unwrap_or_else(|| view::here(cluster).to_owned());
    let resource = view::etcd_id(cluster);
    let failures = cluster.pacemaker.known().map(|known| known.failures.as_slice()).unwrap_or_default();
    let failed = failures.iter().find(|failure| failure.resource == resource && failure.node == name);
    Err(match failed {
        Some(failure) => format!("waits until {name} votes: its {} failed: {}", failure.task, failure.reason),
        None => format!("waits until {name} votes"),
    })
}

/// Returns whether Pacemaker has recorded a failure of etcd on `node`.
pub(super) fn has_failed(cluster: &Cluster, node: &str) -> bool {
    let resource = view::etcd_id(cluster);
    let failures = cluster.pacemaker.known().map(|known| known.failures.as_slice()).unwrap_or_default();
    failures.iter().any(|failure| failure.resource == resource && failure.node == node)
}

/// Checks that etcd is stopped on `node` and that the other node runs standalone. The error names what is missing.
pub(super) fn is_stopped(cluster: &Cluster, node: &str) -> Result<(), String> {
    let resource = view::etcd_id(cluster);
    let is_active = cluster
        .pacemaker
        .known()
        .is_none_or(|known| view::instance_on(known, &resource, node).is_some_and(|instance| instance.active));
    if !is_active && *view::etcd_fact(cluster, node) == Fact::Absent && view::writes(cluster) == Some(true) {
        return Ok(());
    }
    Err(format!("waits until etcd has stopped on {node}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operate::health::samples;

    const NEW: &str = "registry.example.com/etcd:v3.6";

    #[test]
    fn a_node_runs_from_the_image_or_has_it_or_lacks_it() {
        let cluster = samples::read("image-pending");
        assert_eq!(stand(&cluster, "node1", NEW), Stand::Ready(Version::of("3.6.4")));
        assert_eq!(stand(&cluster, "node2", NEW), Stand::Runs);
        assert_eq!(stand(&cluster, "node1", "etcd:other"), Stand::Unsaid, "its agent has not read that yet");
        let missing = samples::read("image-not-here");
        assert_eq!(stand(&missing, "node1", "registry.example.com/etcd:v3.51"), Stand::Missing);
        assert_eq!(stand(&samples::read("healthy"), "node1", NEW), Stand::Unsaid);
    }

    #[test]
    fn the_leader_is_the_last_one_and_none_is_stopped_while_the_other_does_not_vote() {
        let healthy = samples::read("healthy");
        assert_eq!(in_order(&healthy), ["node2", "node1"]);
        assert!(both_vote(&healthy).is_ok() && may_be_stopped(&healthy, "node1").is_ok());
        assert!(is_stopped(&healthy, "node2").is_err());
        for state in ["learner", "start-failed", "peer-off"] {
            let cluster = samples::read(state);
            assert!(both_vote(&cluster).is_err() && may_be_stopped(&cluster, "node1").is_err(), "{state}");
        }
        assert!(may_be_stopped(&samples::read("pacemaker-hangs"), "node1").is_err());
        let failed = both_vote(&samples::read("start-failed")).unwrap_err();
        assert!(failed.contains(" failed: "), "{failed}");
    }
}
