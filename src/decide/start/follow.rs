//! R1: the peer serves. What is here joins it, or is refused where it may hold what the peer does not.

use super::cold_start::{Chosen, Cluster};
use super::disk_space;
use super::launch::run;
use super::published_state::joining_record;
use super::put_back;
use crate::decide::evidence::{
    Cib, DataDir, DataOwner, DurableState, Etcd, Evidence, Lineage, NodeName, PublishedState,
};
use crate::decide::plan::{Effect, Phase, Plan, Progress, RunMode, Via};
use crate::decide::reason::{Reason, ReasonStep, Refusal, Rule};
use crate::decide::running::membership;
use crate::decide::standing::{Standing, classify, history_position, is_listed, is_voter};
use crate::decide::timing::{LOOK_AT_THE_LIST_MS, LOOK_FOR_A_LEADER_MS};

/// Decides a start by rule R1: the peer serves and has a leader. So this node starts as a member of the peer's cluster, or joins
/// it.
pub(super) fn follow(evidence: &Evidence, disk: &DataDir, peer_etcd: &Etcd, cib: &Cib) -> Plan {
    if is_listed(disk, peer_etcd) {
        return run(evidence, RunMode::Normally, Rule::PeerServesAndListsThisMember);
    }
    if let Some(refusal) = put_back::another_cluster(evidence, peer_etcd, cib) {
        return evidence.refuse(refusal);
    }
    let is_beside = is_a_history_beside(evidence, disk, cib);
    match Chosen::seen_in(evidence, cib) {
        Chosen::Me if is_voter(evidence, disk) => return evidence.refuse(Refusal::PeerServesThoughNotChosen),
        Chosen::Nobody if is_beside && !keeps_the_peers(evidence, cib) => {
            return evidence.refuse(Refusal::HistoriesSplit);
        }
        // Which of two histories reaches further ranks neither.
        Chosen::Nobody if !is_beside && put_back::reaches_beyond(disk, peer_etcd) && !was_given_up(evidence, cib) => {
            let there = Some(peer_etcd.position());
            return evidence.refuse(Refusal::DiskWasPutBack { here: history_position(disk), there, reached: None });
        }
        Chosen::Me | Chosen::ThePeer | Chosen::Nobody => {}
    }
    if evidence.machine_is_deleted() {
        return evidence.refuse(Refusal::MachineIsDeleted);
    }
    let entry = peer_etcd.member_at(&evidence.me);
    if let Some(third_voter) = evidence.third_voter_in_the_learners_place(peer_etcd).filter(|_| entry.is_none()) {
        return membership::make_place(third_voter, Via::Peer);
    }
    match entry {
        Some(entry) if entry.is_learner && !entry.has_started() => {
            disk_space::make(evidence, disk, peer_etcd).unwrap_or_else(|| join(evidence, disk, peer_etcd, cib))
        }
        Some(entry) => Plan::then_look(
            vec![Effect::RemoveMember { id: entry.id, via: Via::Peer }],
            LOOK_AT_THE_LIST_MS,
            Progress::default(),
            Reason::Step(ReasonStep::RemoveStaleEntry { id: entry.id }),
        ),
        None => Plan::then_look(
            vec![
                Effect::AddLearner { peer_url: evidence.me.peer_url.clone(), via: Via::Peer },
                Effect::SetLearner(Some(evidence.me.name.clone())),
            ],
            LOOK_AT_THE_LIST_MS,
            Progress::default(),
            Reason::Step(ReasonStep::ListOurselvesAsLearner),
        ),
    }
}

/// Returns whether this data is a second history next to the serving peer's. It is if this node ran standalone, no node has
/// joined it since, and the peer does not know of that. Neither history is newer, so an operator has to choose.
///
/// There is no choice to make if an operator gave up this node by name before. In that case the peer's record shows it, or counts
/// more forks (forced new clusters) than this node does.
fn is_a_history_beside(evidence: &Evidence, disk: &DataDir, cib: &Cib) -> bool {
    // Where the note cannot be read, it may be.
    let Some(DurableState { lineage: own, alone_since, .. }) = evidence.last_note() else {
        return classify(disk) == Standing::SoleVoter;
    };
    let served = served_lineage(cib);
    let is_known_there = served.is_some_and(|served| *served == own || served.forks > own.forks);
    let was_given_up = cib.peer_record.as_ref().is_some_and(|record| record.gave_up);
    classify(disk) == Standing::SoleVoter && alone_since.is_some() && !is_known_there && !was_given_up
}

/// Returns whether the parameters of both nodes prefer the history that the peer serves.
fn keeps_the_peers(evidence: &Evidence, cib: &Cib) -> bool {
    let records = cib.own_record.as_ref().zip(cib.peer_record.as_ref());
    records.is_some_and(|(me, peer)| Cluster::seen_in(evidence, cib).keeps_what_serves(me, peer))
}

