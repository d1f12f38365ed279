//! The state of a change's nodes and of their fence devices in an observation. Pure.

use super::change::Change;
use super::plan::Old;
use crate::adapters::pacemaker::seen::{FenceDevice, Instance};
use crate::decide::members::{Member, Membership};
use crate::operate::cluster::Cluster;
use crate::operate::health;

/// Returns the state of the node that leaves. If its state cannot be read, the node is [`Old::Unclean`], because it may run.
pub(super) fn old(cluster: &Cluster, name: &str) -> Old {
    let Some(pacemaker) = cluster.pacemaker.known() else { return Old::Unclean };
    if !health::names(cluster).iter().any(|known| known == name) {
        return Old::Gone;
    }
    match pacemaker.nodes.iter().find(|node| node.name == name) {
        Some(node) if node.unclean => Old::Unclean,
        Some(node) if node.online || node.pending => Old::Online { standby: node.standby },
        Some(_) | None => Old::Stopped,
    }
}

/// Returns whether `here` is the only voter among the pair's nodes, and a majority has just confirmed a read. That majority is `here`
/// itself, or `here` and the third voter.
pub(super) fn serves_alone(membership: &Membership, here: &str) -> bool {
    let mut voters = membership.voters().filter(|voter| !(membership.third_voter && voter.is_third()));
    let is_here = |member: &Member| member.node.as_deref() == Some(here);
    let first = voters.next().is_some_and(|voter| is_here(voter) && voter.is_healthy());
    first && voters.next().is_none() && membership.is_confirmed
}

/// Returns whether Pacemaker reports etcd as active on `node`.
pub(super) fn runs_etcd(cluster: &Cluster, etcd: &str, node: &str) -> bool {
    let mut instances = instances(cluster).iter().filter(|instance| instance.id == etcd && instance.active);
    instances.any(|instance| instance.nodes.iter().any(|on| on == node))
}

fn instances(cluster: &Cluster) -> &[Instance] {
    cluster.pacemaker.known().map(|known| known.resources.as_slice()).unwrap_or_default()
}

/// Returns the fence devices that fence `node`.
pub(super) fn devices<'a>(cluster: &'a Cluster, node: &str) -> Vec<&'a FenceDevice> {
    let all = cluster.configuration.known().map(|known| known.fence_devices.as_slice()).unwrap_or_default();
    all.iter().filter(|device| device.targets.iter().any(|target| target == node)).collect()
}

/// Returns the nodes on which Pacemaker runs the fence device `device`; `None` if the device has failed or does not run.
fn runs<'a>(cluster: &'a Cluster, device: &FenceDevice) -> Option<&'a [String]> {
    let is_well = |instance: &&Instance| {
        let is_started = instance.active && instance.role == "Started";
        instance.id == device.resource.id && is_started && !instance.failed && instance.pending.is_none()
    };
    instances(cluster).iter().find(is_well).map(|instance| instance.nodes.as_slice())
}

/// Returns whether the new node has a fence device with the typed options, and Pacemaker runs that device.
pub(super) fn device_runs(cluster: &Cluster, change: &Change, new: &str) -> bool {
    let is_wanted = |device: &&FenceDevice| {
        let is_as_typed = |(name, value): &(String, String)| device.resource.parameters.get(name) == Some(value);
        // An existing device stays as it is. A new one must be banned from the node that it fences.
        let stays_away = change.fence.is_empty() || device.banned_from.iter().any(|node| node == new);
        stays_away && change.fence.iter().all(is_as_typed)
    };
    devices(cluster, new).into_iter().filter(is_wanted).any(|device| runs(cluster, device).is_some())
}

/// Returns whether every fence device of `node` runs. A device that is banned from `node` must run on `other`.
pub(super) fn is_fenced_from(cluster: &Cluster, node: &str, other: &str) -> bool {
    devices(cluster, node).into_iter().all(|device| {
        let is_kept_away = device.banned_from.iter().any(|banned| banned == node);
        runs(cluster, device).is_some_and(|nodes| !is_kept_away || nodes.iter().any(|on| on == other))
    })
}

#[cfg(test)]
mod tests {
    use super::super::change::Kind;
    use super::super::plan::tests::{change, place};
    use super::*;
    use crate::adapters::pacemaker::seen::{Configuration, Node, Pacemaker};
    use crate::base::Fact;
    use crate::decide::members::Health;
    use crate::operate::health::samples;

    fn parts(cluster: &mut Cluster) -> (&mut Pacemaker, &mut Configuration) {
        match (&mut cluster.pacemaker, &mut cluster.configuration) {
            (Fact::Known(pacemaker), Fact::Known(configuration)) => (pacemaker, configuration),
            other => panic!("a healthy cluster is known: {other:?}"),
        }
    }

    /// Returns a healthy pair. The fence device of the node `of` is banned from the nodes `banned`, and `change` modifies its instance.
    fn with_device(of: &str, banned: &[&str], change: fn(&mut Instance)) -> Cluster {
        let mut cluster = samples::read("healthy");
        let (pacemaker, configuration) = parts(&mut cluster);
        let id = format!("fence-{of}");
        pacemaker.resources.iter_mut().filter(|instance| instance.id == id).for_each(change);
        let devices = configuration.fence_devices.iter_mut().filter(|device| device.targets == [of]);
        devices.for_each(|device| device.banned_from = banned.iter().map(|&node| node.to_owned()).collect());
        cluster
    }

