//! The facts about the cluster on which `decide`'s rule about stopping a node depends.

use super::view;
use crate::adapters::pacemaker::attributes;
use crate::adapters::pacemaker::seen::{Node, Pacemaker};
use crate::base::{Fact, json};
use crate::decide::evidence::{DataDir, PublishedState, ThirdVoter};
use crate::decide::may_stop::{Care, Machine, Outlook, Voice};
use crate::operate::cluster::{Cluster, Etcd};

/// Pacemaker's name of a pending stop of a resource.
const STOPPING: &str = "Stopping";

/// Returns the facts from which [`crate::decide::may_stop::may_stop`] decides whether `node` may be stopped.
pub fn outlook(cluster: &Cluster, node: &str) -> Outlook {
    let peer = view::peer_of(cluster, node);
    let voice = |name: &str| view::etcd_fact(cluster, name).as_ref().map(voice);
    Outlook {
        node: node.to_owned(),
        care: cluster.pacemaker.as_ref().map(|pacemaker| care(cluster, pacemaker, node, peer.as_deref())),
        own_etcd: reachable(cluster, node, voice(node)),
        peer_etcd: peer.as_deref().map_or(Fact::Absent, |peer| reachable(cluster, peer, voice(peer))),
        peer_claims: peer.as_deref().map_or(Fact::Absent, |peer| claims(cluster, peer)),
        change: change_under_way(cluster),
        peer,
    }
}

/// Returns the change of etcd's members that is in progress, from a cluster property; `None` if there is none.
pub fn change_under_way(cluster: &Cluster) -> Option<String> {
    let properties = &cluster.configuration.known()?.properties;
    properties.get(attributes::MEMBER_CHANGE).filter(|change| !change.is_empty()).cloned()
}

/// Returns etcd's third voter outside of the pair, from a cluster property; `None` if there is none.
pub fn third_voter(cluster: &Cluster) -> Option<ThirdVoter> {
    let properties = &cluster.configuration.known()?.properties;
    properties
        .get(attributes::THIRD_VOTER)
        .filter(|third_voter| !third_voter.is_empty())
        .map(|third_voter| ThirdVoter::parse(third_voter))
}

/// Returns the number of voters in etcd's member list, as the agent of `node` has published it.
pub fn voters_published(cluster: &Cluster, node: &str) -> Option<usize> {
    let record = cluster.configuration.known()?.transient.get(node)?.get(attributes::RECORD)?;
    match json::from_text::<PublishedState>(record).ok()?.disk {
        DataDir::Present(history) => Some(history.voters.len()),
        DataDir::Blank | DataDir::Broken { .. } => None,
    }
}

/// Removes the property of a change of members from `cluster`. The command that makes this change would otherwise refuse to continue,
/// because its own property forbids a stop.
pub fn without_change(cluster: &mut Cluster) {
    if let Fact::Known(configuration) = &mut cluster.configuration {
        configuration.properties.remove(attributes::MEMBER_CHANGE);
    }
}

/// Returns whether the agent of `node` has published that its etcd may run standalone.
fn claims(cluster: &Cluster, node: &str) -> Fact<bool> {
    let configuration = match &cluster.configuration {
        Fact::Known(configuration) => configuration,
        Fact::Absent => return Fact::Absent,
        unknown => return Fact::Unknown(unknown.why_unknown().to_owned()),
    };
    let attributes = configuration.transient.get(node);
    let Some(record) = attributes.and_then(|attributes| attributes.get(attributes::RECORD)) else {
        return Fact::Absent;
    };
    match json::from_text::<PublishedState>(record) {
        Ok(record) => Fact::Known(record.claims),
        Err(error) => Fact::Unknown(format!("its record is not understood: {error}")),
    }
}

/// Returns `voice`, or `Absent` if the node's etcd could not be queried because the node is off or its cluster is stopped. In both cases
/// no etcd runs on the node.
fn reachable(cluster: &Cluster, name: &str, voice: Fact<Voice>) -> Fact<Voice> {
    match voice {
        Fact::Unknown(_) if view::is_down(cluster, name) => Fact::Absent,
        voice => voice,
    }
}

