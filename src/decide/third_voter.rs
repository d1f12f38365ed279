//! The third voter, outside of the pair. Next to it, and among three or more voters of any kind, Raft's own majority
//! decides. No cluster is forced there, no vote is cast by proxy and no member is removed; this file defines those cases for
//! all other rules.
//!
//! A pair's survivor may run standalone because no other member votes, and the member that did is off. Pacemaker does not
//! fence a third voter's machine. It may be cut off from this node and serve with the other one, or hold what only that one
//! had.

use super::evidence::{DataDir, Etcd, Evidence, Member, ThirdVoter};
use super::standing::{Standing, classify};

impl ThirdVoter {
    /// Returns whether `entry` of the member list is this third voter. The caller has checked that `entry` belongs to neither
    /// node.
    pub fn is(&self, entry: &Member) -> bool {
        self.id == Some(entry.id) || self.peer_url.is_empty() || entry.peer_urls.contains(&self.peer_url)
    }
}

impl Evidence {
    pub(super) fn third_voter(&self) -> Option<&ThirdVoter> {
        self.cib.known()?.third_voter.as_ref()
    }

    /// Returns whether `entry` of the member list is the third voter. If the property `etcd_guest` names one of the two nodes,
    /// there is no third voter.
    pub(super) fn is_third_voter(&self, entry: &Member) -> bool {
        let is_a_nodes = entry.is_at(&self.me) || self.peer.as_ref().is_some_and(|peer| entry.is_at(peer));
        !is_a_nodes && self.third_voter().is_some_and(|third_voter| third_voter.is(entry))
    }

    /// Returns the number of etcd's voters without the third voter.
    pub(super) fn voters_of_the_pair(&self, etcd: &Etcd) -> usize {
        etcd.voters().filter(|voter| !self.is_third_voter(voter)).count()
    }

    /// Returns whether Raft's own majority of these members decides, and the agent does not. That is so if three or more members
    /// vote, or if the third voter does.
    pub(super) fn is_left_to_raft(&self, members: &[Member]) -> bool {
        let voters = || members.iter().filter(|member| !member.is_learner);
        voters().count() > 2 || voters().any(|voter| self.is_third_voter(voter))
    }

    /// Returns the role of the member that owns `disk`. A voter next to the third voter counts as one among many.
    pub(super) fn standing(&self, disk: &DataDir) -> Standing {
        beside(self.third_voter(), classify(disk))
    }

    /// Returns whether the data belongs to a voter among three or more, or next to the third voter. For such a voter Raft's own
    /// majority decides, and the agent does not.
    pub fn is_among_many(&self, disk: &DataDir) -> bool {
        self.standing(disk) == Standing::VoterAmongMany
    }

    /// Returns the third voter if it is a learner, because etcd allows one learner only. The third voter gives that place up for
    /// a peer that returns, because two copies on the pair's own disks are more important.
    pub(super) fn third_voter_in_the_learners_place<'a>(&self, etcd: &'a Etcd) -> Option<&'a Member> {
        etcd.members.iter().find(|entry| entry.is_learner && self.is_third_voter(entry))
    }
}

/// Corrects a member's role. If it is one of two voters and the other one is the third voter, it counts as one among many. No new
/// cluster is forced without the third voter.
pub(super) fn beside(third_voter: Option<&ThirdVoter>, standing: Standing) -> Standing {
    match standing {
        Standing::VoterBeside(other) if third_voter.is_some_and(|third_voter| third_voter.id == Some(other)) => {
            Standing::VoterAmongMany
        }
        standing => standing,
    }
}
