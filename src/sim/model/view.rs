//! The facts that one node observes, as the agent's own [`Evidence`]. A [`View`] holds the same facts without strings,
//! so that equal situations are decided once.

pub(in crate::sim) use super::answers::{Heard, Told};
use super::answers::{
    THIRD_VOTER_NAME, across, answer, etcd, leaderless, mids, peer_url, reached, remembers_a_voter, stranger,
    third_voter_url, told_without_a_leader,
};
use super::leading;
use super::log::{self, Conf, Mid};
use super::reach::Links;
use super::timing::budget_ms;
use super::world::{Action, Blind, Cib, Damage, KeptHistory, NAMES, Node, Vars, Word, World};
use crate::base::Fact;
use crate::decide::Request;
use crate::decide::evidence::{
    self, Confirmation, Container, DataDir, Evidence, FailedStarts, History, Identity, Lineage, LogPosition,
    NodeAddress, NodeName, Notify, Recovery, ThirdVoter,
};
use crate::sim::Sim;
use crate::sim::store::intern::Id;

/// The promotion score that an agent sets on a node with a voter.
const SCORE: u32 = 1000;
/// The boot id in all evidence of the model. It can be the same in every boot, because no reboot preserves the file with the
/// `BootState`.
pub const THIS_BOOT: &str = "this boot";

/// All facts on which a decision on one node can depend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own that an agent sees")]
pub struct View {
    pub(in crate::sim) me: u8,
    pub request: Request,
    pub(in crate::sim) vars: Vars,
    pub progress: Id,
    pub(in crate::sim) cib: Cib,
    pub(in crate::sim) runs: bool,
    pub(in crate::sim) forces: bool,
    /// True if a start of etcd continues although its agent was killed.
    pub(in crate::sim) launching: bool,
    /// True if Pacemaker has counted a failed start. The agent clears this count.
    pub(in crate::sim) has_failures: bool,
    /// True if as many starts of etcd from the present data have failed as the agent makes quickly.
    pub(in crate::sim) breaks_down: bool,
    /// True if the disk with the data and the durable state is not mounted.
    pub(in crate::sim) is_not_mounted: bool,
    pub(in crate::sim) disk: Option<Disk>,
    pub(in crate::sim) note: Id,
    pub(in crate::sim) memory: Id,
    pub(in crate::sim) word: Word,
    pub(in crate::sim) own: Heard,
    pub(in crate::sim) peer: Heard,
    pub(in crate::sim) blind: Blind,
    /// True if this node's record is missing in the CIB because Pacemaker erased it. In that case the attribute manager still has the
    /// record.
    pub(in crate::sim) keeps_record: bool,
    /// The answer of this node's etcd without a leader; `None` if the agent did not ask for it or etcd did not answer.
    pub(in crate::sim) leaderless: Option<Told>,
    /// The report of a partition detector. Only some strategies of [`crate::sim::compare`] use it.
    pub(in crate::sim) links: Links,
    /// True if a delay is over that the agent has stored in this boot. It is the delay before a hand-over, or that of a time without a
    /// leader.
    pub(in crate::sim) delay_over: bool,
    /// True for a node that users do not reach. The first value is for this node, and the second for the peer.
    pub(in crate::sim) reach: [bool; 2],
    /// The history that this node's parameters keep if the two nodes hold different ones.
    pub(in crate::sim) kept: KeptHistory,
}

/// The content of a data dir, as the agent reads it while no etcd runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(in crate::sim) struct Disk {
    pub(in crate::sim) mid: Mid,
    pub(in crate::sim) cluster: u8,
    pub(in crate::sim) conf: Conf,
    pub(in crate::sim) has_left: bool,
    /// True if the log has entries above its commit index, which are not known to be committed.
    pub(in crate::sim) has_tail: bool,
    /// The term of the last entry. Tandem's rules read it only in a search with disks that are put back. Other strategies always read
    /// it.
    pub(in crate::sim) term: u8,
    /// The index of the last entry. Tandem's rules read it only in a search with disks that are put back. Other strategies always read
    /// it.
    pub(in crate::sim) index: u16,
    /// The commit index. Rules read it only in a search with disks that are put back.
    pub(in crate::sim) commit: u8,
}

