//! Before a node runs standalone it announces that for good: in its note, and in the CIB.

use super::proof::{self, is_confirmed, note_unreadable};
use super::vote;
use crate::base::Fact;
use crate::decide::evidence::{
    BootState, DataDir, DurableState, Evidence, Leaderless, Lineage, MemberId, PublishedState, Reached,
};
use crate::decide::plan::{Effect, Phase, Plan, Progress};
use crate::decide::reason::Reason;
use crate::decide::standing::{database_is_ahead, position};
use crate::decide::timing::LOOK_FOR_AN_ANNOUNCEMENT_MS;

/// Announces in the durable note and in the CIB that this node will run standalone. This node's etcd runs standalone only after both
/// are written.
pub(in crate::decide) fn announce(evidence: &Evidence, because: Reason) -> Plan {
    if let Some(refusal) = evidence.disk.known().and_then(database_is_ahead) {
        return evidence.refuse(refusal);
    }
    let Some(note) = announced_note(evidence) else { return evidence.refuse(note_unreadable(evidence)) };
    let mut effects: Vec<Effect> = given_up(evidence, &note).into_iter().chain(forgotten_voter(evidence)).collect();
    effects.push(Effect::WriteNote(note.clone()));
    // An earlier action may have said it and been over then: on a slow machine this one's time is short, too. The record comes behind
    // it in any case, and nothing is done before the CIB has shown both together.
    if !is_told(evidence, &note.lineage) {
        effects.push(Effect::PublishLineage(note.lineage.clone()));
    }
    if !is_named(evidence) {
        effects.push(Effect::SetStandalone(Some(evidence.me.name.clone())));
    }
    let vote = vote::vote(evidence).ok();
    let nonce = (vote.is_some() || !evidence.container_may_run()).then_some(evidence.nonce);
    let record = announced_record(evidence, &note, nonce);
    let phase = match (nonce.filter(|_| record.is_some()), vote) {
        (Some(nonce), Some(vote)) => Phase::VoteProxy { nonce, term: vote.term },
        (Some(nonce), None) => Phase::Barrier { nonce },
        (None, _) => Phase::Announced,
    };
    effects.extend(record);
    Plan::then_look(effects, LOOK_FOR_AN_ANNOUNCEMENT_MS, Progress::enter(phase, evidence.elapsed_ms), because)
}

/// Returns the effect that lowers the published log position (`reached`) to the end of this node's data; `None` if the data
/// reaches that far.
///
/// If the data ends before the published position, an operator has chosen data that lacks its last entries. After this effect,
/// that data counts as complete, and every cluster that is forced later holds at least as much.
fn given_up(evidence: &Evidence, note: &DurableState) -> Option<Effect> {
    // A running etcd has what was reached, also one that is silent.
    let DataDir::Present(history) = evidence.disk.known()? else { return None };
    let reached = evidence.cib.known()?.reached.known()?;
    let is_less = reached.cluster_id == history.cluster_id && history.last_index < reached.position.index;
    let cluster_id = history.cluster_id;
    let chosen = Reached { cluster_id, forks: note.lineage.forks, position: position(history), is_redundant: false };
    is_less.then_some(Effect::SetReached(chosen))
}

/// Returns the effect that clears [`BootState::voter`] if the CIB no longer has this node's claim to run standalone. Without the
/// claim, the stored voter proves nothing. It has to be cleared, because the announcement publishes a new claim, which would make
/// it a proof again.
fn forgotten_voter(evidence: &Evidence) -> Option<Effect> {
    let memory = evidence.boot_state().filter(|memory| memory.voter.is_some())?;
    let is_void = evidence.running_voter().is_none();
    is_void.then(|| Effect::Remember(BootState { voter: None, ..memory.clone() }))
}

