//! etcd's data dir, read offline: whose data it is, how far it reaches, and who its voters are.
//!
//! Nothing here asks a running etcd, and only [`advance_commit`] and [`move_aside`] change anything. The formats are
//! those of etcd 3.4 to 3.7, and of later ones that write no `.snap` files. The directory that is meant is always etcd's `--data-dir`, which holds `member/wal` and
//! `member/snap`.

mod advance;
mod aside;
mod database;
mod error;
mod history;
mod holders;
mod layout;
mod lock;
mod membership;
mod memory;
mod proto;
mod snapshot;
mod wal;
mod written;

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use advance::{Advanced, advance_commit};
pub use aside::{Backup, Room, drop_backups, move_aside, move_history_aside, prune_backups, room};
pub use error::Error;
#[doc(hidden)]
pub use memory::MemoryDir;
pub use written::{LastWritten, last_written};

use crate::clock;
use history::Reading;
use layout::Layout;

/// How often the files are read again when a running etcd changes them meanwhile: it purges old ones.
const ATTEMPTS: u32 = 5;
/// How long a busy etcd is given in between.
const PAUSE: Duration = Duration::from_millis(10);

/// What a data dir holds.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum DataDir {
    /// Nothing: etcd would begin as a new member.
    Blank,
    /// A history that etcd would start from.
    Present(History),
    /// Something that etcd does not start from: half a data dir, or a damaged one.
    Broken {
        /// What is wrong, for people.
        why: String,
    },
}

/// How far a member's data reaches and whom it names as members.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct History {
    /// The cluster's id. Forcing a new cluster keeps it: equal ids do not prove equal histories.
    pub cluster_id: u64,
    /// The member whose data this is.
    pub member_id: u64,
    /// The term of the last entry of the log. Of two logs, the one with the higher last term is newer; with equal
    /// terms, the one with the higher last index.
    pub last_term: u64,
    /// The index of the last entry of the log.
    pub last_index: u64,
    /// Up to where this member knew the log to be committed when it last wrote that down.
    pub commit_index: u64,
    /// The voting members in the newest configuration in the log, committed or not.
    pub voters: BTreeSet<u64>,
    /// The learners in that configuration.
    pub learners: BTreeSet<u64>,
    /// Whether the log holds this member's removal, committed or not. It cannot be undone: etcd never takes a removed
    /// id again.
    pub has_left: bool,
    /// The log index up to which the database was written, where the log ends before it: the disk has lost the log's end.
    /// A plain start goes on from that; a forced one (of etcd 3.5.22 and 3.6.1 and later) counts up to here as committed,
    /// and leaves a log that no etcd reads any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub database_ahead: Option<u64>,
    /// What etcd repairs or skips when it starts, such as a torn tail; for people, and normally empty.
    pub damage: Vec<String>,
}

impl History {
    /// Whether this member may vote by the newest configuration that it holds.
    pub fn is_voter(&self) -> bool {
        !self.has_left && self.voters.contains(&self.member_id)
    }

    fn set_ahead(&mut self, index: u64) {
        let last = self.last_index;
        let what = format!("the database holds entries up to index {index}, the log ends at {last}: its end is lost");
        self.damage.push(what);
        self.database_ahead = Some(index);
    }
}

/// Reads what `dir` holds, whether etcd runs or not. An error means that it is not known, never that it is blank.
pub fn read(dir: &Path) -> Result<DataDir, Error> {
    for attempt in 1..=ATTEMPTS {
        if attempt > 1 {
            clock::sleep(PAUSE);
        }
        let reading = match read_closely(dir) {
            Err(error) if error.is_not_found() && (attempt < ATTEMPTS || is_open(dir)?) => continue,
            // Nobody takes it away meanwhile: a link that leads nowhere, say to a disk that is not mounted.
            reading => reading?,
        };
        match reading {
            None => return Ok(DataDir::Blank),
            // A running etcd is in the middle of writing a record; on its own that is no damage.
            Some(Reading::Whole(whole)) if whole.torn.is_some() && is_open(dir)? => {
                return Ok(DataDir::Present(whole.history));
            }
            Some(Reading::Whole(whole)) => return Ok(DataDir::Present(whole.into_history())),
            // Files that change while they are read may look damaged.
            Some(Reading::Broken(_)) if attempt < ATTEMPTS && is_open(dir)? => {}
            Some(Reading::Broken(why)) => return Ok(DataDir::Broken { why }),
        }
    }
    Err(Error::Changing { path: dir.to_owned() })
}

/// As [`read`], once, with what a change of the WAL needs; `None` stands for blank.
fn read_closely(dir: &Path) -> Result<Option<Reading>, Error> {
    let files = match layout::look(dir)? {
        Layout::Blank => return Ok(None),
        Layout::Broken(why) => return Ok(Some(Reading::Broken(why))),
        Layout::Files(files) => files,
    };
    let mut reading = history::read(&files.wals, &files.snaps)?;
    if let Reading::Whole(whole) = &mut reading {
        whole.history.damage.extend(files.damage);
        let applied = files.snaps.applied()?;
        if let Some(why) = files.snaps.lack(applied, whole.snapshot_index)? {
            return Ok(Some(Reading::Broken(why)));
        }
        // A running etcd has written on since its log was read; one that cannot be told from a stopped one may run.
        if let Some(ahead) = applied.ahead_of(whole.history.last_index)
            && !is_open(dir).unwrap_or(true)
        {
            whole.history.set_ahead(ahead);
        }
    }
    Ok(Some(reading))
}

/// Ends whatever has the data dir's files open: SIGTERM, and SIGKILL after `grace`. Answers how many processes that were.
pub fn end_holders(dir: &Path, grace: Duration) -> Result<usize, Error> {
    holders::end(dir, grace)
}

/// Whether a process, which can only be etcd, has the data dir's files locked.
pub fn is_open(dir: &Path) -> Result<bool, Error> {
    Ok(lock::holder(dir)?.is_some())
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
