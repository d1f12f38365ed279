//! What is where in a data dir, before any byte of it is read.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{ErrorKind, Read, Seek};
use std::path::{Path, PathBuf};

use prost::bytes::Bytes;

use super::database::{self, Applied, Members};
use super::error::Error;
use super::snapshot::SnapSource;
use super::wal::Segment;
use crate::os::regular_file;

/// How many files of each kind are opened as soon as they are listed, the newest of them. etcd keeps five of each; whoever
/// told it to keep all must not run out of descriptors.
const HELD: usize = 100;

/// etcd's own directory inside the data dir.
pub(super) const MEMBER: &str = "member";

/// The files of a data dir that has a WAL, or what stands in its place.
#[derive(Debug)]
pub(super) enum Layout {
    /// etcd would begin from nothing.
    Blank,
    /// etcd would not begin from nothing, and cannot go on either.
    Broken(String),
    /// To be read.
    Files(Files),
}

/// The files that count.
#[derive(Debug)]
pub(super) struct Files {
    /// In the order of their sequence.
    pub(super) wals: Vec<Segment>,
    /// Directory of the snapshots.
    pub(super) snaps: SnapDir,
    /// What is out of order there, but does not keep etcd from starting.
    pub(super) damage: Vec<String>,
}

/// The `.snap` files of a directory.
#[derive(Debug)]
pub(super) struct SnapDir {
    dir: PathBuf,
    /// With the file, opened when it was listed: a running etcd that purges it meanwhile takes only its name away.
    snaps: Vec<(PathBuf, Option<File>)>,
}

impl SnapDir {
    /// Why etcd cannot start on top of the snapshot at `index`, if it cannot: a snapshot only names the members, the
    /// data is in the database, or in one that the leader sent and that was not put in its place yet.
    pub(super) fn lack(&self, applied: Applied, index: u64) -> Result<Option<String>, Error> {
        let received = self.dir.join(format!("{index:016x}.snap.db"));
        if received.try_exists().map_err(Error::io("looking for", &received))? {
            return Ok(None);
        }
        Ok(applied.lack(index))
    }

    /// What the database holds.
    pub(super) fn applied(&self) -> Result<Applied, Error> {
        database::applied(&self.dir.join("db"))
    }
}

impl SnapSource for SnapDir {
    fn names(&self) -> Result<Vec<PathBuf>, Error> {
        Ok(self.snaps.iter().map(|(path, _)| path.clone()).collect())
    }

    fn load(&self, path: &Path) -> Result<Bytes, Error> {
        let held = self.snaps.iter().find(|(known, _)| known == path).and_then(|(_, file)| file.as_ref());
        let read = held.map_or_else(|| regular_file::read(path), whole);
        read.map(Bytes::from).map_err(Error::io("reading", path))
    }

    fn members(&self) -> Result<Option<Members>, Error> {
        database::members(&self.dir.join("db"))
    }
}

/// All of a file that may have been read before.
fn whole(mut file: &File) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Looks at the names in `dir`, and opens what etcd may purge.
pub(super) fn look(dir: &Path) -> Result<Layout, Error> {
    let member = dir.join(MEMBER);
    if list(dir)?.is_none() {
        return Ok(Layout::Blank);
    }
    let Some(names) = list(&member)? else { return Ok(Layout::Blank) };
    let wal_names = list(&member.join("wal"))?.unwrap_or_default();
    let snap_names = list(&member.join("snap"))?.unwrap_or_default();
    let mut wals = in_order(wal_names.iter().filter_map(|path| Segment::from_path(path)).collect());
    let snaps: Vec<PathBuf> = snap_names.iter().filter(|path| has_extension(path, "snap")).cloned().collect();
    if wals.is_empty() {
        return without_wal(&member, &wal_names, &snap_names);
    }
    for segment in wals.iter_mut().rev().take(HELD) {
        segment.hold();
    }
    let damage = leftovers(&names);
    Ok(Layout::Files(Files { wals, snaps: SnapDir { dir: member.join("snap"), snaps: hold(snaps) }, damage }))
}