/// Returns everything that the agent of node `me` observes now. The code names even the fields that an agent does not observe. So a new
/// field does not compile until its author has decided whether the agent observes it.
#[expect(clippy::too_many_lines, reason = "each field is named")]
pub fn look(sim: &Sim, world: &World, me: usize, Action { request, notify, progress, plan: _ }: Action) -> View {
    let World {
        nodes,
        link: _,
        joined: _,
        lagging: _,
        newer: _,
        acked: _,
        given_up: _,
        words: _,
        unheard: _,
        writes: _,
        faults: _,
        tampered: _,
        third_voter: _,
        lost_to_users,
        delay_over,
        etcd_parted: _,
        kept,
        bmc: _,
        lone: _,
    } = world;
    let Node {
        cib,
        etcd,
        forces,
        note,
        memory,
        word,
        data: _,
        action: _,
        on: _,
        quorum: _,
        failed: _,
        unclean: _,
        wanted: _,
        asked: _,
        stack: _,
        launching,
        torn: _,
        failures,
        damage,
        promoted: _,
        blind,
        led: _,
        lingers: _,
        erased,
    } = &nodes[me];
    let is_not_mounted = *damage == Damage::NotMounted;
    View {
        me: u8::try_from(me).unwrap_or_default(),
        request,
        vars: notify,
        progress,
        cib: of_the_other(if *erased { without_record(*cib, me) } else { *cib }, me),
        runs: etcd.is_on(),
        forces: *forces && etcd.is_on(),
        launching: launching.is_some(),
        has_failures: *failures > 0,
        breaks_down: *damage == Damage::Counted,
        is_not_mounted,
        disk: (!etcd.is_on() && !is_not_mounted).then(|| disk(sim, world, me)),
        note: if is_not_mounted { 0 } else { *note },
        memory: *memory,
        word: *word,
        own: answer(sim, world, me),
        peer: across(sim, world, me),
        blind: *blind,
        keeps_record: *erased && remembers_a_voter(sim, *memory),
        leaderless: told_without_a_leader(sim, world, me),
        links: if sim.judges() { Links::Whole } else { Links::of(world, me) },
        delay_over: delay_over[me],
        reach: if sim.bounds.primary.is_some() { [lost_to_users[me], lost_to_users[1 - me]] } else { [false; 2] },
        kept: kept[me],
    }
}

fn without_record(mut cib: Cib, me: usize) -> Cib {
    cib.record[me] = 0;
    cib
}

/// Drops the parts of a CIB that the agent of node `me` does not read, so that views become equal that differ only in these parts.
fn of_the_other(cib: Cib, me: usize) -> Cib {
    let Cib { mut machine, mut agent, mut recorded, mut score, .. } = cib;
    (machine[me], agent[me]) = (machine[1 - me], agent[1 - me]);
    recorded[1 - me] |= recorded[me];
    score[1 - me] = score[me];
    Cib { machine, agent, recorded, score, ..cib }
}

fn disk(sim: &Sim, world: &World, me: usize) -> Disk {
    let data = world.nodes[me].data;
    let conf = data.newest(&sim.logs).conf;
    let counts = !sim.judges() || sim.bounds.puts_back;
    let index = if counts { data.folded + u16::from(data.len(&sim.logs)) } else { 0 };
    let commit = if sim.bounds.puts_back { data.commit } else { 0 };
    // A joiner that was cut off before its first entry knows no member.
    let has_left = data.len(&sim.logs) > 0 && !conf.lists(data.mid);
    Disk {
        mid: data.mid,
        cluster: data.cluster,
        conf,
        has_left,
        has_tail: data.commit < data.len(&sim.logs),
        term: data.term(&sim.logs),
        index,
        commit,
    }
}

/// Converts a view to the evidence that the agent has at `elapsed_ms` after the action began.
pub fn evidence(sim: &Sim, view: &View, elapsed_ms: u64) -> Evidence {
    let (me, peer) = (usize::from(view.me), 1 - usize::from(view.me));
    let stored = |id: Id| id != 0;
    let mut evidence = Evidence {
        elapsed_ms,
        budget_ms: budget_ms(view.request),
        me: address(me),
        peer: Some(address(peer)),
        boot_id: THIS_BOOT.to_owned(),
        promotable: sim.bounds.promotable,
        promote_max_lag: 0,
        notify: view.vars.given.then(|| notify(view.vars)),
        cib: Fact::Known(cib(sim, view, me)),
        launching: Fact::Known(view.launching),
        container: if view.runs {
            Fact::Known(Container { running: true, forces_new_cluster: view.forces, ..Container::default() })
        } else {
            Fact::Absent
        },
        data_in_use: Fact::NotAsked,
        room: Fact::NotAsked,
        disk: if view.is_not_mounted {
            Fact::Unknown("the file system that held the data is not mounted".to_owned())
        } else {
            view.disk.map_or(Fact::NotAsked, |disk| Fact::Known(data_dir(&disk)))
        },
        note: if stored(view.note) { Fact::Known(sim.notes.get(view.note).clone()) } else { Fact::Absent },
        boot_memory: if stored(view.memory) {
            Fact::Known(sim.memories.get(view.memory).clone())
        } else {
            Fact::Absent
        },
        confirmation: word(view, peer),
        local: evidence::Local { failed_starts: view.breaks_down.then(failed_starts), ..evidence::Local::default() },
        own_etcd: etcd(view.own),
        peer_etcd: etcd(view.peer),
        own_refuses: None,
        peer_refuses: None,
        own_leaderless: view.leaderless.map_or(Fact::NotAsked, |told| Fact::Known(leaderless(told))),
        recovery: if sim.bounds.vote_proxies { Recovery::VoteProxy } else { Recovery::Restart },
        leading: leading::known(sim, view.memory, view.delay_over, view.kept).map(Box::new),
        lone_boot: None,
        // The model's machines are fast.
        pace: evidence::Pace::default(),
        nonce: nonce(sim, view),
    };
    hide(&mut evidence, view.blind);
    evidence
}

