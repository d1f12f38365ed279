//! The third voter, outside of the pair: beside it, and among three or more voters of any kind, Raft's own majority decides. Nobody
//! is forced, stood in for or removed there; this file says where that is so, and everything else asks it.
//!
//! A pair's survivor may go on alone because nobody else votes, and what voted is off. A guest's machine is nobody's to fence: it
//! may be cut off from this node and serve with the other one, or hold what only that one had.

use super::evidence::{DataDir, Etcd, Evidence, Guest, Member};
use super::standing::{Standing, classify};

impl Guest {
    /// Whether an entry of the list that is neither node's is this one.
    pub fn is(&self, entry: &Member) -> bool {
        self.id == Some(entry.id) || self.peer_url.is_empty() || entry.peer_urls.contains(&self.peer_url)
    }
}

impl Evidence {
    pub(super) fn guest(&self) -> Option<&Guest> {
        self.cib.known()?.guest.as_ref()
    }

    /// Whether an entry of the list is the guest's. A property that names one of the nodes makes no guest of it.
    pub(super) fn is_guest(&self, entry: &Member) -> bool {
        let is_a_nodes = entry.is_at(&self.me) || self.peer.as_ref().is_some_and(|peer| entry.is_at(peer));
        !is_a_nodes && self.guest().is_some_and(|guest| guest.is(entry))
    }

    /// Whether these members are left to their own majority: three or more vote, or the guest does.
    pub(super) fn is_left_to_raft(&self, members: &[Member]) -> bool {
        let voters = || members.iter().filter(|member| !member.is_learner);
        voters().count() > 2 || voters().any(|voter| self.is_guest(voter))
    }

    /// What the data of either node is worth here.
    pub(super) fn standing(&self, disk: &DataDir) -> Standing {
        beside(self.guest(), classify(disk))
    }

    /// Whether data is that of a voter whom a majority decides for.
    pub fn is_among_many(&self, disk: &DataDir) -> bool {
        self.standing(disk) == Standing::VoterAmongMany
    }

    /// The guest, where it has etcd's one place for a learner and the peer's node is not listed: it gives way to a peer that
    /// returns, as two copies on the pair's own disks come first.
    pub(super) fn guest_in_the_learners_place<'a>(&self, etcd: &'a Etcd) -> Option<&'a Member> {
        etcd.members.iter().find(|entry| entry.is_learner && self.is_guest(entry))
    }
}

/// A voter beside the guest is one among many: nobody forces a cluster without it.
pub(super) fn beside(guest: Option<&Guest>, standing: Standing) -> Standing {
    match standing {
        Standing::VoterBeside(other) if guest.is_some_and(|guest| guest.id == Some(other)) => Standing::VoterAmongMany,
        standing => standing,
    }
}
