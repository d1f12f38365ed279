//! The conditions for running standalone: the peer is out of the way, and no other node continued without this node's data,
//! or an operator gives up what that node wrote.

use crate::base::Fact;
use crate::decide::evidence::{
    Cib, DataDir, Evidence, History, Lineage, LogPosition, MemberId, PeerNode, PublishedState,
};
use crate::decide::peer::{PeerStatus, peer_has_nothing, peer_word};
use crate::decide::reason::Refusal;
use crate::decide::standing::{Standing, classify};
use crate::decide::start::cold_start::{self, Chosen, Cluster, ColdStart};
use crate::decide::start::put_back::{self, put_back_from};

/// Returns whether the peer cannot serve without this node. Either the peer is confirmed down (fenced, or shut down cleanly), or it is
/// confirmed stopped and has given up its claim to run standalone. Or it publishes that it holds no data, and no etcd runs there, so that
/// each of its starts waits for this node.
pub(in crate::decide) fn peer_is_out_of_the_way(evidence: &Evidence) -> bool {
    let record = evidence.cib.known().and_then(|cib| cib.peer_record.as_ref());
    let record = record.filter(|record| !record.claims && is_of_the_other_voter(evidence, record));
    let data = record.map(|record| evidence.standing(&record.disk));
    match peer_word(evidence) {
        PeerStatus::Down => true,
        // A sole voter has a history of its own, whatever an operator said when it was away. A choice between the two names it.
        PeerStatus::Stopped => data.is_some_and(|data| data != Standing::SoleVoter || is_chosen(evidence)),
        PeerStatus::Starting | PeerStatus::Planned => data.is_some() && peer_has_nothing(evidence),
        PeerStatus::Nobody | PeerStatus::Active | PeerStatus::Lost | PeerStatus::Unknown(_) => false,
    }
}

/// Returns whether an operator chose this node's data (`etcd_primary`).
fn is_chosen(evidence: &Evidence) -> bool {
    evidence.cib.known().is_some_and(|cib| Chosen::seen_in(evidence, cib) == Chosen::Me)
}

/// Returns whether `record` is of the other voter that this node's data or its running etcd names. A record of another member is older than
/// that membership, and so is everything else of the peer in this CIB.
fn is_of_the_other_voter(evidence: &Evidence, record: &PublishedState) -> bool {
    match (other_voter(evidence), &record.disk) {
        (Some(other), DataDir::Present(history)) => history.member_id == other,
        _ => true,
    }
}

/// Returns the other voter of two, from this node's data or its etcd.
pub(super) fn other_voter(evidence: &Evidence) -> Option<MemberId> {
    if let Some(Standing::VoterBeside(other)) = evidence.disk.known().map(classify) {
        return Some(other);
    }
    let etcd = evidence.own_etcd.known()?;
    etcd.voters().map(|member| member.id).find(|id| *id != etcd.member_id)
}

/// Returns whether three or more members vote, or the third voter does. Then Raft's own majority decides, and a member continues with it or
/// not at all. A running etcd counts more than this node's published record, which is older.
pub(in crate::decide) fn votes_among_many(evidence: &Evidence) -> bool {
    let published = evidence.cib.known().and_then(|cib| cib.own_record.as_ref());
    match (&evidence.own_etcd, &evidence.own_leaderless) {
        (Fact::Known(etcd), _) if !etcd.is_learner => evidence.is_left_to_raft(&etcd.members),
        (_, Fact::Known(told)) if evidence.is_left_to_raft(&told.members) => true,
        _ => published.is_some_and(|record| evidence.standing(&record.disk) == Standing::VoterAmongMany),
    }
}

