//! Questions to a [`Cluster`] that several judgements share. An unknown answer is `None`, never "no".

use crate::adapters::pacemaker::attributes;
use crate::adapters::pacemaker::seen::{Configuration, FenceDevice, History, Instance, Node, Pacemaker, Resource};
use crate::base::{Fact, json};
use crate::decide::evidence::RunningImage;
use crate::operate::cluster::{Cluster, Collected, Etcd, Power};

/// Alarms that make etcd refuse writes.
const SILENCING: [&str; 2] = ["NOSPACE", "CORRUPT"];

/// Returns the names of the configured nodes. If the CIB is unknown, returns the names that any other source contains.
pub(crate) fn names(cluster: &Cluster) -> Vec<String> {
    if let Some(configuration) = cluster.configuration.known().filter(|known| !known.nodes.is_empty()) {
        return configuration.nodes.clone();
    }
    let seen = cluster.pacemaker.known().map(|known| known.nodes.as_slice()).unwrap_or_default();
    let members = seen.iter().filter(|node| node.kind != "remote").map(|node| node.name.clone());
    let mut names: Vec<String> = members.chain(cluster.etcd.keys().cloned()).collect();
    names.extend(cluster.collected.keys().cloned());
    names.extend((!cluster.here.is_empty()).then(|| cluster.here.clone()));
    names.sort();
    names.dedup();
    names
}

/// Returns the name of the observing node, or `this node` if it is unknown.
pub(crate) fn here(cluster: &Cluster) -> &str {
    if cluster.here.is_empty() { "this node" } else { &cluster.here }
}

/// Returns the node other than `name`; `None` unless there is exactly one.
pub(crate) fn peer_of(cluster: &Cluster, name: &str) -> Option<String> {
    let mut others = names(cluster).into_iter().filter(|other| other != name);
    let first = others.next()?;
    others.next().is_none().then_some(first)
}

/// Returns the node other than `name`, or `the other node` unless there is exactly one.
pub(crate) fn peer_or_other(cluster: &Cluster, name: &str) -> String {
    peer_of(cluster, name).unwrap_or_else(|| "the other node".to_owned())
}

pub(crate) fn node<'a>(cluster: &'a Cluster, name: &str) -> Option<&'a Node> {
    cluster.pacemaker.known()?.nodes.iter().find(|node| node.name == name)
}

/// Returns whether Pacemaker reports the node as off or its cluster as stopped. In both cases nothing on the node can be queried.
pub(crate) fn is_down(cluster: &Cluster, name: &str) -> bool {
    cluster.pacemaker.known().is_some_and(|_| node(cluster, name).is_none_or(|node| !node.online && !node.unclean))
}

/// Returns whether Pacemaker may start resources, because the cluster has quorum. Returns true if that is unknown.
pub(crate) fn may_start(cluster: &Cluster) -> bool {
    cluster.pacemaker.known().is_none_or(|known| known.has_quorum)
}

/// Returns whether the node `name` is an online member of the cluster.
pub(crate) fn is_online(cluster: &Cluster, name: &str) -> bool {
    node(cluster, name).is_some_and(|node| node.online)
}

/// Returns the other nodes that are not online: off, cut off, or with a stopped cluster. Omits a node that is being fenced, because the
/// fence agent is using its BMC.
pub(crate) fn out_of_sight(cluster: &Cluster) -> Vec<String> {
    let waits = cluster.quorum.known().is_some_and(|quorum| quorum.waits_for_all && !quorum.quorate);
    let pacemaker = cluster.pacemaker.known();
    let is_gone = |name: &String| match pacemaker {
        Some(pacemaker) => {
            let last = pacemaker.fencing.iter().find(|fencing| fencing.target == *name);
            !is_online(cluster, name) && last.is_none_or(|last| last.status != "pending")
        }
        None => waits,
    };
    names(cluster).into_iter().filter(|name| *name != cluster.here).filter(is_gone).collect()
}

pub(crate) fn power<'a>(cluster: &'a Cluster, name: &str) -> Option<&'a Power> {
    cluster.power.get(name)
}

pub(crate) fn etcd<'a>(cluster: &'a Cluster, name: &str) -> Option<&'a Etcd> {
    cluster.etcd.get(name)?.known()
}

/// Returns the status of a node's etcd, or the reason why there is none.
pub(crate) fn etcd_fact<'a>(cluster: &'a Cluster, name: &str) -> &'a Fact<Etcd> {
    cluster.etcd.get(name).unwrap_or(&Fact::NotAsked)
}

