//! The one vote that a survivor lacks: the member that had it, and whether a vote proxy may cast it.

use super::proof::has_proof;
use crate::base::Fact;
use crate::decide::evidence::{Evidence, Leaderless, Recovery, RunningVoter, Version};
use crate::decide::peer::{PeerStatus, peer_word};
use crate::decide::plan::DeadVote;
use crate::decide::reason::NoVoteProxy;

/// First release of each of etcd's lines with which the vote proxy is tested. In earlier releases a sole voter acknowledges a
/// write before the write is on its disk.
const TESTED: [Version; 4] = [
    Version { minor: 4, patch: 21 },
    Version { minor: 5, patch: 5 },
    Version { minor: 6, patch: 0 },
    Version { minor: 7, patch: 0 },
];

/// Returns the vote that a vote proxy may cast now, or the reason why none may vote.
pub(super) fn vote(evidence: &Evidence) -> Result<DeadVote, NoVoteProxy> {
    if evidence.recovery == Recovery::Restart {
        return Err(NoVoteProxy::NotWanted);
    }
    // A machine that is there may start its etcd at any moment, whatever the state of its agent.
    if peer_word(evidence) != PeerStatus::Down {
        return Err(NoVoteProxy::PeerIsThere);
    }
    if evidence.boot_state().is_some_and(|memory| memory.in_vain) {
        return Err(NoVoteProxy::InVain);
    }
    // An operator's confirmation is about data, which is read once etcd is gone.
    if evidence.confirmation.known().is_some() {
        return Err(NoVoteProxy::NotProven);
    }
    // This boot remembers a voter only once it holds all that was acknowledged before it voted: see `upkeep`. The other
    // reasons to run standalone are about a node's data, too.
    let voter = leaderless_voter(evidence).ok_or(NoVoteProxy::NotProven)?;
    if voter.sole || !has_proof(evidence, voter.cluster_id, voter.member_id) {
        return Err(NoVoteProxy::NotProven);
    }
    let told = match &evidence.own_leaderless {
        Fact::Known(told) => told,
        other => return Err(NoVoteProxy::NotTold { why: other.why_unknown().to_owned() }),
    };
    let dead = other_voter(evidence, told).ok_or(NoVoteProxy::OtherVoters)?;
    if (told.cluster_id, told.member_id) != (voter.cluster_id, voter.member_id) {
        return Err(NoVoteProxy::OtherVoters);
    }
    if evidence.recovery != Recovery::VoteProxyUntested && !is_tested(told.version) {
        return Err(NoVoteProxy::UntestedRelease { version: told.version });
    }
    Ok(DeadVote {
        dead,
        member_id: told.member_id,
        cluster_id: told.cluster_id,
        term: told.term,
        applied: told.applied,
    })
}

fn is_tested(version: Version) -> bool {
    TESTED.iter().any(|first| first.minor == version.minor && first.patch <= version.patch)
}

/// Returns the id of the other voter if there are exactly two voters and the other voter has the peer's address; `None`
/// otherwise.
fn other_voter(evidence: &Evidence, told: &Leaderless) -> Option<u64> {
    let voters: Vec<_> = told.voters().collect();
    let peer = evidence.peer.as_ref()?;
    let other = voters.iter().find(|member| member.id != told.member_id && member.is_at(peer))?;
    let is_among = voters.iter().any(|member| member.id == told.member_id);
    (voters.len() == 2 && is_among).then_some(other.id)
}

/// Returns this node's voter (see [`Evidence::running_voter`]) if its etcd lacks a leader and needs another vote. If etcd
/// answers, its answer has to agree. If etcd does not answer, the stored voter counts, unless it is a sole voter or etcd serves.
pub(super) fn leaderless_voter(evidence: &Evidence) -> Option<RunningVoter> {
    let remembered = evidence.running_voter().cloned()?;
    match &evidence.own_etcd {
        Fact::Known(etcd) if etcd.leader.is_some() || etcd.is_learner => None,
        // A sole voter needs no other vote; it has no leader for a moment after its start.
        Fact::Known(etcd) if etcd.voters().count() < 2 || etcd.member_id != remembered.member_id => None,
        Fact::Known(_) => Some(remembered),
        // A sole voter that does not answer is slow or stuck, and forcing it once more mends nothing.
        Fact::Unknown(_) if !remembered.sole && !evidence.serves_unseen() => Some(remembered),
        Fact::Unknown(_) | Fact::Absent | Fact::NotAsked => None,
    }
}
