//! etcd's data dir, read offline: the member that it belongs to, its position, and its voters.
//!
//! This module sends no question to a running etcd, and only [`advance_commit`] and [`move_aside`] change files. The formats are
//! those of etcd 3.4 to 3.7, and of later versions that write no `.snap` files. The directory is always etcd's `--data-dir`,
//! which holds `member/wal` and `member/snap`.

mod advance;
mod backup;
mod database;
mod error;
mod history;
mod holders;
mod keys;
mod layout;
mod lock;
mod membership;
mod memory;
mod proto;
mod requests;
mod snapshot;
mod wal;
mod written;

use std::path::Path;
use std::time::Duration;

pub use crate::decide::evidence::{Backup, DataDir, History, Room};
pub use advance::{Advanced, advance_commit};
pub use backup::{
    Aside, AsideKind, aside, bytes, drop_backups, forget_history, history_bytes, mounted_member, move_aside,
    move_history_aside, prune_backups, room,
};
pub use database::{Change, Described};
pub use error::Error;
pub use keys::{Changes, Keys};
#[doc(hidden)]
pub use memory::MemoryDir;
pub use requests::{Logged, Request};
pub use written::{last_written, last_written_aside};

use crate::os::clock;
use crate::records::kept_history::KeptHistory;
use history::Reading;
use layout::Layout;

/// The number of attempts to read a data dir. An attempt fails if a running etcd purges files during it.
const ATTEMPTS: u32 = 5;
/// The pause between two attempts to read a data dir.
const PAUSE: Duration = Duration::from_millis(10);

/// Reads the contents of the data dir `dir`, whether etcd runs or not. An error means that the contents are unknown, and never
/// that the data dir is blank.
pub fn read(dir: &Path) -> Result<DataDir, Error> {
    for attempt in 1..=ATTEMPTS {
        if attempt > 1 {
            clock::sleep(PAUSE);
        }
        let reading = match read_closely(dir) {
            Err(error) if error.is_not_found() && (attempt < ATTEMPTS || is_open(dir)?) => continue,
            // The file is missing permanently, for example behind a link to a disk that is not mounted.
            reading => reading?,
        };
        match reading {
            None => return Ok(DataDir::Blank),
            // A running etcd may be writing a record or a snapshot. An unfinished write is no damage then.
            Some(Reading::Whole(whole)) if whole.is_unfinished() && is_open(dir)? => {
                return Ok(DataDir::Present(whole.history));
            }
            Some(Reading::Whole(whole)) => return Ok(DataDir::Present(whole.into_history())),
            // Files that change during the reading may look damaged.
            Some(Reading::Broken(_)) if attempt < ATTEMPTS && is_open(dir)? => {}
            Some(Reading::Broken(why)) => return Ok(DataDir::Broken { why }),
        }
    }
    Err(Error::Changing { path: dir.to_owned() })
}

/// Reads the contents of the renamed `member` directory at `path`, which no etcd uses.
pub fn read_aside(path: &Path) -> Result<DataDir, Error> {
    let Some(member) = layout::open(path)? else { return Ok(DataDir::Blank) };
    Ok(match read_files(layout::look_into(&member)?, || false)? {
        None => DataDir::Blank,
        Some(Reading::Whole(whole)) => DataDir::Present(whole.into_history()),
        Some(Reading::Broken(why)) => DataDir::Broken { why },
    })
}

/// Returns the part of etcd's database that is shown to operators. `member` is etcd's own directory, or a renamed one.
pub fn described(member: &Path) -> Described {
    let snap =
        layout::open(member).ok().flatten().and_then(|member| layout::below(&member, layout::SNAP).ok().flatten());
    snap.map(|snap| database::described(&snap)).unwrap_or_default()
}

/// Returns the revision of the last change in the data dir's database; `None` if it is unknown. No etcd may have the data open.
pub fn revision(dir: &Path) -> Option<u64> {
    let snap = layout::below(&layout::member(dir).ok()??, layout::SNAP).ok()??;
    database::described(&snap).revision
}

/// Returns whether the WAL in `dir` contains no change of the voters that it does not record as committed. An uncommitted removal of a
/// voter may be in this WAL alone. If the peer's log lacks the removal, the peer may vote and continue without this WAL's changes. No etcd
/// may have the data open.
pub fn voters_are_committed(dir: &Path) -> Result<bool, Error> {
    let reading = read_closely(dir)?;
    Ok(matches!(reading, Some(Reading::Whole(whole)) if whole.voters_are_committed && whole.pending_snapshot.is_none()))
}

/// Returns the record of the point where the given-up data at `path` diverged from the other node's data, which the cluster uses. Returns
/// `None` if there is no such record.
pub fn kept_history(path: &Path) -> Option<KeptHistory> {
    let dir = layout::open(path.parent()?).ok()??;
    let history = layout::below(&dir, path.file_name()?).ok()??;
    KeptHistory::read(&history).known().cloned()
}

/// Reads `dir` once, with the details that a change of the WAL needs; `None` if it is blank. [`read`] tries again if a running
/// etcd changes files meanwhile.
fn read_closely(dir: &Path) -> Result<Option<Reading>, Error> {
    // If the check fails, etcd counts as running.
    read_files(layout::look(dir)?, || is_open(dir).unwrap_or(true))
}

fn read_files(found: Layout, may_run: impl Fn() -> bool) -> Result<Option<Reading>, Error> {
    let files = match found {
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
        // A running etcd has written more since its log was read.
        if let Some(ahead) = applied.ahead_of(whole.history.last_index)
            && !may_run()
        {
            set_ahead(&mut whole.history, ahead);
        }
    }
    Ok(Some(reading))
}

/// Ends the processes that have the data dir's files open and that `is_ours` accepts: by SIGTERM, and by SIGKILL after `grace`.
/// Returns their number.
pub fn end_holders(dir: &Path, grace: Duration, is_ours: &dyn Fn(i32) -> bool) -> Result<usize, Error> {
    holders::end(dir, grace, is_ours)
}

/// Returns whether a process has the data dir's files locked. Only etcd does that.
pub fn is_open(dir: &Path) -> Result<bool, Error> {
    Ok(lock::holder(dir)?.is_some())
}

/// Adds to `history` that the database has applied the log up to `index`, although the log ends earlier.
fn set_ahead(history: &mut History, index: u64) {
    let last = history.last_index;
    let what = format!("the database holds entries up to index {index}, the log ends at {last}: its end is lost");
    history.damage.push(what);
    history.database_ahead = Some(index);
}