pub(crate) fn collected<'a>(cluster: &'a Cluster, name: &str) -> Option<&'a Collected> {
    cluster.collected.get(name)?.known()
}

pub(crate) fn leads(etcd: &Etcd) -> bool {
    etcd.leader.as_ref() == Some(&etcd.member_id)
}

/// Returns whether an alarm makes `etcd` refuse writes.
pub(crate) fn is_silenced(etcd: &Etcd) -> bool {
    etcd.alarms.iter().any(|alarm| SILENCING.contains(&alarm.as_str()))
}

/// Returns the number of voters in the member list of `etcd`.
pub(crate) fn voters_known_to(etcd: &Etcd) -> usize {
    etcd.members.iter().filter(|member| !member.learner).count()
}

/// Returns the etcd with the authoritative status: the leader, or else any etcd that has a leader.
pub(crate) fn leading(cluster: &Cluster) -> Option<(&String, &Etcd)> {
    let known = || cluster.etcd.iter().filter_map(|(name, etcd)| Some((name, etcd.known()?)));
    known().find(|(_, etcd)| leads(etcd)).or_else(|| known().find(|(_, etcd)| etcd.leader.is_some()))
}

/// Returns the number of entries in the leader's log that the node's etcd has not applied. Returns `None` without a leader.
pub(crate) fn lag(cluster: &Cluster, name: &str) -> Option<u64> {
    let (_, leader) = leading(cluster).filter(|(_, etcd)| leads(etcd))?;
    let own = etcd(cluster, name).filter(|own| own.cluster_id == leader.cluster_id)?;
    Some(leader.index.saturating_sub(own.applied.min(own.index)))
}

/// Returns whether etcd accepts writes on any node; `None` if that is unknown.
pub(crate) fn writes(cluster: &Cluster) -> Option<bool> {
    let all: Vec<&Fact<Etcd>> = names(cluster).iter().map(|name| etcd_fact(cluster, name)).collect();
    let serves = |etcd: &&Etcd| etcd.reads == Fact::Known(());
    if all.iter().filter_map(|fact| fact.known()).any(is_silenced) {
        return Some(false);
    }
    if all.iter().filter_map(|fact| fact.known()).any(|etcd| serves(&etcd)) {
        return Some(true);
    }
    // A living node with quorum was not fenced, so its peer does not run standalone. This node's answer therefore counts for both.
    let quorate = cluster.pacemaker.known().is_some_and(|known| known.has_quorum);
    if quorate && etcd(cluster, &cluster.here).is_some_and(|own| own.leader.is_none() && voters_known_to(own) > 1) {
        return Some(false);
    }
    let is_silent = |name: &String| match etcd_fact(cluster, name) {
        Fact::Known(etcd) => etcd.leader.is_none() || is_without_its_peer(cluster, etcd),
        Fact::Absent => true,
        Fact::Unknown(_) | Fact::NotAsked => is_down(cluster, name),
    };
    (!all.is_empty() && names(cluster).iter().all(is_silent)).then_some(false)
}

/// Returns whether `etcd` is one of the pair's two voters and the other one does not run. A leader without its peer keeps its role for
/// some seconds, but it accepts no write.
pub(crate) fn is_without_its_peer(cluster: &Cluster, etcd: &Etcd) -> bool {
    let stopped = names(cluster).iter().filter(|name| etcd_fact(cluster, name).is_absent()).count();
    let properties = cluster.configuration.known().map(|known| &known.properties);
    let third_voter = properties.and_then(|properties| properties.get(attributes::THIRD_VOTER));
    let is_of_a_pair = voters_known_to(etcd) == 2 && third_voter.is_none_or(String::is_empty);
    names(cluster).len() == 2 && is_of_a_pair && stopped == 1 && etcd.reads != Fact::Known(())
}