/// Returns the lineage (see [`Lineage`]) of the history that the peer serves. It is taken from the peer's record or, without one,
/// from the peer's permanent attribute.
fn served_lineage(cib: &Cib) -> Option<&Lineage> {
    cib.peer_record.as_ref().map(|record| &record.lineage).or(cib.peer_lineage.as_ref())
}

/// Returns whether an operator gave up this node's history. If so, the peer's record shows it, or counts more forks (forced new
/// clusters).
fn was_given_up(evidence: &Evidence, cib: &Cib) -> bool {
    let served = served_lineage(cib);
    let counts_more = |own: &Lineage| served.is_some_and(|served| served.forks > own.forks);
    let own = evidence.own_lineage().filter(|_| !evidence.has_another_ones_note());
    cib.peer_record.as_ref().is_some_and(|record| record.gave_up) || own.as_ref().is_some_and(counts_more)
}

/// Returns whether no agent may ever delete this data after the node has joined another history. That is so if the data is a
/// history of its own, if it has more than the serving cluster, or if it is a sole voter's and no durable note is about it.
fn is_kept_for_good(evidence: &Evidence, disk: &DataDir, peer_etcd: &Etcd, cib: &Cib) -> bool {
    let is_unknown = classify(disk) == Standing::SoleVoter && evidence.has_another_ones_note();
    is_unknown
        || ran_standalone(evidence, disk, cib)
        || put_back::reaches_beyond(disk, peer_etcd)
        || is_a_history_beside(evidence, disk, cib)
}

/// Returns whether this is the data of a sole voter that ran standalone, and the peer's history does not continue that data. It
/// may hold writes that exist nowhere else, even if an operator gave it up.
fn ran_standalone(evidence: &Evidence, disk: &DataDir, cib: &Cib) -> bool {
    let served = served_lineage(cib);
    let note = evidence.last_note().filter(|note| note.alone_since.is_some());
    classify(disk) == Standing::SoleVoter
        && note.is_some_and(|note| served.is_some_and(|served| *served != note.lineage))
}

/// Joins the peer's cluster. This is the only place at which the agent moves a data dir aside, because here the peer serves as a
/// voter and has listed this node.
fn join(evidence: &Evidence, disk: &DataDir, peer_etcd: &Etcd, cib: &Cib) -> Plan {
    let lineage = cib.lineage.clone();
    // From here on our data is the peer's history, forks included.
    let of = peer_etcd.member_at(&evidence.me).map(|entry| DataOwner {
        cluster_id: peer_etcd.cluster_id,
        member_id: entry.id,
        node: evidence.me.name.clone(),
    });
    let note = Effect::WriteNote(DurableState { lineage: lineage.clone(), joins: true, of, ..DurableState::default() });
    let (mut effects, rule) = match disk {
        DataDir::Blank => {
            // An earlier join was cut off between its backup and its record, which still shows the lineage of the former data. A peer
            // that starts again would wait for that history.
            let is_stale = |record: &PublishedState| record.lineage.forks > 0 && record.lineage != lineage;
            let is_left = cib.own_record.as_ref().is_some_and(is_stale);
            let told = is_left.then(|| Effect::PublishRecord(joining_record(evidence, lineage)));
            ([Some(note), told].into_iter().flatten().collect(), Rule::PeerServesAndThisNodeIsBlank)
        }
        DataDir::Present(_) | DataDir::Broken { .. } => {
            let aside = if is_kept_for_good(evidence, disk, peer_etcd, cib) {
                Effect::MoveHistoryAside
            } else {
                Effect::MoveDataAside
            };
            let told = Effect::PublishRecord(joining_record(evidence, lineage));
            (vec![aside, note, told], Rule::PeerServesAndThisDataIsNotIts)
        }
    };
    let mode = RunMode::JoinAsLearner { initial_cluster: initial_cluster(evidence, peer_etcd) };
    effects.push(Effect::RunContainer(mode.clone()));
    let progress = Progress::enter(Phase::Started(mode), evidence.elapsed_ms);
    Plan::then_look(effects, LOOK_FOR_A_LEADER_MS, progress, evidence.rule(rule))
}

/// Returns the name and the peer URL of every member, for etcd's parameter `initial-cluster`. etcd compares it with the member
/// list entry by entry.
fn initial_cluster(evidence: &Evidence, etcd: &Etcd) -> Vec<(NodeName, String)> {
    let named = |member: &crate::decide::evidence::Member| {
        let name = if member.is_at(&evidence.me) { evidence.me.name.clone() } else { member.name.clone() };
        member.peer_urls.iter().map(move |url| (name.clone(), url.clone())).collect::<Vec<_>>()
    };
    etcd.members.iter().flat_map(named).collect()
}