/// Returns the durable note with which this node announces that it will run standalone; `None` if the present note is unknown.
///
/// The new note counts one more fork (forced new cluster) than any node is known to have recorded. If the last announced fork was
/// not carried out, the new note keeps that fork's number:
///
/// - The fork was not carried out if the present note names no voter (see [`carried_out`]), or a voter that still votes with this
///   node.
/// - While etcd is silent, it is unknown whether that voter still votes, and the number rises.
/// - The number also rises at an operator's confirmation, because the peer may have recorded the last number and continued with
///   it.
fn announced_note(evidence: &Evidence) -> Option<DurableState> {
    let note = evidence.last_note()?;
    let without = other_voter(evidence);
    let is_void = note.without.is_none() || note.without == without;
    if note.alone_since.is_some() && is_void && note.lineage.by == evidence.me.name && !is_confirmed(evidence) {
        return Some(DurableState { gave_up: false, without, ..note });
    }
    let position = match (&evidence.disk, &evidence.own_etcd) {
        (Fact::Known(DataDir::Present(history)), _) => position(history),
        (_, Fact::Known(etcd)) => etcd.position(),
        _ => evidence.own_leaderless.known().map(Leaderless::position).unwrap_or_default(),
    };
    // Above every fork that anyone recorded: where an operator gave those up, ours is the history that counts.
    let known = evidence.cib.known().map_or(0, |cib| cib.lineage.forks).max(note.lineage.forks);
    let lineage = Lineage { forks: known + 1, by: evidence.me.name.clone() };
    // A confirmation that is still there is about this very announcement, and names the peer.
    let gave_up = is_confirmed(evidence);
    let (alone_since, of) = (Some(position), evidence.own_data());
    // The act that writes it measures the revision.
    let alone_revision = None;
    Some(DurableState { lineage, alone_since, alone_revision, left_at: None, gave_up, joins: note.joins, of, without })
}

/// Returns the update of the durable note right before a new cluster is forced; `None` if the note needs no update. The update
/// adds the voter that the force removes, and the end of the log with which the new cluster begins. A silent etcd may not have
/// reported them before.
pub(super) fn carried_out(evidence: &Evidence) -> Option<Effect> {
    let note = evidence.last_note()?;
    let without = other_voter(evidence);
    let ends = evidence.disk.known().and_then(|disk| match disk {
        DataDir::Present(history) => Some(position(history)),
        DataDir::Blank | DataDir::Broken { .. } => None,
    });
    let alone_since = note.alone_since.map(|since| since.max(ends.unwrap_or_default()));
    let is_news = (note.without, note.alone_since) != (without, alone_since);
    is_news.then_some(Effect::WriteNote(DurableState { alone_since, without, ..note }))
}

/// Returns the other one of two voters: from this node's data, from its etcd or, while etcd has no leader, from [`Leaderless`].
/// The published record is not used, because the members may have changed since it was published.
fn other_voter(evidence: &Evidence) -> Option<MemberId> {
    if evidence.disk.known().is_some() || evidence.own_etcd.known().is_some() {
        return proof::other_voter(evidence);
    }
    let told = evidence.own_leaderless.known()?;
    told.voters().map(|member| member.id).find(|id| *id != told.member_id)
}

/// Returns the effect that publishes this node's record for running standalone, with the lineage and `gave_up` of `note`. `nonce`
/// distinguishes this write of the record from every other one.
pub(super) fn announced_record(evidence: &Evidence, note: &DurableState, nonce: Option<u64>) -> Option<Effect> {
    let record = evidence.cib.known()?.own_record.clone().or_else(|| evidence.published_state())?;
    let (lineage, gave_up) = (note.lineage.clone(), note.gave_up);
    Some(Effect::PublishRecord(PublishedState { lineage, claims: true, gave_up, left: false, nonce, ..record }))
}

pub(super) fn announcement_is_seen(evidence: &Evidence) -> bool {
    is_named(evidence) && evidence.own_lineage().is_some_and(|own| is_told(evidence, &own))
}

/// Returns whether `lineage` is the newest one that the CIB records.
fn is_told(evidence: &Evidence, lineage: &Lineage) -> bool {
    evidence.cib.known().is_some_and(|cib| cib.lineage == *lineage)
}

/// Returns whether the CIB names this node as the sole voter.
fn is_named(evidence: &Evidence) -> bool {
    evidence.cib.known().is_some_and(|cib| cib.standalone_node.as_ref() == Some(&evidence.me.name))
}

/// Returns whether this node's CIB shows two things: the announcement that this node runs standalone, and this node's later
/// record with `nonce`.
pub(super) fn came_back(evidence: &Evidence, nonce: u64) -> bool {
    let own_record = evidence.cib.known().and_then(|cib| cib.own_record.as_ref());
    own_record.is_some_and(|record| record.nonce == Some(nonce)) && announcement_is_seen(evidence)
}

/// Returns whether this node has announced that it runs standalone, and not taken the announcement back. If the durable note cannot be
/// read, this returns true.
pub(in crate::decide) fn may_be_announced(evidence: &Evidence) -> bool {
    evidence.last_note().is_none_or(|note| note.alone_since.is_some())
}