/// `snaps`, the newest of them opened; what cannot be opened fails when it is read.
fn hold(mut snaps: Vec<PathBuf>) -> Vec<(PathBuf, Option<File>)> {
    // The names begin with term and index in hex of fixed width.
    snaps.sort_unstable_by(|one, other| other.cmp(one));
    let open = |(number, path): (usize, PathBuf)| {
        let file = (number < HELD).then(|| regular_file::open(&path).ok()).flatten();
        (path, file)
    };
    snaps.into_iter().enumerate().map(open).collect()
}

/// A data dir without WAL files: never used, or the half of one? A first start that failed leaves a database, as etcd
/// makes that before it knows whether it can join, and the WAL last.
fn without_wal(member: &Path, wal_names: &[PathBuf], snap_names: &[PathBuf]) -> Result<Layout, Error> {
    let broken = |what: &str| Layout::Broken(format!("{} {what}: a part of it is missing", member.display()));
    let database = snap_names.iter().find(|path| is_database(path));
    let applied = database.map_or(Ok(Applied::Nothing), |path| database::applied(path))?;
    Ok(match applied {
        _ if !wal_names.is_empty() => broken("has no readable WAL file"),
        _ if snap_names.iter().any(|path| !is_database(path)) => broken("has snapshots, but no WAL"),
        Applied::UpTo(_) => broken("has a database, but no WAL"),
        Applied::Unreadable => broken("has a database that cannot be read, and no WAL"),
        Applied::Nothing => Layout::Blank,
    })
}

/// WAL files as they follow each other.
pub(super) fn in_order(mut wals: Vec<Segment>) -> Vec<Segment> {
    wals.sort_unstable_by_key(|segment| (segment.sequence, segment.first_index));
    wals
}

fn is_database(path: &Path) -> bool {
    path.file_name() == Some(OsStr::new("db"))
}

/// A trace of an interrupted run. What etcd set aside as `.broken` when it repaired its files is no damage any more.
fn leftovers(names: &[PathBuf]) -> Vec<String> {
    let half = names.iter().filter(|path| path.file_name() == Some(OsStr::new("wal.tmp")));
    half.map(|path| format!("{}: a WAL that was never finished lies beside the real one", path.display())).collect()
}

fn has_extension(path: &Path, extension: &str) -> bool {
    path.extension() == Some(OsStr::new(extension))
}

/// The paths in a directory, sorted; `None` where there is none. A link that leads nowhere is an error: a file system
/// that is not mounted must not look like an empty one.
pub(super) fn list(dir: &Path) -> Result<Option<Vec<PathBuf>>, Error> {
    let entries = match fs::read_dir(dir) {
        Err(error) if error.kind() == ErrorKind::NotFound && fs::symlink_metadata(dir).is_err() => return Ok(None),
        entries => entries.map_err(Error::io("listing", dir))?,
    };
    let mut paths = Vec::new();
    for entry in entries {
        paths.push(entry.map_err(Error::io("listing", dir))?.path());
    }
    paths.sort_unstable();
    Ok(Some(paths))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A reading of hundreds of megabytes lasts; what is purged meanwhile is read all the same.
    #[test]
    fn what_is_purged_after_it_was_listed_is_still_read() {
        let dir = tempfile::tempdir().unwrap();
        let (wal, snap) = (dir.path().join("member/wal"), dir.path().join("member/snap"));
        let (wal_file, snap_file) = (wal.join(format!("{0:016x}-{0:016x}.wal", 0)), snap.join("1-1.snap"));
        fs::create_dir_all(&wal).unwrap();
        fs::create_dir_all(&snap).unwrap();
        fs::write(&wal_file, [0; 8]).unwrap();
        fs::write(&snap_file, b"snapshot").unwrap();
        let Layout::Files(files) = look(dir.path()).unwrap() else { panic!("no files") };
        fs::remove_file(&wal_file).unwrap();
        fs::remove_file(&snap_file).unwrap();
        for _ in 0..2 {
            assert!(super::super::wal::Reader::open(&files.wals).unwrap().unwrap().next().unwrap().is_none());
            assert_eq!(files.snaps.load(&snap_file).unwrap(), &b"snapshot"[..]);
        }
    }
}
