//! What a data dir holds, and the disk that it is on.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

/// Content of a data dir.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum DataDir {
    /// Empty data dir, in which etcd would begin as a new member.
    Blank,
    /// Data from which etcd would start.
    Present(History),
    /// Data from which etcd does not start, because it is damaged or incomplete.
    Broken {
        /// Description of the damage, for operators.
        why: String,
    },
}

/// End of a member's log in the data dir, and the members that the log names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct History {
    /// Id of the cluster. Forcing a new cluster keeps the id, so equal ids do not prove equal histories.
    pub cluster_id: u64,
    /// Id of the member that owns the data.
    pub member_id: u64,
    /// Term of the log's last entry. Of two logs, the one with the higher last term is newer. If the last terms are equal, the
    /// log with the higher last index is newer.
    pub last_term: u64,
    /// The index of the last entry of the log.
    pub last_index: u64,
    /// Log index up to which this member's log records entries as committed.
    pub commit_index: u64,
    /// Voting members in the newest configuration of the log, committed or not. With three or more voters, a removed member still
    /// counts until its removal is known to be committed.
    pub voters: BTreeSet<u64>,
    /// Learners in the newest configuration of the log, committed or not.
    pub learners: BTreeSet<u64>,
    /// True if the log contains this member's removal. With three or more voters, the removal also has to be committed. A removal
    /// is final, because etcd never accepts a removed id again.
    pub has_left: bool,
    /// Log index up to which the database was written, if the log ends below that index. In that case the disk has lost the end
    /// of the log.
    ///
    /// - A plain start continues from this index.
    /// - A forced start (of etcd 3.5.22, 3.6.1 and later) counts everything up to this index as committed. It leaves a log that
    ///   no etcd can read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub database_ahead: Option<u64>,
    /// Damage that etcd repairs or skips when it starts, such as a torn tail of the log. The list is shown to operators, and is
    /// normally empty.
    pub damage: Vec<String>,
}

impl History {
    /// Returns whether the newest configuration in this member's log lets this member vote.
    pub fn is_voter(&self) -> bool {
        !self.has_left && self.voters.contains(&self.member_id)
    }
}

/// Space and backups on the file system that holds the data dir.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Room {
    pub free_bytes: u64,
    /// Backed-up data dirs, oldest first.
    pub backups: Vec<Backup>,
}

/// Data dir that the agent backed up.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Backup {
    /// Name of the backup's directory, which is next to the data dir's `member`.
    pub name: String,
    pub bytes: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Asserts that a departed member is no voter even if its log names it as one. Such a contradiction exists for example in an
    /// edited record.
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
