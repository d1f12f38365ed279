//! Advancing the commit index: every entry of the WAL becomes one that a forced new cluster keeps.
//!
//! `--force-new-cluster` drops what the WAL holds above the commit index that it records. In a cluster of two voters
//! that can be a write that was acknowledged: see section 2 of the design.

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use prost::Message;

use super::error::Error;
use super::history::{Reading, Whole};
use super::proto::{HardState, record_type};
use super::wal::{WalOffset, frame};
use super::{History, backup, lock, read_closely};
use crate::os::beneath::Dir;
use crate::os::regular_file;

/// The copies of WAL tails begin with this; they lie in the data dir, beside `member`.
const COPY_PREFIX: &str = "wal-tail-before-advance-";
/// How many of them are kept.
const COPIES: usize = 5;
/// A copy begins at a multiple of this, as some of the bytes before the change help to read it.
const PAGE: u64 = 4096;
/// The bytes behind the last record: etcd makes a file of 64 MiB in advance.
const LONGEST_TAIL: u64 = 128 * 1024 * 1024;

/// What [`advance_commit`] did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Advanced {
    /// The commit index before.
    pub from: u64,
    /// The commit index now: the index of the last entry.
    pub to: u64,
    /// The bytes of the WAL's last file as they were before, named by file, offset and length; `None` when nothing had
    /// to be changed.
    pub kept_copy: Option<PathBuf>,
}

/// Records every entry of the WAL as committed, so that `--force-new-cluster` keeps them all.
///
/// Only right when the other voter is confirmed dead and will come back without its data: that is the caller's duty.
/// Refuses while etcd has the files open, and on data of a member that is no voter.
pub fn advance_commit(dir: &Path) -> Result<Advanced, Error> {
    refuse_if_open(dir)?;
    let end = inspect(dir)?.end;
    let mut file = lock::open_locked(dir, &end.path)?;
    // Once more, now that no etcd can come in between.
    let voter = inspect(dir)?;
    if voter.end.path != end.path {
        return Err(Error::Changing { path: dir.to_owned() });
    }
    let (from, to) = (voter.history.commit_index, voter.history.last_index);
    if from == to && voter.torn.is_none() {
        return Ok(Advanced { from, to, kept_copy: None });
    }
    let (kept_copy, overwrites) = keep_copy(dir, &mut file, &voter.end)?;
    let record = frame(record_type::STATE, voter.end.crc, &advanced(&voter.history, voter.state).encode_to_vec());
    append(&mut file, voter.end.offset, &record, overwrites).map_err(Error::io("appending to", &end.path))?;
    drop(file);
    verify(dir, to)?;
    Ok(Advanced { from, to, kept_copy: Some(kept_copy) })
}

fn refuse_if_open(dir: &Path) -> Result<(), Error> {
    lock::holder(dir)?.map_or(Ok(()), |path| Err(Error::Open { path }))
}

/// The state that the record is to state.
fn advanced(history: &History, state: HardState) -> HardState {
    // A power cut can have kept entries of a term and lost the state that came with them. A vote belongs to its term.
    let vote = if history.last_term > state.term { 0 } else { state.vote };
    HardState { term: state.term.max(history.last_term), vote, commit: history.last_index }
}

/// Reads the data dir, and refuses unless it is a voter's.
fn inspect(dir: &Path) -> Result<Box<Whole>, Error> {
    match read_closely(dir)? {
        Some(Reading::Whole(whole))
            if whole.history.is_voter()
                && whole.pending_snapshot.is_none()
                && !whole.may_remove
                && whole.history.database_ahead.is_none() =>
        {
            Ok(whole)
        }
        other => Err(Error::Refused { path: dir.to_owned(), why: why_not(dir, other) }),
    }
}