/// Returns as many failed starts as the agent makes quickly, without their log lines.
fn failed_starts() -> FailedStarts {
    FailedStarts { count: u64::MAX, ..FailedStarts::default() }
}

/// Removes from the evidence the fact that a fault has hidden from the observation.
fn hide(evidence: &mut Evidence, blind: Blind) {
    let why = || "it was not found out".to_owned();
    match blind {
        // A time-out of the CIB takes seconds. The agent asks the peer after it, so the peer has appended more than our
        // etcd had when the agent asked it.
        Blind::Cib => {
            evidence.cib = Fact::Unknown(why());
            if let Fact::Known(own) = &mut evidence.own_etcd {
                own.index = 0;
            }
        }
        Blind::Note => evidence.note = Fact::Unknown(why()),
        Blind::Disk if evidence.disk != Fact::NotAsked => evidence.disk = Fact::Unknown(why()),
        Blind::PeerEtcd if evidence.peer_etcd != Fact::NotAsked => evidence.peer_etcd = Fact::Unknown(why()),
        Blind::Stranger if evidence.peer_etcd != Fact::NotAsked => {
            let peer = evidence.peer.clone().unwrap_or_else(|| address(0));
            evidence.peer_etcd = Fact::Known(stranger(&evidence.me, &peer));
        }
        Blind::None | Blind::Disk | Blind::PeerEtcd | Blind::Stranger => {}
        Blind::OwnEtcd => {
            evidence.own_etcd = Fact::Unknown(why());
            evidence.own_leaderless = Fact::Unknown(why());
        }
        // The agent finds out without podman whether a process holds the data. If none does, it reads the data.
        Blind::Container => {
            let runs = evidence.container_may_run();
            evidence.container = Fact::Unknown(why());
            evidence.data_in_use = if runs { Fact::Unknown(why()) } else { Fact::Known(false) };
        }
    }
}

/// Returns a nonce for this node's next record. It differs from the nonce in the node's last record.
fn nonce(sim: &Sim, view: &View) -> u64 {
    let published = view.cib.record[usize::from(view.me)];
    let published =
        if published == 0 { None } else { sim.records.get(published).as_ref().and_then(|record| record.nonce) };
    if published == Some(1) { 2 } else { 1 }
}

fn address(node: usize) -> NodeAddress {
    NodeAddress {
        name: NAMES[node].to_owned(),
        peer_url: peer_url(node),
        client_url: format!("https://{}:2379", NAMES[node]),
    }
}

fn notify(vars: Vars) -> Notify {
    let names = |set: u8| (0..2).filter(|node| set & (1 << node) != 0).map(|node| NAMES[node].to_owned()).collect();
    Notify {
        moment: vars.moment,
        operation: vars.operation,
        active: names(vars.active),
        start: names(vars.start),
        stop: names(vars.stop),
    }
}

/// Returns the cluster id and member id of the running etcd; `None` if etcd does not answer. The model uses them as the ids that the node
/// has published.
fn identity(own: Heard) -> Option<Identity> {
    match own {
        Heard::Etcd { mid, cluster, .. } => Some(Identity { cluster_id: cluster.into(), member_id: mid.into() }),
        Heard::NotAsked | Heard::Refused | Heard::Silent => None,
    }
}

