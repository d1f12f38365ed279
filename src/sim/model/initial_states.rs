//! The initial states of a search, and the good states to which a way must lead back.

use super::answers::mids as mids_of;
use super::log::{CLUSTER, Conf, Data, Entry, Mid, THIRD_VOTER, bit, first_mid};
use super::view::THIS_BOOT;
use super::world::{CibReached, HISTORY, NAMES, Run, Said, Wanted, World};
use super::{etcd, leading, pacemaker};
use crate::decide::evidence::{
    BootState, DataDir, DataOwner, DurableState, History, Lineage, PeerAgent, PeerNode, PublishedState, RunningVoter,
};
use crate::sim::Sim;
use crate::sim::reduce::symmetry::rename::{self, Renaming};

/// The kind of state in which a search or a scenario begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beginning {
    /// Two voters. Node1 leads.
    Voters,
    /// Two voters. Node2 leads. This is the mirror image of [`Self::Voters`], so a search counts the two as one state.
    SecondLeads,
    Blank,
    /// Two histories, each with a sole voter that ran standalone. No etcd runs.
    Parted,
    /// Two histories. Node1's data is a learner's. Node2's data belongs to a voter that node1's data does not list.
    PartedLearner,
    /// Two histories. Node2 serves its own one, and node1 is off.
    PartedServing,
    /// Two voters and the third voter. Node1 leads.
    ThirdVoter,
    /// Two voters and the third voter. Node2 leads.
    ThirdVoterSecondLeads,
    /// Two voters. Node1 leads, and only its log contains the promotion of a third member.
    ThirdVoterPromoted,
    /// Two voters. Node2 leads, and only its log contains the promotion of a third member.
    ThirdVoterPromotedSecondLeads,
    /// Two voters, for a search in which rules read log positions. Node2 has joined node1, which leads.
    Joined,
    /// Two voters, for a search in which rules read log positions. Node1 has joined node2, which leads.
    JoinedSecondLeads,
}

impl Beginning {
    /// All initial states of searches and scenarios.
    pub const ALL: [Self; 12] = [
        Self::Voters,
        Self::SecondLeads,
        Self::Blank,
        Self::Parted,
        Self::PartedLearner,
        Self::PartedServing,
        Self::ThirdVoter,
        Self::ThirdVoterSecondLeads,
        Self::ThirdVoterPromoted,
        Self::ThirdVoterPromotedSecondLeads,
        Self::Joined,
        Self::JoinedSecondLeads,
    ];

    /// Returns the line that names this initial state. It is the first line of a scenario file.
    pub fn text(self) -> &'static str {
        match self {
            Self::Voters => "begin with two voters",
            Self::SecondLeads => "begin with two voters, and node2 leads",
            Self::Blank => "begin with blank",
            Self::Parted => "begin with two histories",
            Self::PartedServing => "begin with two histories, of which node2 serves one",
            Self::PartedLearner => "begin with two histories, of which node1 learns one",
            Self::ThirdVoter => "begin with a guest",
            Self::ThirdVoterSecondLeads => "begin with a guest, and node2 leads",
            Self::ThirdVoterPromoted => "begin with a guest that is being promoted",
            Self::ThirdVoterPromotedSecondLeads => "begin with a guest that is being promoted, and node2 leads",
            Self::Joined => "begin with two voters, of which node2 joined",
            Self::JoinedSecondLeads => "begin with two voters, of which node1 joined",
        }
    }

    /// Builds the initial state.
    pub fn world(self, sim: &mut Sim) -> World {
        match self {
            Self::Voters => healthy(sim),
            Self::SecondLeads => {
                let world = healthy(sim);
                rename::renamed(sim, &world, &Renaming::swap())
            }
            Self::Blank => blank(sim),
            Self::Parted => parted(sim),
            Self::PartedLearner => parted_learner(sim),
            Self::PartedServing => parted_serving(sim),
            Self::ThirdVoter => with_third_voter(sim),
            Self::ThirdVoterPromoted => promoting_the_third_voter(sim),
            Self::Joined => joined(sim),
            Self::JoinedSecondLeads => {
                let world = joined(sim);
                rename::renamed(sim, &world, &Renaming::swap())
            }
            Self::ThirdVoterSecondLeads | Self::ThirdVoterPromotedSecondLeads => {
                let first =
                    if self == Self::ThirdVoterSecondLeads { Self::ThirdVoter } else { Self::ThirdVoterPromoted };
                let world = first.world(sim);
                rename::renamed(sim, &world, &Renaming::swap())
            }
        }
    }
}

/// Builds a state of two voters in which node1 leads and Pacemaker does nothing.
pub fn healthy(sim: &mut Sim) -> World {
    voting(sim, &[first_mid(0), first_mid(1)], 0)
}