/// Returns whether this node's data provably holds every acknowledged write.
///
/// First, this node's etcd ran as a voter in this boot until the peer was lost, so nothing was acknowledged without it. Second, no node has
/// recorded a forced new cluster that this node does not know, nor published that it is the sole voter. An agent of another kind publishes
/// only that it is the sole voter before it forces a new cluster. Outdated entries of that kind are not in the CIB, because `upkeep`
/// removed them before it stored the voter.
pub(in crate::decide) fn proves_that_the_peer_did_not_go_on(evidence: &Evidence, history: &History) -> bool {
    has_proof(evidence, history.cluster_id, history.member_id) && put_back_from(evidence, history).is_none()
}

pub(super) fn has_proof(evidence: &Evidence, cluster_id: u64, member_id: MemberId) -> bool {
    let Some(voter) = evidence.running_voter() else { return false };
    let peer_is_alone = |cib: &Cib| cib.standalone_node.as_deref() == Some(evidence.peer_name());
    // Among three and more a majority acknowledged without it.
    !voter.among_many
        && evidence.cib.known().is_some_and(|cib| !peer_is_alone(cib))
        && !evidence.may_have_left()
        && (voter.cluster_id, voter.member_id) == (cluster_id, member_id)
        && !evidence.was_left_behind()
}

/// Returns whether this sole voter's data is the newest: this node knows every recorded fork, or the fork that it lacks was never carried
/// out.
///
/// A fork is a forced new cluster, and it is recorded before the force. If the force is called off, the record stays. The fork does not
/// count if the peer, which recorded it, has since left this node's cluster, votes next to this node, gave up its data to join it, or
/// learns from it. If the peer claims a history of its own, this node's data is never the newest.
pub(in crate::decide) fn is_newest(evidence: &Evidence, record: &PublishedState) -> bool {
    let Some(cib) = evidence.cib.known() else { return false };
    if matches!(&record.disk, DataDir::Present(history) if put_back_from(evidence, history).is_some()) {
        return false;
    }
    let Some(peer) = &cib.peer_record else { return !evidence.was_left_behind() };
    let answer = cold_start::answer(record, peer, &Cluster::seen_in(evidence, cib));
    let split = match &answer {
        // The record of a peer that claims nothing may be outdated: that data may be gone.
        ColdStart::Refuse(Refusal::HistoriesSplit) => peer.claims,
        ColdStart::Refuse(Refusal::DiskWasPutBack { .. } | Refusal::CopiedDisk { .. }) => true,
        _ => false,
    };
    // A lost peer may have forked since it published its record; one that is here would claim. A peer that left has no vote.
    let is_there = !matches!(peer_word(evidence), PeerStatus::Lost | PeerStatus::Unknown(_));
    let votes_beside = cold_start::still_votes_beside(peer, record) && only_the_peers(cib, record, peer);
    let is_void = is_there && (peer.joins || votes_beside || cold_start::learns_from(peer, record));
    !split && (!evidence.was_left_behind() || cold_start::left_to(peer, record) || is_void)
}

/// Returns whether the peer's record contains every recorded fork (forced new cluster) that this node does not know.
fn only_the_peers(cib: &Cib, record: &PublishedState, peer: &PublishedState) -> bool {
    let is_of_the_peer = |forks: &Lineage| !forks.is_beyond(&record.lineage) || *forks == peer.lineage;
    is_of_the_peer(&cib.lineage) && cib.peer_lineage.as_ref().is_none_or(is_of_the_peer)
}

/// Returns whether each fork (forced new cluster) that this voter of three does not know was called off or given up half-way. The peer
/// recorded the fork, has published since then that this node votes next to it, and waits for that vote.
///
/// A node that carries a fork out has a nonce in its record until it publishes that it is the only voter. This node could serve without the
/// peer only with a committed vote of a third member. The peer's log contains such a commit too, and no new cluster is forced from a log
/// with three voters.
pub(in crate::decide) fn was_called_off(evidence: &Evidence, record: &PublishedState) -> bool {
    evidence.cib.known().is_some_and(|cib| {
        let waits = |peer: &PublishedState| peer.nonce.is_none() && cold_start::counts_as_voter(peer, record);
        cib.peer_record.as_ref().is_some_and(|peer| waits(peer) && only_the_peers(cib, record, peer))
    })
}

