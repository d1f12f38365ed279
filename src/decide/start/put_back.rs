//! Data that ends before what was reached with it, and data that lies on the wrong node: a disk that was put back or copied.
//! `docs/design/put-back.md` has the argument.

use crate::decide::evidence::{
    Cib, DataDir, Etcd, Evidence, History, Lineage, LogPosition, MemberId, PublishedState, Reached,
};
use crate::decide::reason::Refusal;
use crate::decide::standing::{Standing, classify, position};

/// Returns the data in two records if both are of the same cluster; `None` otherwise.
fn of_one_cluster<'a>(one: &'a PublishedState, other: &'a PublishedState) -> Option<(&'a History, &'a History)> {
    match (&one.disk, &other.disk) {
        (DataDir::Present(one), DataDir::Present(other)) if one.cluster_id == other.cluster_id => Some((one, other)),
        _ => None,
    }
}

/// Returns whether two records are of the same member. In that case one disk is a copy of the other, because member ids are never
/// reused.
pub(super) fn are_copies(one: &PublishedState, other: &PublishedState) -> bool {
    of_one_cluster(one, other).is_some_and(|(one, other)| one.member_id == other.member_id)
}

/// Returns whether a former peer's data proves that the sole voter's disk was put back to an earlier state. The peer has to know
/// entries as committed that the sole voter lacks, or has to have voted in a later term.
///
/// It proves nothing if the sole voter counts more forks (forced new clusters), because an operator then gave up the former
/// peer's entries.
pub(super) fn proves_put_back(former: &PublishedState, sole: &PublishedState) -> bool {
    let Some((peer, me)) = of_one_cluster(former, sole) else { return false };
    let voted = match classify(&former.disk) {
        Standing::VoterBeside(other) if other == me.member_id => true,
        Standing::Departed => true,
        Standing::Learner => false,
        _ => return false,
    };
    let has_more = peer.commit_index > me.last_index || (voted && peer.last_term > me.last_term);
    has_more && sole.lineage.forks <= former.lineage.forks
}

/// Returns whether a peer that has left knows entries as committed that the remaining voter lacks.
pub(super) fn left_more(departed: &PublishedState, voter: &PublishedState) -> bool {
    let proves = |(peer, me): (&History, &History)| peer.commit_index > me.last_index;
    departed.lineage.forks >= voter.lineage.forks && of_one_cluster(departed, voter).is_some_and(proves)
}

/// Returns whether a node's record shows that its disk was put back to an earlier state. It does if the data ends before a
/// position that it had reached. It also does if the data lacks a fork (forced new cluster) that the same node has recorded in
/// its attribute (`recorded`).
pub(super) fn is_behind(record: &PublishedState, recorded: Option<&Lineage>, reached: Option<&Reached>) -> bool {
    let DataDir::Present(history) = &record.disk else { return false };
    let has_lost_a_fork = recorded.is_some_and(|recorded| recorded.forks > record.lineage.forks);
    has_lost_a_fork || reached.is_some_and(|reached| ends_before(history, reached))
}

/// Returns whether a history ends before a position that its cluster had reached. The number of forks (new clusters that were
/// forced) since that position does not matter:
///
/// - A fork holds everything that was committed before it.
/// - If an operator began a fork from data that ends earlier, the agent has first published the end of that data (`announce`).
/// - Data with fewer forks was left behind, or its durable note was put back together with it.
///
/// A leader publishes its position right before it promotes its learner (`reached::before_a_promotion`). A sole voter's data that
/// ends exactly there lacks the promotion, so it was put back, too.
fn ends_before(history: &History, reached: &Reached) -> bool {
    history.cluster_id == reached.cluster_id && history.last_index < least(history, reached).index
}