/// Builds a state of two voters as [`healthy`] does, but with their history in the log. In this history node1 was the only voter, and
/// node2 joined it.
pub fn joined(sim: &mut Sim) -> World {
    (sim.bounds.puts_back, sim.bounds.counts_forks) = (true, true);
    let mut world = healthy(sim);
    let [first, second] = [first_mid(0), first_mid(1)];
    let conf = Conf { voters: bit(first), learners: 0, started: bit(first) };
    let base = Entry::Base { writes: HISTORY, conf };
    let entries = vec![base, Entry::AddLearner(second), Entry::Started(second), Entry::Promote(second)];
    let log = sim.logs.id(entries);
    for (n, name) in NAMES.iter().enumerate() {
        let mid = first_mid(n);
        let of = DataOwner { cluster_id: CLUSTER.into(), member_id: mid.into(), node: (*name).to_owned() };
        let note = sim.notes.id(DurableState { of: Some(of), ..DurableState::default() });
        let node = &mut world.nodes[n];
        (node.data, node.note) = (Data { mid, cluster: CLUSTER, log, commit: 4, durable: 4, folded: 0 }, note);
        node.cib.reached = CibReached { forks: 0, term: 1, index: 4, is_redundant: true };
    }
    world
}

/// Builds a state of two voters as [`healthy`] does, with a third voter outside of the two nodes.
pub fn with_third_voter(sim: &mut Sim) -> World {
    World { third_voter: true, ..voting(sim, &[first_mid(0), first_mid(1), THIRD_VOTER], 0) }
}

/// Builds a state of two voters in which the leader has just been asked to promote a third member.
pub fn promoting_the_third_voter(sim: &mut Sim) -> World {
    let mut world = World { third_voter: true, ..voting(sim, &[first_mid(0), first_mid(1)], bit(THIRD_VOTER)) };
    world.nodes[0].data.append(&mut sim.logs, Entry::Promote(THIRD_VOTER));
    world
}

/// Builds a state in which the members `mids` vote, and the members in the set `learners` are learners. The first two of `mids` run on
/// the two nodes.
fn voting(sim: &mut Sim, mids: &[Mid], learners: u16) -> World {
    let voters = mids.iter().fold(0, |voters, mid| voters | bit(*mid));
    let among_many = mids.len() > 2;
    let conf = Conf { voters, learners, started: voters | learners };
    let log = sim.logs.id(vec![Entry::Base { writes: HISTORY, conf }]);
    let mut world = World { acked: HISTORY, ..blank(sim) };
    for n in 0..2 {
        let (cluster_id, member_id) = (u64::from(CLUSTER), u64::from(mids[n]));
        let voter = RunningVoter { cluster_id, member_id, lineage: Lineage::default(), sole: false, among_many };
        let promoted = sim.bounds.promotable;
        let memory = BootState { boot_id: THIS_BOOT.to_owned(), voter: Some(voter), promoted, ..BootState::default() };
        let disk = DataDir::Present(history(member_id, mids, learners));
        let record = PublishedState {
            claims: true,
            prefers: leading::preferred(sim),
            ..PublishedState::of(THIS_BOOT.to_owned(), disk, Lineage::default())
        };
        let node = &mut world.nodes[n];
        node.data = Data { mid: mids[n], cluster: CLUSTER, log, commit: 1, durable: 1, folded: 0 };
        node.etcd = if n == 0 { Run::Leader } else { Run::Follower };
        node.memory = sim.memories.id(memory);
        node.promoted = promoted;
        let record = sim.records.id(Some(record));
        for cib in world.nodes.iter_mut().map(|node| &mut node.cib) {
            cib.record[n] = record;
            cib.agent[n] = PeerAgent::Active;
            cib.recorded[n] = true;
            cib.score[n] = promoted;
            cib.said = if sim.bounds.lone_boot { Said::Redundant } else { Said::Nothing };
        }
    }
    world
}

fn history(member_id: u64, voters: &[Mid], learners: u16) -> History {
    History {
        cluster_id: CLUSTER.into(),
        member_id,
        last_term: 1,
        last_index: 0,
        commit_index: 0,
        voters: voters.iter().copied().map(u64::from).collect(),
        learners: mids_of(learners).map(u64::from).collect(),
        has_left: false,
        database_ahead: None,
        damage: Vec::new(),
    }
}

/// Builds a state of two booted machines with two histories. An operator had let each node run standalone, so each node holds a write
/// that the other one lacks.
pub fn parted(sim: &mut Sim) -> World {
    let mut world = World { acked: HISTORY | 0b11, writes: 0b11, words: 0b11, ..blank(sim) };
    for (n, name) in NAMES.into_iter().enumerate() {
        let mid = first_mid(n);
        let conf = Conf { voters: bit(mid), learners: 0, started: bit(mid) };
        let log = sim.logs.id(vec![Entry::Base { writes: HISTORY | 1 << n, conf }]);
        let note = DurableState { lineage: Lineage { forks: 1, by: name.to_owned() }, ..DurableState::default() };
        let node = &mut world.nodes[n];
        node.data = Data { mid, cluster: CLUSTER, log, commit: 1, durable: 1, folded: 0 };
        node.note = sim.notes.id(note);
        (node.cib.recorded, node.cib.lineage, node.cib.standalone) = ([true; 2], [(1, 1), (1, 2)], Some(1));
        node.cib.said = if sim.bounds.lone_boot { Said::Alone } else { Said::Nothing };
    }
    world
}

