//! What this node publishes of its data, for its peer to decide from.

use super::unstartable;
use crate::decide::evidence::{DataDir, DurableState, Etcd, Evidence, History, Lineage, PublishedState};

impl Evidence {
    /// Returns the record about this node's data that the node should publish now; `None` if a fact for it is unknown.
    pub fn published_state(&self) -> Option<PublishedState> {
        let disk = unstartable::usable_disk(self)?;
        Some(PublishedState {
            // A node without data cannot run standalone.
            claims: matches!(disk, DataDir::Present(_)) && self.running_voter().is_some() && !self.may_have_left(),
            joins: disk == DataDir::Blank && self.gave_its_data_up(),
            gave_up: self.gave_up(),
            left: matches!(&disk, DataDir::Present(history) if history.is_voter()) && self.may_have_left(),
            prefers: self.preferred().cloned(),
            ..PublishedState::of(self.boot_id.clone(), disk, self.own_lineage()?)
        })
    }

    /// Returns the record that this node publishes while its own etcd runs as a voter. It is made from the answers of the running
    /// `etcd`, because the agent does not read the disk while etcd runs.
    pub fn living_record(&self, etcd: &Etcd) -> Option<PublishedState> {
        let ids = |learners: bool| {
            etcd.members.iter().filter(|member| member.is_learner == learners).map(|member| member.id).collect()
        };
        let history = History {
            cluster_id: etcd.cluster_id,
            member_id: etcd.member_id,
            last_term: etcd.term,
            last_index: etcd.index,
            commit_index: etcd.index,
            voters: ids(false),
            learners: ids(true),
            has_left: false,
            database_ahead: None,
            damage: Vec::new(),
        };
        Some(PublishedState {
            claims: true,
            gave_up: self.gave_up(),
            // A member that has a leader is listed.
            left: etcd.leader.is_none() && self.may_have_left(),
            prefers: self.preferred().cloned(),
            ..PublishedState::of(self.boot_id.clone(), DataDir::Present(history), self.own_lineage()?)
        })
    }

    /// Returns whether this node left the peer's cluster, or backed up its own data to join the peer's cluster, and has not run
    /// standalone since.
    fn gave_its_data_up(&self) -> bool {
        let gave = |note: &DurableState| (note.joins || note.left_at.is_some()) && note.alone_since.is_none();
        self.note.known().is_some_and(gave)
    }

    fn gave_up(&self) -> bool {
        self.last_note().is_some_and(|note| note.gave_up)
    }
}

/// Returns the record of a node that joins its peer. It does not describe the node's former data, which no longer counts. The
/// peer needs this record if the peer is the next node to start.
pub(in crate::decide) fn joining_record(evidence: &Evidence, lineage: Lineage) -> PublishedState {
    let prefers = evidence.preferred().cloned();
    PublishedState { joins: true, prefers, ..PublishedState::of(evidence.boot_id.clone(), DataDir::Blank, lineage) }
}