/// Returns whether an operator gave up the peer by name. If the peer is known to have continued without this node, the operator also has to
/// accept the loss of its writes.
pub(in crate::decide) fn operator_confirmed(evidence: &Evidence, history: &History) -> bool {
    let is_known = || evidence.was_left_behind() || put_back_from(evidence, history).is_some();
    evidence.confirmation_for(history).is_some_and(|word| word.accept_loss || !is_known())
}

/// Returns whether an operator's confirmation names the present peer and was given in this boot, while etcd runs. The agent compares this
/// node's data with the confirmation once etcd is stopped.
pub(super) fn is_confirmed(evidence: &Evidence) -> bool {
    let word = evidence.confirmation.known();
    word.is_some_and(|word| word.boot_id == evidence.boot_id && word.lost_node == evidence.peer_name())
}

/// Returns whether `force_new_cluster` is set on this node and not on the peer, so that this node's data counts, whatever the peer holds.
///
/// OpenShift's etcd operator (when it replaced the peer), its restore script or an administrator sets the attribute. It names no writes
/// that may be lost. So if the peer is known to have continued without this data, only `confirm-recovery --accept-loss` gives up the peer's
/// writes. A restored snapshot is an exception: its cluster id differs, and it was put here for that purpose.
pub(in crate::decide) fn told_to(evidence: &Evidence) -> bool {
    let is_set = |cib: &Cib| cib.others.force_on_me && !cib.others.force_on_peer;
    let went_on = evidence.was_left_behind() || peer_votes_alone(evidence) || was_put_back(evidence).is_some();
    evidence.cib.known().is_some_and(is_set) && (!went_on || is_restored(evidence))
}

/// Returns whether the peer's record names the peer as the sole voter: this node's member was removed there without a forced new cluster.
fn peer_votes_alone(evidence: &Evidence) -> bool {
    let record = evidence.cib.known().and_then(|cib| cib.peer_record.as_ref());
    record.is_some_and(|record| classify(&record.disk) == Standing::SoleVoter)
}

/// Returns this node's data and the position that it had reached, if the data was put back to an earlier state.
fn was_put_back(evidence: &Evidence) -> Option<(&History, LogPosition)> {
    let Some(DataDir::Present(history)) = evidence.disk.known() else { return None };
    put_back_from(evidence, history).map(|reached| (history, reached))
}

fn is_restored(evidence: &Evidence) -> bool {
    let Some(DataDir::Present(history)) = evidence.disk.known() else { return false };
    let ran_here = evidence.cib.known().and_then(|cib| cib.own_identity);
    ran_here.is_some_and(|ran| ran.cluster_id != history.cluster_id)
}

/// Returns whether the peer's machine has not joined since the cluster started here. Then it is a new node that replaces another one.
pub(in crate::decide) fn peer_was_never_seen(evidence: &Evidence) -> bool {
    evidence.cib.known().is_some_and(|cib| cib.peer_node == PeerNode::NeverSeen)
}

/// Returns why this node may not run standalone from a voter's data: nothing proves that the data is complete, or it is known to lack
/// writes.
pub(in crate::decide) fn without_proof(evidence: &Evidence, position: LogPosition) -> Refusal {
    let written = evidence.local.log_written;
    if evidence.last_note().is_none() {
        return note_unreadable(evidence);
    }
    if evidence.was_left_behind() {
        Refusal::PeerWentOnWithoutUs { position, written }
    } else if let Some((history, reached)) = was_put_back(evidence) {
        put_back::alone(history, reached)
    } else {
        Refusal::NoProofThatPeerDidNotGoOn { position, written }
    }
}

/// Returns the refusal for a durable note that cannot be read. The note records how often this node ran standalone and whether it left, and
/// no decision about either is made without it.
pub(in crate::decide) fn note_unreadable(evidence: &Evidence) -> Refusal {
    Refusal::NoteUnreadable { why: evidence.note.why_unknown().to_owned() }
}
