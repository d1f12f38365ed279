//! The answers of an etcd of the model, and their form as evidence.

use super::log::{self, CLUSTER, Conf, Mid};
use super::world::{Cib, CibReached, NAMES, Node, Run, World};
use crate::base::Fact;
use crate::decide::evidence::{Etcd, Leaderless, LogPosition, Member, NodeAddress, Reached, Version};
use crate::sim::Sim;
use crate::sim::store::intern::Id;

/// The answer that an etcd of the model gives after it has lost its leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::sim) struct Told {
    pub(in crate::sim) mid: Mid,
    pub(in crate::sim) cluster: u8,
    pub(in crate::sim) conf: Conf,
    /// The index of the last applied entry. It is 0 in a search without disks that are put back, in which no rule reads it.
    pub(in crate::sim) applied: u8,
    pub(in crate::sim) term: u8,
    pub(in crate::sim) term_has_moved: bool,
}

/// The outcome of a request to an etcd in the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::sim) enum Heard {
    NotAsked,
    Refused,
    Silent,
    Etcd { mid: Mid, cluster: u8, leader: Mid, term: u8, index: u8, is_learner: bool, conf: Conf },
}

/// Converts the position that the leader has published to evidence. The result is `NotAsked` in a search without disks that are put
/// back, in which no rule reads it. In a search with positions, all data is of one cluster.
pub(super) fn reached(sim: &Sim, published: CibReached) -> Fact<Reached> {
    let CibReached { forks, term, index, is_redundant } = published;
    match (sim.bounds.puts_back, index) {
        (false, _) => Fact::NotAsked,
        (true, 0) => Fact::Absent,
        (true, _) => Fact::Known(Reached {
            cluster_id: CLUSTER.into(),
            forks: forks.into(),
            position: LogPosition { term: term.into(), index: index.into() },
            is_redundant,
        }),
    }
}

pub(super) fn answer(sim: &Sim, world: &World, whose: usize) -> Heard {
    let node = &world.nodes[whose];
    let leader = match node.etcd {
        Run::Off => return Heard::Refused,
        Run::Fresh => return Heard::Silent,
        // From etcd 3.5 on, only a leader answers the request for the member list.
        Run::Leaderless if sim.bounds.silent_without_leader => return Heard::Silent,
        Run::Leaderless => 0,
        Run::Leader => node.data.mid,
        Run::Follower => world.nodes[1 - whose].data.mid,
    };
    let conf = node.data.applied(&sim.logs).conf;
    let is_learner = !conf.votes(node.data.mid);
    let conf = if is_learner { Conf::default() } else { conf };
    Heard::Etcd {
        mid: node.data.mid,
        cluster: node.data.cluster,
        leader,
        term: node.data.term(&sim.logs),
        index: if sim.bounds.puts_back { node.data.commit } else { node.data.len(&sim.logs) },
        is_learner,
        conf,
    }
}

/// Returns whether the CIB that node `me` reads shows the peer as gone. In that case the agent does not ask the peer's etcd.
fn peer_is_gone(cib: &Cib, me: usize) -> bool {
    cib.machine[1 - me].is_beyond_asking(cib.agent[1 - me])
}

/// Returns the answer of the peer's etcd to node `me`; `NotAsked` if the agent does not ask it.
pub(super) fn across(sim: &Sim, world: &World, me: usize) -> Heard {
    match world.etcds_meet() && world.nodes[1 - me].on {
        _ if peer_is_gone(&world.nodes[me].cib, me) => Heard::NotAsked,
        true => answer(sim, world, 1 - me),
        false => Heard::Silent,
    }
}

/// Returns the answer that the etcd of node `me` gives its own agent while it has no leader; `None` if the agent does not ask or etcd
/// does not answer.
pub(super) fn told_without_a_leader(sim: &Sim, world: &World, me: usize) -> Option<Told> {
    let Node { cib, memory, led, .. } = &world.nodes[me];
    let is_asked = peer_is_gone(cib, me) || remembers_a_voter(sim, *memory);
    is_asked.then(|| told(sim, world, me, *led)).flatten()
}

/// Returns whether the agent has stored for this boot that etcd ran as a voter. If so, the agent asks its etcd even without a leader.
/// If the node's record is missing in the CIB, it also asks the attribute manager for it.
pub(super) fn remembers_a_voter(sim: &Sim, memory: Id) -> bool {
    sim.memories.get(memory).voter.is_some()
}

