//! Advances the commit index of the WAL, so that a forced new cluster keeps every entry.
//!
//! `--force-new-cluster` drops the WAL's entries above the recorded commit index. In a cluster of two voters one of them can be
//! an acknowledged write: see section 2 of the design.

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

/// The prefix of the names of copies of the WAL's end. The copies lie in the data dir, next to `member`.
const COPY_PREFIX: &str = "wal-tail-before-advance-";
/// The number of copies of the WAL's end that are kept in a data dir.
const COPIES: usize = 5;
/// The alignment in bytes of the start of a copy of the WAL's end. A copy therefore begins before the changed bytes, which makes it easier
/// to interpret.
const PAGE: u64 = 4096;
/// The greatest number of bytes that are copied from the WAL's end. etcd preallocates WAL files of 64 MiB.
const LONGEST_TAIL: u64 = 128 * 1024 * 1024;

/// The result of [`advance_commit`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Advanced {
    /// The WAL's commit index before [`advance_commit`] changed it.
    pub from: u64,
    /// The WAL's commit index now, which is the index of the log's last entry.
    pub to: u64,
    /// Path of the copy of the end of the WAL's last file, made before the change; `None` if no change was necessary. The name
    /// has the file, an offset and the file's length.
    pub kept_copy: Option<PathBuf>,
}

/// Records every entry of the WAL as committed, so that `--force-new-cluster` keeps them all.
///
/// The caller must have confirmed that the other voter is dead and will return without its data. Refuses while etcd has the files
/// open, and on the data of a member that is not a voter.
pub fn advance_commit(dir: &Path) -> Result<Advanced, Error> {
    refuse_if_open(dir)?;
    let end = inspect(dir)?.end;
    let mut file = lock::open_locked(dir, &end.path)?;
    // The data is read again, because from here on no etcd can start in between.
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

/// Returns the Raft state (term, vote, commit index) for the record that [`advance_commit`] appends.
fn advanced(history: &History, state: HardState) -> HardState {
    // A power cut may have kept entries of a term and lost the state that came with them. A vote belongs to its term.
    let vote = if history.last_term > state.term { 0 } else { state.vote };
    HardState { term: state.term.max(history.last_term), vote, commit: history.last_index }
}

/// Reads the data dir. Returns an error if its data is not a voter's, or if advancing its commit index is unsafe.
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

/// Returns the reason why the commit index of `reading` must not be advanced, and what the operator can do instead.
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
                // The advance would commit the removal.
                "is one of three voters or more, one of whom is about to be removed, so the others decide"
            } else {
                // A higher commit index would make the recorded snapshot valid, although the log still has the entries that it
                // should replace.
                "was taking over a snapshot from the leader when it stopped, so its log may be out of date"
            };
            format!("holds the data of member {:x}, which {what}; {REJOIN}", history.member_id)
        }
    }
}

/// Saves the bytes that the new record may overwrite: from the start of the last record's page to the last byte that is not zero. Returns
/// the copy's path, and whether the new record overwrites any of these bytes. The copy is synced only if it does.
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

/// Writes `record` at `offset`. If `overwrites` is true, first replaces everything after `offset` by zeros.
fn append(file: &mut File, offset: u64, record: &[u8], overwrites: bool) -> io::Result<()> {
    if overwrites {
        // The bytes there are of a torn record, which was never acknowledged. They are cleared and synced first, because a rest
        // of them after the new record would be damage. The file keeps its length, because etcd preallocates it.
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

/// Checks that the WAL on disk has the commit index `commit`; else returns an error.
fn verify(dir: &Path, commit: u64) -> Result<(), Error> {
    let found = inspect(dir)?.history.commit_index;
    if found == commit {
        return Ok(());
    }
    let why =
        format!("the commit index reads {found} after {commit} was written: the disk does not keep what it is given");
    Err(Error::Refused { path: dir.to_owned(), why })
}