fn care(cluster: &Cluster, pacemaker: &Pacemaker, node: &str, peer: Option<&str>) -> Care {
    let resource = view::etcd_id(cluster);
    let instance = view::instance_on(pacemaker, &resource, node);
    let unmanaged = instance.is_some_and(|instance| !instance.managed || instance.maintenance || instance.blocked);
    let in_maintenance = view::node(cluster, node).is_some_and(|node| node.maintenance);
    let fencing = pacemaker.fencing.iter().find(|fencing| fencing.status == "pending");
    Care {
        quorate: pacemaker.has_quorum,
        hands_off: pacemaker.maintenance || in_maintenance || unmanaged,
        fencing: fencing.map(|fencing| fencing.target.clone()),
        peer: match peer.and_then(|peer| view::node(cluster, peer)).map_or(Machine::Offline, machine) {
            Machine::Ready if peer.is_some_and(|peer| is_stopping(pacemaker, &resource, peer)) => Machine::Stopping,
            machine => machine,
        },
    }
}

/// Returns whether Pacemaker is stopping the resource `resource` on `node`.
fn is_stopping(pacemaker: &Pacemaker, resource: &str, node: &str) -> bool {
    view::instance_on(pacemaker, resource, node).and_then(|instance| instance.pending.as_deref()) == Some(STOPPING)
}

fn machine(node: &Node) -> Machine {
    match node {
        node if node.unclean => Machine::Unclean,
        node if !node.online => Machine::Offline,
        node if node.pending || node.shutdown => Machine::Moving,
        node if node.standby => Machine::Standby,
        _ => Machine::Ready,
    }
}

fn voice(etcd: &Etcd) -> Voice {
    Voice {
        cluster_id: etcd.cluster_id.clone(),
        learner: etcd.learner,
        has_leader: etcd.leader.is_some(),
        alarm: view::is_silenced(etcd),
        reads: etcd.reads.clone(),
        voters: view::voters_known_to(etcd),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decide::may_stop::{Answer, Hindrance, may_stop};
    use crate::operate::health::samples;

    #[test]
    fn in_each_state_it_is_answered_for_both_nodes() {
        let answers = |state: &str| {
            let cluster = samples::read(state);
            ["node1", "node2"].map(|node| match may_stop(&outlook(&cluster, node)) {
                Answer::Yes => "yes",
                Answer::No(_) => "no",
                Answer::Unknown(_) => "unknown",
            })
        };
        let expected = [
            ("healthy", ["yes", "yes"]),
            ("learner", ["no", "yes"]),
            ("peer-off", ["no", "yes"]),
            ("peer-unclean", ["no", "no"]),
            ("peer-standby", ["no", "yes"]),
            ("cluster-maintenance", ["no", "no"]),
            ("resource-unmanaged", ["no", "no"]),
            ("start-failed", ["no", "yes"]),
            ("nospace", ["no", "no"]),
            ("pacemaker-stopped-here", ["unknown", "no"]),
            ("pacemaker-hangs", ["unknown", "unknown"]),
        ];
        for (state, wanted) in expected {
            assert_eq!(answers(state), wanted, "{state}");
        }
    }

    /// Asserts that no node may be stopped while Pacemaker stops the other one's etcd. That etcd still answers as a voter until it has
    /// ended.
    #[test]
    fn no_node_may_be_stopped_while_pacemaker_stops_the_other_ones_etcd() {
        let mut cluster = samples::read("healthy");
        let Fact::Known(pacemaker) = &mut cluster.pacemaker else { panic!("it is known") };
        let of_node2 = |one: &&mut crate::adapters::pacemaker::seen::Instance| {
            one.id == "etcd" && one.nodes.iter().any(|node| node == "node2")
        };
        pacemaker.resources.iter_mut().find(of_node2).unwrap().pending = Some(STOPPING.to_owned());
        let stopping = Hindrance::PeerNotReady { peer: "node2".to_owned(), machine: Machine::Stopping };
        assert_eq!(may_stop(&outlook(&cluster, "node1")), Answer::No(vec![stopping]));
        assert_eq!(may_stop(&outlook(&cluster, "node2")), Answer::Yes);
    }
}