/// Returns the answer of the etcd of node `me` if it has lost its leader. An etcd that has never had a leader does not
/// answer.
fn told(sim: &Sim, world: &World, me: usize, has_been_led: bool) -> Option<Told> {
    let Node { data, etcd, action, .. } = world.nodes[me];
    let conf = data.applied(&sim.logs).conf;
    let stands_in = action.is_some_and(|action| sim.stands_in(action));
    (etcd == Run::Leaderless).then_some(Told {
        mid: data.mid,
        cluster: data.cluster,
        conf,
        applied: if sim.bounds.puts_back { data.commit } else { 0 },
        term: data.term(&sim.logs),
        term_has_moved: has_been_led && stands_in,
    })
}

pub(super) fn etcd(answer: Heard) -> Fact<Etcd> {
    let (mid, cluster, leader, term, index, is_learner, conf) = match answer {
        Heard::NotAsked => return Fact::NotAsked,
        Heard::Refused => return Fact::Absent,
        Heard::Silent => return Fact::Unknown("it does not answer".to_owned()),
        Heard::Etcd { mid, cluster, leader, term, index, is_learner, conf } => {
            (mid, cluster, leader, term, index, is_learner, conf)
        }
    };
    Fact::Known(Etcd {
        cluster_id: cluster.into(),
        member_id: mid.into(),
        leader: (leader != 0).then(|| leader.into()),
        term: term.into(),
        index: index.into(),
        is_learner,
        members: members(conf),
        db_bytes: 0,
        alarms: Vec::new(),
    })
}

fn members(conf: Conf) -> Vec<Member> {
    let member = |mid: Mid| {
        let node = NAMES.get(log::node_of(mid));
        let started = conf.started & log::bit(mid) != 0;
        Member {
            id: mid.into(),
            name: if started { (*node.unwrap_or(&THIRD_VOTER_NAME)).to_owned() } else { String::new() },
            peer_urls: vec![if node.is_some() { peer_url(log::node_of(mid)) } else { third_voter_url() }],
            is_learner: conf.learners & log::bit(mid) != 0,
        }
    };
    mids(conf.voters | conf.learners).map(member).collect()
}

/// Returns an etcd of another cluster that serves at the peer's address. It is the only voter of that cluster, and lists `me` as a
/// learner.
pub(super) fn stranger(me: &NodeAddress, peer: &NodeAddress) -> Etcd {
    let learner =
        Member { id: STRANGER - 1, name: String::new(), peer_urls: vec![me.peer_url.clone()], is_learner: true };
    let member =
        Member { id: STRANGER, name: peer.name.clone(), peer_urls: vec![peer.peer_url.clone()], is_learner: false };
    Etcd {
        cluster_id: STRANGERS_CLUSTER,
        member_id: STRANGER,
        leader: Some(STRANGER),
        term: 1,
        index: 1,
        is_learner: false,
        members: vec![member, learner],
        db_bytes: 0,
        alarms: Vec::new(),
    }
}

/// The member id of the etcd of another cluster. No node of the model has this id.
const STRANGER: u64 = 0xfe;
pub(in crate::sim) const STRANGERS_CLUSTER: u64 = 0xfe;

/// Converts the answer of an etcd without a leader to evidence. In a search without terms, the term shows only whether it has changed.
pub(super) fn leaderless(told: Told) -> Leaderless {
    Leaderless {
        cluster_id: told.cluster.into(),
        member_id: told.mid.into(),
        term: u64::from(told.term) + u64::from(told.term_has_moved),
        applied: told.applied.into(),
        version: RELEASE,
        members: members(told.conf),
    }
}

/// The etcd release that every member of the model reports. Vote proxies are tested with it.
const RELEASE: Version = Version { minor: 6, patch: 0 };

pub(super) fn peer_url(node: usize) -> String {
    format!("https://{}:2380", NAMES[node])
}

/// The name of the member that is the third voter.
pub(super) const THIRD_VOTER_NAME: &str = "guest";

pub(super) fn third_voter_url() -> String {
    format!("https://{THIRD_VOTER_NAME}:2380")
}

pub(super) fn mids(set: u16) -> impl Iterator<Item = Mid> {
    (0..16).filter(move |mid| set & log::bit(*mid) != 0)
}
