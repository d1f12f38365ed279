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
    /// Returns whether an entry of the list, which is neither node's, is this one.
    pub fn is(&self, entry: &Member) -> bool {
        self.id == Some(entry.id) || self.peer_url.is_empty() || entry.peer_urls.contains(&self.peer_url)
    }
}

impl Evidence {
    pub(super) fn third_voter(&self) -> Option<&ThirdVoter> {
        self.cib.known()?.third_voter.as_ref()
    }

    /// Returns whether an entry of the list is the third voter's. A property that names one of the nodes makes no third
    /// voter of it.
    pub(super) fn is_third_voter(&self, entry: &Member) -> bool {
        let is_a_nodes = entry.is_at(&self.me) || self.peer.as_ref().is_some_and(|peer| entry.is_at(peer));
        !is_a_nodes && self.third_voter().is_some_and(|third_voter| third_voter.is(entry))
    }

    /// Returns how many voters are not the third voter.
    pub(super) fn voters_of_the_pair(&self, etcd: &Etcd) -> usize {
        etcd.voters().filter(|voter| !self.is_third_voter(voter)).count()
    }

    /// Returns whether these members are left to their own majority: three or more vote, or the third voter does.
    pub(super) fn is_left_to_raft(&self, members: &[Member]) -> bool {
        let voters = || members.iter().filter(|member| !member.is_learner);
        voters().count() > 2 || voters().any(|voter| self.is_third_voter(voter))
    }

    /// Returns the standing of either node's data in this cluster.
    pub(super) fn standing(&self, disk: &DataDir) -> Standing {
        beside(self.third_voter(), classify(disk))
    }

    /// Returns whether the data is a voter's for which a majority decides.
    pub fn is_among_many(&self, disk: &DataDir) -> bool {
        self.standing(disk) == Standing::VoterAmongMany
    }

    /// Returns the third voter, where it has etcd's one place for a learner and the peer's node is not listed. It gives way
    /// to a peer that returns, because two copies on the pair's own disks come first.
    pub(super) fn third_voter_in_the_learners_place<'a>(&self, etcd: &'a Etcd) -> Option<&'a Member> {
        etcd.members.iter().find(|entry| entry.is_learner && self.is_third_voter(entry))
    }
}

/// Returns the standing next to the third voter. A voter next to it is one among many: no cluster is forced without it.
pub(super) fn beside(third_voter: Option<&ThirdVoter>, standing: Standing) -> Standing {
    match standing {
        Standing::VoterBeside(other) if third_voter.is_some_and(|third_voter| third_voter.id == Some(other)) => {
            Standing::VoterAmongMany
        }
        standing => standing,
    }
}