/// Returns the number of nodes with a voting etcd; `None` if that is unknown. A node with an unknown etcd does not count if a confirmed
/// leader is the only voter in its member list.
pub(crate) fn voters(cluster: &Cluster) -> Option<usize> {
    let names = names(cluster);
    let reference = leading(cluster).map(|(_, etcd)| etcd.cluster_id.as_str());
    let is_sole = |etcd: &Etcd| leads(etcd) && etcd.reads == Fact::Known(()) && voters_known_to(etcd) == 1;
    let has_sole_voter = leading(cluster).is_some_and(|(_, etcd)| is_sole(etcd));
    let is_voter = |name: &String| match etcd_fact(cluster, name) {
        Fact::Known(etcd) => {
            let is_listed = etcd.members.iter().any(|member| member.id == etcd.member_id && !member.learner);
            Some(is_listed && !etcd.learner && reference.is_none_or(|id| id == etcd.cluster_id))
        }
        Fact::Absent => Some(false),
        Fact::Unknown(_) | Fact::NotAsked => (has_sole_voter || is_down(cluster, name)).then_some(false),
    };
    if names.is_empty() {
        return None;
    }
    names.iter().map(is_voter).try_fold(0, |count, voter| Some(count + usize::from(voter?)))
}

/// Returns the id of the `podman-etcd` resource, or `etcd` if it is unknown.
pub(crate) fn etcd_id(cluster: &Cluster) -> String {
    let configured = cluster.configuration.known().and_then(|known| known.etcd.as_ref());
    configured.map_or_else(|| "etcd".to_owned(), |etcd| etcd.id.clone())
}

/// Returns the id of the clone of the `podman-etcd` resource. Without a clone, returns the resource's id.
pub(crate) fn clone_id(cluster: &Cluster) -> String {
    let configured = cluster.configuration.known().and_then(|known| known.etcd.as_ref());
    configured.and_then(|etcd| etcd.clone.clone()).unwrap_or_else(|| etcd_id(cluster))
}

/// Returns the image that a node's etcd runs from, as the node's agent published it.
pub(crate) fn running_image(cluster: &Cluster, name: &str) -> Option<RunningImage> {
    let published = cluster.configuration.known()?.transient.get(name)?;
    json::from_text(published.get(attributes::IMAGE)?).ok()
}

/// Pacemaker's status and configuration, if both are known.
#[derive(Clone, Copy)]
pub(crate) struct ResourceSeen<'a> {
    pub(crate) pacemaker: &'a Pacemaker,
    pub(crate) configuration: &'a Configuration,
}

impl<'a> ResourceSeen<'a> {
    pub(crate) fn of(cluster: &'a Cluster) -> Option<Self> {
        Some(Self { pacemaker: cluster.pacemaker.known()?, configuration: cluster.configuration.known()? })
    }

    pub(crate) fn history(self, resource: &str, node: &str) -> Option<&'a History> {
        self.pacemaker.histories.iter().find(|history| history.resource == resource && history.node == node)
    }
}

/// Returns the instance of the resource `resource` that is on `node`.
pub(crate) fn instance_on<'a>(pacemaker: &'a Pacemaker, resource: &str, node: &str) -> Option<&'a Instance> {
    let here = |instance: &&Instance| instance.id == resource && instance.nodes.iter().any(|name| name == node);
    pacemaker.resources.iter().find(here)
}

/// Returns Pacemaker's instance of a fence device.
pub(crate) fn instance_of<'a>(pacemaker: &'a Pacemaker, device: &FenceDevice) -> Option<&'a Instance> {
    pacemaker.resources.iter().find(|instance| instance.id == device.resource.id)
}

/// Returns whether the instance is in maintenance, by itself or with its node or the whole cluster.
pub(crate) fn is_in_maintenance(cluster: &Cluster, instance: &Instance) -> bool {
    let in_maintenance = |name: &String| node(cluster, name).is_some_and(|node| node.maintenance);
    let whole = cluster.pacemaker.known().is_some_and(|known| known.maintenance);
    whole || instance.maintenance || instance.nodes.iter().any(in_maintenance)
}

/// Returns whether the resource is disabled, with `target-role=Stopped`.
pub(crate) fn is_disabled(resource: &Resource) -> bool {
    resource.meta.get("target-role").is_some_and(|role| role.eq_ignore_ascii_case("stopped"))
}

/// Returns the id of etcd's resource if it is disabled; else `None`.
pub(crate) fn disabled_etcd(cluster: &Cluster) -> Option<&str> {
    let etcd = cluster.configuration.known()?.etcd.as_ref()?;
    is_disabled(etcd).then_some(etcd.id.as_str())
}

/// Returns whether the instance is active on a node, and neither failed nor blocked.
pub(crate) fn is_well(instance: &Instance) -> bool {
    instance.active && !instance.failed && !instance.blocked && !instance.nodes.is_empty()
}