/// Returns the lowest position at which complete data can end. Data that ends before it was put back to an earlier state.
fn least(history: &History, reached: &Reached) -> LogPosition {
    let is_alone = history.is_voter() && history.voters.len() == 1;
    let LogPosition { term, index } = reached.position;
    LogPosition { term, index: index.saturating_add(u64::from(reached.is_redundant && is_alone)) }
}

/// Returns whether a record's data ends before `reached`, which is a position of the same history.
pub(super) fn ends_before_position(record: &PublishedState, reached: LogPosition) -> bool {
    matches!(&record.disk, DataDir::Present(history) if position(history) < reached)
}

/// Returns this node's refusal to start if one node's disk was put back to an earlier state.
pub(super) fn refusal(me: &PublishedState, peer: &PublishedState) -> Refusal {
    let ends = |record: &PublishedState| match &record.disk {
        DataDir::Present(history) => Some(position(history)),
        DataDir::Blank | DataDir::Broken { .. } => None,
    };
    Refusal::DiskWasPutBack { here: ends(me).unwrap_or_default(), there: ends(peer), reached: None }
}

/// Returns the refusal to start two voters if the data of both ends before `reached`. This node knows that position to have been
/// reached.
pub(super) fn refusal_of_two(me: &PublishedState, peer: &PublishedState, reached: LogPosition) -> Refusal {
    match refusal(me, peer) {
        Refusal::DiskWasPutBack { here, there, .. } => Refusal::DiskWasPutBack { here, there, reached: Some(reached) },
        other => other,
    }
}

/// Returns the highest recorded position that this node's data had reached and now ends before; `None` if there is none. The CIB,
/// the durable note and the agent's memory of this boot record such positions.
pub(in crate::decide) fn put_back_from(evidence: &Evidence, history: &History) -> Option<LogPosition> {
    let known = [
        behind_the_cluster(evidence, history),
        behind_the_last_stop(evidence, history),
        behind_the_announcement(evidence, history),
        behind_the_peers_record(evidence, history),
    ];
    known.into_iter().flatten().max()
}

/// Returns the position that this data had reached when this node announced that it will run standalone; `None` unless the data
/// ends before it. Data of a later term counts as complete, because entries of that term may have replaced an uncommitted end of
/// the log.
fn behind_the_announcement(evidence: &Evidence, history: &History) -> Option<LogPosition> {
    let since = evidence.last_note()?.alone_since?;
    (history.last_index < since.index && history.last_term <= since.term).then_some(since)
}

fn behind_the_cluster(evidence: &Evidence, history: &History) -> Option<LogPosition> {
    let reached = evidence.cib.known()?.reached.known()?;
    ends_before(history, reached).then(|| least(history, reached))
}

fn behind_the_last_stop(evidence: &Evidence, history: &History) -> Option<LogPosition> {
    let end = evidence.boot_state()?.ended_at.as_ref()?;
    let is_of_it = (end.cluster_id, end.member_id) == (history.cluster_id, history.member_id);
    (is_of_it && position(history) < end.position).then_some(end.position)
}

/// Returns the position up to which the peer has the history of this node's data, by the peer's record. `None` unless this data
/// ends before it.
///
/// The two nodes' members are the only voters, so each of them has what both committed. If this data ends earlier, an operator
/// has replaced it by older data.
///
/// - If etcd died here, no record shows where its data ended. So even an uncommitted entry that only the peer has counts.
/// - If an operator gave up the entries that only the peer has, the peer's record proves nothing. In that case this node counts a
///   fork (forced new cluster) that the peer does not count.
/// - A fork that this node recorded without an operator is no such case, because the fork begins with this data.
fn behind_the_peers_record(evidence: &Evidence, history: &History) -> Option<LogPosition> {
    let peer = evidence.cib.known()?.peer_record.as_ref()?;
    let DataDir::Present(theirs) = &peer.disk else { return None };
    let are_two_voters = history.cluster_id == theirs.cluster_id
        && history.voters.contains(&theirs.member_id)
        && theirs.voters.contains(&history.member_id);
    let note = evidence.last_note()?;
    let only_announced = note.alone_since.is_some() && note.lineage.by == evidence.me.name && !note.gave_up;
    let is_given_up = note.lineage.forks > peer.lineage.forks && !only_announced;
    let end = evidence.boot_state().and_then(|memory| memory.ended_at.as_ref());
    let died = end.is_some_and(|end| end.found_dead);
    let index = if died { theirs.last_index } else { theirs.commit_index };
    let known = LogPosition { term: theirs.last_term, index };
    (are_two_voters && !is_given_up && history.last_index < index).then_some(known)
}