/// Builds a state with two histories. Node1's data is a learner's, and names a voter that is not node2's present member. Node2's data
/// names a second voter, which no longer exists.
pub fn parted_learner(sim: &mut Sim) -> World {
    let mut world = World { acked: HISTORY | 0b10, writes: 0b10, ..parted(sim) };
    let [first, second] = [first_mid(0), first_mid(1)];
    let confs = [
        Conf { voters: bit(second + 1), learners: bit(first), started: bit(first) | bit(second + 1) },
        Conf { voters: bit(second) | bit(first + 1), learners: 0, started: bit(second) | bit(first + 1) },
    ];
    for (n, conf) in confs.into_iter().enumerate() {
        let writes = if n == 0 { HISTORY } else { HISTORY | 0b10 };
        world.nodes[n].data.log = sim.logs.id(vec![Entry::Base { writes, conf }]);
    }
    world
}

/// Builds a state with two histories. Node2 serves its own one, and node1 is off.
pub fn parted_serving(sim: &mut Sim) -> World {
    // The write that only node1 holds was given up when node2 made a history of its own.
    let mut world = World { given_up: 0b01, ..parted(sim) };
    let mid = first_mid(1);
    let (cluster_id, member_id) = (u64::from(CLUSTER), u64::from(mid));
    let lineage = sim.notes.get(world.nodes[1].note).lineage.clone();
    let voter = RunningVoter { cluster_id, member_id, lineage: lineage.clone(), sole: true, among_many: false };
    let disk = DataDir::Present(history(member_id, &[mid], 0));
    let claimed = PublishedState { claims: true, ..PublishedState::of(THIS_BOOT.to_owned(), disk, lineage) };
    let record = sim.records.id(Some(PublishedState { prefers: leading::preferred(sim), ..claimed }));
    let memory = BootState { boot_id: THIS_BOOT.to_owned(), voter: Some(voter), ..BootState::default() };
    world.nodes[1].memory = sim.memories.id(memory);
    world.nodes[1].etcd = Run::Leader;
    for node in &mut world.nodes {
        (node.cib.record[1], node.cib.agent[1]) = (record, PeerAgent::Active);
    }
    pacemaker::power_off(&mut world, 0);
    pacemaker::notice(&mut world);
    world.nodes[1].cib.machine[0] = PeerNode::Down;
    world
}

/// Builds a state of two booted machines that hold no data.
pub fn blank(sim: &Sim) -> World {
    World { faults: sim.bounds.faults, ..World::BLANK }
}

/// Returns whether only a human, or the return of the network, brings two voters back from this state. For such states, the search does
/// not require that a good state can be reached. A human is needed if an operator made two histories, has to choose one of two, or may
/// have to choose because of a disk that was put back.
pub fn needs_a_human(sim: &Sim, world: &World) -> bool {
    // While the etcds are parted and neither node has a proof, only the network's return helps.
    let is_stuck = world.etcd_parted && !leading::may_go_on(sim, world);
    let have_parted = (sim.bounds.chooses || sim.bounds.two_histories) && etcd::have_parted(sim, world);
    let waits_for_a_word = (world.has_been_overridden() || have_parted) && !leading::keeps_a_history(sim, world);
    is_stuck || world.tampered || waits_for_a_word
}

/// Returns whether a state is good. The search requires that a good state can be reached from every other state.
///
/// While the two etcds do not reach each other, a state is good if one of them leads. At any other time, both nodes have to run voters
/// with the same log, and no node may be starting, stopping or have failed.
pub fn is_good(sim: &Sim, world: &World) -> bool {
    let conf = |n: usize| world.nodes[n].data.applied(&sim.logs).conf;
    if world.etcd_parted {
        return etcd::leader(world).is_some();
    }
    world.joined
        && world.nodes.iter().all(|node| node.etcd.is_led() && !node.failed && node.wanted == Wanted::Running)
        && world.nodes.iter().all(|node| node.promoted == sim.bounds.promotable)
        && (0..2).all(|n| world.nodes[n].cib.agent[n] == PeerAgent::Active && conf(n).votes(world.nodes[n].data.mid))
        && (conf(0).voters & !bit(THIRD_VOTER)).count_ones() == 2
        && world.nodes[0].data.log == world.nodes[1].data.log
        && leading::is_as_wanted(sim, world)
}