fn cib(sim: &Sim, view: &View, me: usize) -> evidence::Cib {
    let (cib, peer) = (&view.cib, 1 - me);
    let record = |node: usize| (cib.record[node] != 0).then(|| sim.records.get(cib.record[node]).clone()).flatten();
    // Records are kept without positions. One rule reads a position: whether the own record is up to date.
    let mut own_record = record(me);
    if let Some(DataDir::Present(history)) = own_record.as_mut().map(|record| &mut record.disk)
        && sim.judges()
        && !sim.bounds.puts_back
    {
        history.last_index = view.disk.is_some_and(|disk| disk.has_tail).into();
    }
    evidence::Cib {
        own_failures: view.has_failures.then(|| (evidence::START_OPERATION.to_owned(), u64::MAX)).into_iter().collect(),
        own_promotion_score: cib.score[me].then_some(SCORE),
        peer_node: cib.machine[peer],
        peer_agent: cib.agent[peer],
        own_record,
        keeps_own_record: view.keeps_record,
        peer_record: record(peer),
        standalone_node: cib.standalone.map(name),
        learner_node: listed_learner(view.own),
        lineage: lineage(cib.most_forks()),
        own_lineage: recorded_lineage(cib.lineage[me]),
        peer_lineage: recorded_lineage(cib.lineage[peer]),
        cluster_recorded: cib.recorded.contains(&true),
        own_start_failures: if view.vars.in_vain { u64::MAX } else { 0 },
        peer_identity: None,
        peer_leads: leading::peer_leads(sim),
        own_identity: identity(view.own).filter(|_| cib.recorded[me]),
        own_alarm: None,
        own_image: None,
        own_shown: None,
        redundancy: cib.said.fact(sim.bounds.lone_boot),
        reached: reached(sim, view.cib.reached),
        primary: cib.primary.map(name),
        third_voter: sim.bounds.third_voter.then(third_voter),
        reach: leading::reach(sim, view.reach),
        in_maintenance: false,
        peer_leaves: false,
        others: evidence::Others {
            force_on_me: cib.told[me],
            force_on_peer: cib.told[peer],
            ..evidence::Others::default()
        },
    }
}

/// Returns the node that is a learner in the leader's member list. The CIB's attribute with this node's name is for people and for the
/// shell agent. So in the model it is set as soon as the learner is listed.
fn listed_learner(own: Heard) -> Option<NodeName> {
    let Heard::Etcd { conf, .. } = own else { return None };
    mids(conf.learners).find_map(|mid| NAMES.get(log::node_of(mid))).map(|name| (*name).to_owned())
}

/// Returns the third voter that the cluster property names. The property does not change in the model.
fn third_voter() -> ThirdVoter {
    ThirdVoter { name: THIRD_VOTER_NAME.to_owned(), peer_url: third_voter_url(), id: Some(log::THIRD_VOTER.into()) }
}

fn name(node: u8) -> NodeName {
    NAMES[usize::from(node)].to_owned()
}

/// Returns whether the CIB has a forced new cluster that `own`, the lineage of node `me`, lacks: see [`Evidence::was_left_behind`].
pub(in crate::sim) fn was_left_behind(cib: &Cib, me: usize, own: &Lineage) -> bool {
    let peer = recorded_lineage(cib.lineage[1 - me]);
    lineage(cib.most_forks()).is_beyond(own) || peer.is_some_and(|peer| peer.is_beyond(own))
}

fn lineage((forks, by): (u8, u8)) -> Lineage {
    Lineage { forks: forks.into(), by: if by == 0 { String::new() } else { name(by - 1) } }
}

/// Converts the lineage in a node's attribute; `None` if the attribute is not set.
fn recorded_lineage(forks: (u8, u8)) -> Option<Lineage> {
    (forks != (0, 0)).then(|| lineage(forks))
}

/// Converts a data dir to evidence. Of the log positions, it shows only whether there are entries above the commit index.
///
/// The core reads terms and indexes for two more purposes, which need no positions in the model. One is a learner's lag. The other is
/// whether a confirmation is about this data, which [`Word`] contains.
fn data_dir(disk: &Disk) -> DataDir {
    if disk.mid == 0 {
        return DataDir::Blank;
    }
    DataDir::Present(History {
        cluster_id: disk.cluster.into(),
        member_id: disk.mid.into(),
        last_term: disk.term.into(),
        last_index: last_index(disk),
        commit_index: disk.commit.into(),
        voters: mids(disk.conf.voters).map(u64::from).collect(),
        learners: mids(disk.conf.learners).map(u64::from).collect(),
        has_left: disk.has_left,
        database_ahead: None,
        damage: Vec::new(),
    })
}

fn last_index(disk: &Disk) -> u64 {
    if disk.index == 0 { disk.has_tail.into() } else { disk.index.into() }
}

fn word(view: &View, peer: usize) -> Fact<Confirmation> {
    let (accept_loss, fits) = match view.word {
        Word::None => return Fact::Absent,
        Word::Given { accept_loss, node_is_on: _ } => (accept_loss, true),
        Word::Outdated { accept_loss } => (accept_loss, false),
    };
    let disk = view.disk;
    Fact::Known(Confirmation {
        boot_id: THIS_BOOT.to_owned(),
        lost_node: NAMES[peer].to_owned(),
        cluster_id: disk.map_or(0, |disk| disk.cluster.into()),
        member_id: disk.map_or(0, |disk| disk.mid.into()),
        position: LogPosition { term: u64::from(fits), index: disk.map_or(0, |disk| last_index(&disk)) },
        accept_loss,
    })
}
