//! What a data dir holds, and the disk that it is on.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

/// Content of a data dir.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum DataDir {
    /// Nothing: etcd would begin as a new member.
    Blank,
    /// A history that etcd would start from.
    Present(History),
    /// Something that etcd does not start from: half a data dir, or a damaged one.
    Broken {
        /// The damage, for operators.
        why: String,
    },
}

/// End of a member's data, and the members that it names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct History {
    /// The cluster's id. Forcing a new cluster keeps it: equal ids do not prove equal histories.
    pub cluster_id: u64,
    /// The member that the data belongs to.
    pub member_id: u64,
    /// The term of the last entry of the log. Of two logs, the one with the higher last term is newer; with equal
    /// terms, the one with the higher last index.
    pub last_term: u64,
    /// The index of the last entry of the log.
    pub last_index: u64,
    /// Up to where this member knew the log to be committed when it last wrote that down.
    pub commit_index: u64,
    /// The voting members in the newest configuration in the log, committed or not. A member removed from among three or
    /// more voters counts until that removal is known to be committed.
    pub voters: BTreeSet<u64>,
    /// The learners in that configuration.
    pub learners: BTreeSet<u64>,
    /// True if the log holds this member's removal, committed or not; from among three or more voters a committed one. It
    /// cannot be undone: etcd never takes a removed id again.
    pub has_left: bool,
    /// The log index up to which the database was written, where the log ends before it: the disk has lost the log's end. A
    /// plain start continues from that. A forced one (of etcd 3.5.22 and 3.6.1 and later) counts up to here as committed,
    /// and leaves a log that no etcd reads any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub database_ahead: Option<u64>,
    /// Damage that etcd repairs or skips when it starts, such as a torn tail; for operators, and normally empty.
    pub damage: Vec<String>,
}

impl History {
    /// Returns whether this member may vote by the newest configuration that it holds.
    pub fn is_voter(&self) -> bool {
        !self.has_left && self.voters.contains(&self.member_id)
    }
}

/// The file system that holds the data dir and its backups.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Room {
    pub free_bytes: u64,
    /// Data that was backed up, oldest first.
    pub backups: Vec<Backup>,
}

/// Data that was backed up.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Backup {
    /// Its directory's name, next to `member`.
    pub name: String,
    pub bytes: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A log that contradicts itself, e.g. in a record that someone edited, must not make a voter of a departed member.
    #[test]
    fn who_has_left_is_no_voter() {
        let voter = History {
            cluster_id: 1,
            member_id: 2,
            last_term: 3,
            last_index: 4,
            commit_index: 4,
            voters: [2].into(),
            learners: BTreeSet::new(),
            has_left: false,
            database_ahead: None,
            damage: Vec::new(),
        };
        assert!(voter.is_voter());
        assert!(!History { has_left: true, ..voter.clone() }.is_voter());
        assert!(!History { voters: [5].into(), ..voter }.is_voter());
    }
}