/// Returns the refusal to start a node with data that ends before `reached`, which is a position that the data had reached.
pub(in crate::decide) fn alone(history: &History, reached: LogPosition) -> Refusal {
    Refusal::DiskWasPutBack { here: position(history), there: None, reached: Some(reached) }
}

/// Returns whether this data holds committed entries, or a term, that the serving etcd of the same cluster lacks.
pub(super) fn reaches_beyond(disk: &DataDir, serving: &Etcd) -> bool {
    let DataDir::Present(history) = disk else { return false };
    let voted = history.is_voter() || history.has_left;
    let has_more = history.commit_index > serving.index || (voted && history.last_term > serving.term);
    history.cluster_id == serving.cluster_id && has_more
}

/// Returns the refusal if this node's data belongs to the other node's member. The CIB and the durable note record which node
/// that member ran on.
pub(in crate::decide) fn copied(evidence: &Evidence, record: &PublishedState, cib: &Cib) -> Option<Refusal> {
    let DataDir::Present(history) = &record.disk else { return None };
    let refusal = Refusal::CopiedDisk { member: history.member_id };
    if cib.peer_record.as_ref().is_some_and(|peer| are_copies(record, peer)) {
        return Some(refusal);
    }
    let is_it =
        |cluster_id: u64, member_id: MemberId| (cluster_id, member_id) == (history.cluster_id, history.member_id);
    let ran_there = cib.peer_identity.is_some_and(|ran| is_it(ran.cluster_id, ran.member_id));
    let of = evidence.note.known().and_then(|note| note.of.as_ref());
    let is_the_peers_note = of.is_some_and(|of| of.node == evidence.peer_name() && is_it(of.cluster_id, of.member_id));
    (ran_there || is_the_peers_note).then_some(refusal)
}

/// Returns the refusal if the etcd at the peer's address belongs to another cluster than the peer's own data. If the peer has no
/// data, it belongs to the cluster of this node's data.
pub(super) fn another_cluster(evidence: &Evidence, serving: &Etcd, cib: &Cib) -> Option<Refusal> {
    let expected = match &cib.peer_record {
        Some(PublishedState { disk: DataDir::Present(history), .. }) => history.cluster_id,
        Some(_) => own_cluster(evidence)?,
        None => cib.peer_identity?.cluster_id,
    };
    let address = evidence.peer.as_ref().map(|peer| peer.client_url.clone()).unwrap_or_default();
    (expected != serving.cluster_id).then_some(Refusal::AnotherClusterAnswers { address })
}

/// Returns whether it is uncertain that the etcd at the peer's address is the peer's. It is uncertain if that etcd's cluster is
/// not that of this node's data, and the peer has published nothing about its own cluster.
pub(super) fn may_be_a_strangers(evidence: &Evidence, serving: &Etcd, cib: &Cib) -> bool {
    let is_unpublished = cib.peer_record.is_none() && cib.peer_identity.is_none();
    is_unpublished && own_cluster(evidence).is_some_and(|own| own != serving.cluster_id)
}

fn own_cluster(evidence: &Evidence) -> Option<u64> {
    match evidence.disk.known()? {
        DataDir::Present(history) => Some(history.cluster_id),
        DataDir::Blank | DataDir::Broken { .. } => None,
    }
}
