//! What is where in a data dir, before any byte of it is read.

use std::ffi::OsStr;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use prost::bytes::Bytes;

use super::error::Error;
use super::snapshot::SnapSource;
use super::wal::Segment;

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
pub(super) struct SnapDir(Vec<PathBuf>);

impl SnapSource for SnapDir {
    fn names(&self) -> Result<Vec<PathBuf>, Error> {
        Ok(self.0.clone())
    }

    fn load(&self, path: &Path) -> Result<Bytes, Error> {
        fs::read(path).map(Bytes::from).map_err(Error::io("reading", path))
    }
}

/// Looks at the names in `dir`.
pub(super) fn look(dir: &Path) -> Result<Layout, Error> {
    let member = dir.join(MEMBER);
    if list(dir)?.is_none() {
        return Ok(Layout::Blank);
    }
    let Some(names) = list(&member)? else { return Ok(Layout::Blank) };
    let wal_names = list(&member.join("wal"))?.unwrap_or_default();
    let snap_names = list(&member.join("snap"))?.unwrap_or_default();
    let mut wals: Vec<Segment> = wal_names.iter().filter_map(|path| Segment::from_path(path)).collect();
    wals.sort_unstable_by_key(|segment| (segment.sequence, segment.first_index));
    let snaps: Vec<PathBuf> = snap_names.iter().filter(|path| has_extension(path, "snap")).cloned().collect();
    if wals.is_empty() {
        return Ok(without_wal(&member, &names, &wal_names, &snap_names));
    }
    let has_database = snap_names.iter().any(|path| path.file_name() == Some(OsStr::new("db")) || is_received(path));
    if !has_database && !snaps.is_empty() {
        let why = format!("{} has snapshots of the log, but the database is missing", member.join("snap").display());
        return Ok(Layout::Broken(why));
    }
    let damage = leftovers(&names);
    Ok(Layout::Files(Files { wals, snaps: SnapDir(snaps), damage }))
}

/// A data dir without WAL files: never used, or the half of one?
fn without_wal(member: &Path, names: &[PathBuf], wal_names: &[PathBuf], snap_names: &[PathBuf]) -> Layout {
    // etcd makes the WAL under this name first: it has never come so far as to write an entry.
    let is_first_start = names.iter().any(|path| path.file_name() == Some(OsStr::new("wal.tmp")));
    let only_database = snap_names.iter().all(|path| path.file_name() == Some(OsStr::new("db")));
    if wal_names.is_empty() && (snap_names.is_empty() || (is_first_start && only_database)) {
        return Layout::Blank;
    }
    let what =
        if wal_names.is_empty() { "has a database or snapshots, but no WAL" } else { "has no readable WAL file" };
    Layout::Broken(format!("{} {what}: a part of it is missing", member.display()))
}

/// A database that the leader sent, not yet put in its place.
fn is_received(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().ends_with(".snap.db"))
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