    /// Asserts that the new node must run the fence device of the node that stays. Otherwise, the new node could not fence the other one
    /// after its loss.
    #[test]
    fn the_node_that_stays_can_be_fenced_from_the_new_one() {
        let fenced = |banned: &[&str], change: fn(&mut Instance)| {
            is_fenced_from(&with_device("node1", banned, change), "node1", "node2")
        };
        let kept_away = |change: fn(&mut Instance)| fenced(&["node1"], change);
        assert!(kept_away(|_| {}));
        assert!(!kept_away(|instance| instance.failed = true));
        assert!(!kept_away(|instance| instance.role = "Stopped".to_owned()));
        assert!(!kept_away(|instance| instance.active = false));
        assert!(!kept_away(|instance| instance.pending = Some("Starting".to_owned())));
        assert!(!kept_away(|instance| instance.nodes = vec!["node1".to_owned()]));
        let anywhere = fenced(&[], |instance| instance.nodes = vec!["node1".to_owned()]);
        assert!(anywhere, "one that may run anywhere is used by all");
    }

    #[test]
    fn a_new_node_has_the_device_that_was_typed_and_it_runs_elsewhere() {
        let mut wanted = change(Kind::Replace, Some(place("node2", 2)), Some(place("node2", 2)));
        let runs = |wanted: &Change, banned: &[&str], change: fn(&mut Instance)| {
            device_runs(&with_device("node2", banned, change), wanted, "node2")
        };
        assert!(runs(&wanted, &[], |_| {}), "the one that was there");
        assert!(!runs(&wanted, &[], |instance| instance.failed = true));
        let ip = devices(&samples::read("healthy"), "node2")[0].resource.parameters["ip"].clone();
        wanted.fence = vec![("ip".to_owned(), ip)];
        assert!(runs(&wanted, &["node2"], |_| {}));
        assert!(!runs(&wanted, &[], |_| {}), "a new one is kept from the node that it fences");
        wanted.fence[0].1.push('9');
        assert!(!runs(&wanted, &["node2"], |_| {}), "that is the device of the old machine");
    }

    #[test]
    fn who_cannot_be_seen_may_run() {
        let of = |change: fn(&mut Node)| {
            let mut cluster = samples::read("healthy");
            parts(&mut cluster).0.nodes.iter_mut().filter(|node| node.name == "node2").for_each(change);
            old(&cluster, "node2")
        };
        assert_eq!(of(|_| {}), Old::Online { standby: false });
        assert_eq!(of(|node| node.standby = true), Old::Online { standby: true });
        assert_eq!(of(|node| (node.online, node.pending) = (false, true)), Old::Online { standby: false });
        assert_eq!(of(|node| node.online = false), Old::Stopped);
        assert_eq!(of(|node| (node.online, node.unclean) = (false, true)), Old::Unclean);
        assert_eq!(of(|node| node.unclean = true), Old::Unclean, "it is to be fenced");
        let healthy = samples::read("healthy");
        assert_eq!(old(&healthy, "node9"), Old::Gone);
        let unknown = Cluster { pacemaker: Fact::Unknown("it hangs".to_owned()), ..healthy };
        assert_eq!(old(&unknown, "node2"), Old::Unclean);
    }

    #[test]
    fn etcd_runs_where_pacemaker_has_it_active() {
        let healthy = samples::read("healthy");
        let etcd = &parts(&mut healthy.clone()).1.etcd_resources[0].clone();
        assert!(runs_etcd(&healthy, etcd, "node2") && !runs_etcd(&healthy, etcd, "node9"));
        assert!(!runs_etcd(&healthy, "another", "node2"), "that is another etcd");
        let mut stopped = healthy;
        parts(&mut stopped).0.resources.iter_mut().for_each(|instance| instance.active = false);
        assert!(!runs_etcd(&stopped, etcd, "node2"));
    }

    #[test]
    fn alone_is_who_is_the_only_voter_and_is_healthy() {
        let voter = |id: u64, node: &str| Member {
            id,
            name: node.to_owned(),
            node: Some(node.to_owned()),
            health: Health::Yes,
            ..Member::default()
        };
        let alone =
            || Membership { members: vec![voter(1, "node1")], is_confirmed: true, wanted: 2, ..Membership::default() };
        assert!(serves_alone(&alone(), "node1") && !serves_alone(&alone(), "node2"));
        assert!(!serves_alone(&Membership { is_confirmed: false, ..alone() }, "node1"));
        let mut sick = alone();
        sick.members[0].health = Health::No("it has no leader".to_owned());
        assert!(!serves_alone(&sick, "node1"));
        let mut two = alone();
        two.members.push(voter(2, "node2"));
        assert!(!serves_alone(&two, "node1"));
        two.members[1].is_learner = true;
        assert!(serves_alone(&two, "node1"), "a learner is in nobody's majority");
    }
}