/// Why not on this, and what to do about it.
fn why_not(dir: &Path, reading: Option<Reading>) -> String {
    const REJOIN: &str = "start the peer and let this node join it as a learner, with 'pcs resource cleanup etcd'";
    match reading {
        None => format!("holds no data whose commit index could be advanced; look with 'ls {}'", dir.display()),
        Some(Reading::Broken(why)) => {
            let backup = dir.join("member-backup-...");
            let (backup, member) = (backup.display(), dir.join(super::layout::MEMBER));
            let member = member.display();
            format!(
                "holds damaged data ({why}); {REJOIN}, or move it away and put a backup back: 'mv {backup} {member}'"
            )
        }
        Some(Reading::Whole(whole)) => {
            let history = whole.history;
            if let Some(ahead) = history.database_ahead.filter(|_| history.is_voter()) {
                let last = history.last_index;
                return format!(
                    "holds a log that ends at index {last} below a database that reaches index {ahead}: a new cluster that is \
                     forced from it destroys the log; start the peer, whose log may have the rest, or restore the database \
                     with 'etcdutl snapshot restore --skip-hash-check {}'",
                    dir.join(super::layout::MEMBER).join("snap/db").display()
                );
            }
            let what = if history.has_left {
                "has left the cluster, so others may have gone on without it"
            } else if !history.is_voter() {
                "is no voter, so it may lack acknowledged writes"
            } else if whole.may_remove {
                // To advance over that would be to remove it.
                "is one of three voters or more, one of whom is about to be removed, so the others decide"
            } else {
                // With a higher commit index it would count, though what it replaces is still in the log.
                "was taking over a snapshot from the leader when it stopped, so its log may be out of date"
            };
            format!("holds the data of member {:x}, which {what}; {REJOIN}", history.member_id)
        }
    }
}

/// Saves what the change may overwrite: from the page of the last record to the last byte that is not zero. Answers
/// whether it overwrites anything; only then must the copy be on the disk first.
fn keep_copy(dir: &Path, file: &mut File, end: &WalOffset) -> Result<(PathBuf, bool), Error> {
    let start = end.offset - end.offset % PAGE;
    let mut tail = Vec::new();
    file.seek(SeekFrom::Start(start)).map_err(Error::io("seeking in", &end.path))?;
    let length = file.metadata().map_err(Error::io("reading the size of", &end.path))?.len();
    let tail_of = file.try_clone().map_err(Error::io("reading", &end.path))?;
    regular_file::read_into(&mut tail, tail_of, LONGEST_TAIL).map_err(Error::io("reading", &end.path))?;
    tail.truncate(tail.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1));
    let overwrites = start + tail.len() as u64 > end.offset;
    let name = end.path.file_name().unwrap_or_default().to_string_lossy();
    let label = format!("-{name}-offset-{start}-length-{length}");
    let data = Dir::open(dir).map_err(Error::io("listing", dir))?;
    let name = backup::next_name(&data, COPY_PREFIX, &label)?;
    let copy = dir.join(&name);
    write_copy(&data, &name, &tail, overwrites).map_err(Error::io("writing", &copy))?;
    if overwrites {
        backup::sync(&data)?;
    }
    backup::prune(&data, COPY_PREFIX, COPIES, &name);
    Ok((copy, overwrites))
}

fn write_copy(data: &Dir, name: &str, bytes: &[u8], synced: bool) -> io::Result<()> {
    let mut file = data.create_new(name)?;
    file.write_all(bytes)?;
    if synced { file.sync_all() } else { Ok(()) }
}

/// Puts `record` at `offset`, with nothing but zeros behind it.
fn append(file: &mut File, offset: u64, record: &[u8], overwrites: bool) -> io::Result<()> {
    if overwrites {
        // Half of a record that never was acknowledged, as it is torn. It goes first and for sure: what is left of it
        // behind the new record would be damage. The file keeps its length, as etcd allocates it in advance.
        let length = file.metadata()?.len();
        file.set_len(offset)?;
        file.set_len(length)?;
        file.sync_all()?;
    }
    file.seek(SeekFrom::Start(offset))?;
    file.write_all(record)?;
    #[cfg(feature = "lab-faults")]
    if crate::os::lab_faults::is_on(crate::os::lab_faults::SKIP_WAL_SYNC) {
        return Ok(());
    }
    file.sync_all()
}

/// Reads back what was written.
fn verify(dir: &Path, commit: u64) -> Result<(), Error> {
    let found = inspect(dir)?.history.commit_index;
    if found == commit {
        return Ok(());
    }
    let why =
        format!("the commit index reads {found} after {commit} was written: the disk does not keep what it is given");
    Err(Error::Refused { path: dir.to_owned(), why })
}
