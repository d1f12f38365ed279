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

/// Returns whether the peer cannot serve without this node. This is true in three cases:
///
/// - The peer is confirmed down (fenced, or shut down cleanly).
/// - The peer is confirmed stopped, and has given up its claim to run standalone.
/// - The peer publishes that it holds no data, and no etcd runs there. In that case each start of the peer waits for this node.
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

/// Returns whether the other voter published `record`. This node's data names the other voter, or else its running etcd does. A record
/// of a different member was published before the present membership, and so was everything else about the peer in this CIB.
fn is_of_the_other_voter(evidence: &Evidence, record: &PublishedState) -> bool {
    match (other_voter(evidence), &record.disk) {
        (Some(other), DataDir::Present(history)) => history.member_id == other,
        _ => true,
    }
}

/// Returns the other one of two voters, from this node's data or its etcd.
pub(super) fn other_voter(evidence: &Evidence) -> Option<MemberId> {
    if let Some(Standing::VoterBeside(other)) = evidence.disk.known().map(classify) {
        return Some(other);
    }
    let etcd = evidence.own_etcd.known()?;
    etcd.voters().map(|member| member.id).find(|id| *id != etcd.member_id)
}

/// Returns whether three or more members vote, or the third voter does. In that case only Raft's own majority decides whether a
/// member serves. A running etcd's member list counts more than this node's published record, because the record is older.
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
/// First, this node's etcd has to have run as a voter in this boot until the peer was lost. In that case no write was acknowledged
/// without it. Second, no node may have recorded a forced new cluster that this node does not know, and the peer may not be published
/// as the sole voter. Before it forces a new cluster, an agent of another kind publishes only that its node is the sole voter. Such an
/// entry in the CIB is never outdated, because `upkeep` removes outdated entries before it stores the voter.
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

/// Returns whether this sole voter's data is the newest. Either this node knows every recorded fork, or the fork that it does not
/// know was never carried out.
///
/// A fork is a forced new cluster, and a node records it before it forces. The record stays even if the node then does not force.
/// Such a fork does not count if the peer recorded it, and since then did one of four things: it left this node's cluster, it
/// votes next to this node, it gave up its data to join this node, or it learns from this node. If the peer claims a history of
/// its own, this node's data is never the newest.
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

/// Returns whether every recorded fork (forced new cluster) that this node does not know is also in the peer's record.
fn only_the_peers(cib: &Cib, record: &PublishedState, peer: &PublishedState) -> bool {
    let is_of_the_peer = |forks: &Lineage| !forks.is_beyond(&record.lineage) || *forks == peer.lineage;
    is_of_the_peer(&cib.lineage) && cib.peer_lineage.as_ref().is_none_or(is_of_the_peer)
}

/// Returns whether each fork (forced new cluster) that this voter of three does not know was abandoned before it was carried out. That
/// is so if the peer recorded the fork, and has published since then that this node votes next to it and that it waits for this vote.
///
/// While a node carries out a fork, its record has a nonce, until the node publishes that it is the only voter. Without the peer, this
/// node could have served only if a third member's vote was committed. The peer's log contains that commit too, and no new cluster is
/// forced from a log with three voters.
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

/// Returns whether an operator's confirmation names the present peer and was given in this boot. This function is for a running
/// etcd. Once etcd is stopped, the agent also compares the node's data with the confirmation.
pub(super) fn is_confirmed(evidence: &Evidence) -> bool {
    let word = evidence.confirmation.known();
    word.is_some_and(|word| word.boot_id == evidence.boot_id && word.lost_node == evidence.peer_name())
}

/// Returns whether the attribute `force_new_cluster` chooses this node's data: it is set on this node and not on the peer.
///
/// OpenShift's etcd operator sets the attribute when it has replaced the peer. Its restore script or an administrator may set it,
/// too. The attribute does not name writes that may be lost. So it does not count if the peer is known to have continued without
/// this data: only `confirm-recovery --accept-loss` gives up the peer's writes. A restored snapshot is an exception. Its cluster
/// id differs, and an operator put it here for that purpose.
pub(in crate::decide) fn told_to(evidence: &Evidence) -> bool {
    let is_set = |cib: &Cib| cib.others.force_on_me && !cib.others.force_on_peer;
    let went_on = evidence.was_left_behind() || peer_votes_alone(evidence) || was_put_back(evidence).is_some();
    evidence.cib.known().is_some_and(is_set) && (!went_on || is_restored(evidence))
}

/// Returns whether the peer's record shows the peer as the sole voter. In that case the peer's cluster removed this node's member
/// without a forced new cluster.
fn peer_votes_alone(evidence: &Evidence) -> bool {
    let record = evidence.cib.known().and_then(|cib| cib.peer_record.as_ref());
    record.is_some_and(|record| classify(&record.disk) == Standing::SoleVoter)
}

/// Returns this node's data, and the position that it had reached before, if the data was put back to an earlier state; `None`
/// otherwise.
fn was_put_back(evidence: &Evidence) -> Option<(&History, LogPosition)> {
    let Some(DataDir::Present(history)) = evidence.disk.known() else { return None };
    put_back_from(evidence, history).map(|reached| (history, reached))
}

fn is_restored(evidence: &Evidence) -> bool {
    let Some(DataDir::Present(history)) = evidence.disk.known() else { return false };
    let ran_here = evidence.cib.known().and_then(|cib| cib.own_identity);
    ran_here.is_some_and(|ran| ran.cluster_id != history.cluster_id)
}

/// Returns whether the peer's machine has not joined since the cluster started here. Such a machine is a new node that replaces
/// another one.
pub(in crate::decide) fn peer_was_never_seen(evidence: &Evidence) -> bool {
    evidence.cib.known().is_some_and(|cib| cib.peer_node == PeerNode::NeverSeen)
}

/// Returns why this node may not run standalone with a voter's data: the data is not proved to be complete, or it is known to
/// lack writes.
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

/// Returns the refusal for a durable note that cannot be read. Only the note records how often this node ran standalone, and
/// whether it left the member list. The agent makes no decision about either without it.
pub(in crate::decide) fn note_unreadable(evidence: &Evidence) -> Refusal {
    Refusal::NoteUnreadable { why: evidence.note.why_unknown().to_owned() }
}
