//! The files of a data dir, found before any of them is read.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, ErrorKind, Seek};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use prost::bytes::Bytes;

use super::database::{self, Applied, DATABASE, Members};
use super::error::Error;
use super::snapshot::SnapSource;
use super::wal::Segment;
use crate::os::beneath::Dir;
use crate::os::regular_file;

/// The greatest number of WAL files, and of snapshots, that are opened when they are listed, newest first. etcd keeps five of each by
/// default. Without the limit, this program could run out of descriptors if etcd is configured to keep all.
const HELD: usize = 100;

/// The largest `.snap` file in bytes. A snapshot only lists the members, so a larger file is damaged.
const SNAP_LIMIT: u64 = 64 * 1024 * 1024;

/// The name of etcd's own directory inside the data dir.
pub(super) const MEMBER: &str = "member";
pub(super) const WAL: &str = "wal";
pub(super) const SNAP: &str = "snap";

/// The files that were found in a data dir, before any is read.
#[derive(Debug)]
pub(super) enum Layout {
    /// The data dir has no member's data. etcd would create the data at its start.
    Blank,
    /// There is data without a WAL. etcd would neither create a new data dir nor start. The text is the reason.
    Broken(String),
    /// The data dir has a WAL, so its files must be read.
    Files(Files),
}

/// The WAL files and snapshots of a data dir, which etcd would read at its start.
#[derive(Debug)]
pub(super) struct Files {
    /// The WAL files, sorted by their sequence numbers.
    pub(super) wals: Vec<Segment>,
    /// The directory `member/snap`.
    pub(super) snaps: SnapDir,
    /// Irregularities of the files that do not keep etcd from starting.
    pub(super) damage: Vec<String>,
}

/// The directory `member/snap`, with its `.snap` files and the database.
#[derive(Debug)]
pub(super) struct SnapDir {
    /// The opened directory `member/snap`. `None` if it is missing, which means that there is neither a snapshot nor a database.
    dir: Option<Arc<Dir>>,
    /// The path of each `.snap` file, and the file itself if it was opened when it was listed. An open file can be read even
    /// after etcd has purged it.
    snaps: Vec<(PathBuf, Option<File>)>,
}

impl SnapDir {
    /// Returns the reason why etcd cannot start from the snapshot at `index`; `None` if it can. A `.snap` file only lists the members. The
    /// keys are in the database `db`, or in a database that the leader sent and that etcd has not yet renamed to `db`.
    pub(super) fn lack(&self, applied: Applied, index: u64) -> Result<Option<String>, Error> {
        let received = received(index);
        let found = self
            .dir
            .as_ref()
            .map(|dir| dir.stat(&received).map_err(Error::io("looking for", dir.path().join(&received))));
        match found {
            Some(Ok(_)) => Ok(None),
            Some(Err(error)) if !error.is_not_found() => Err(error),
            _ => Ok(applied.lack(index)),
        }
    }

    /// Opens the database that etcd would use after the snapshot at `index`; `None` if there is none. If `db` lacks entries up to that
    /// snapshot, opens the database that the leader sent.
    pub(super) fn database(&self, index: u64) -> Result<Option<(PathBuf, File)>, Error> {
        let Some(dir) = &self.dir else { return Ok(None) };
        let received = self.applied()?.lack(index).map(|_| received(index));
        let name = received.unwrap_or_else(|| DATABASE.to_owned());
        let path = dir.path().join(&name);
        match dir.file(&name) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            file => file.map(|file| Some((path.clone(), file))).map_err(Error::io("opening", path)),
        }
    }

    /// Returns the log index that the database `db` has applied.
    pub(super) fn applied(&self) -> Result<Applied, Error> {
        self.dir.as_ref().map_or(Ok(Applied::Nothing), |dir| database::applied(dir))
    }
}

/// Returns the name of the database that the leader sends with the snapshot at `index`.
fn received(index: u64) -> String {
    format!("{index:016x}.snap.db")
}

impl SnapSource for SnapDir {
    fn names(&self) -> Result<Vec<PathBuf>, Error> {
        Ok(self.snaps.iter().map(|(path, _)| path.clone()).collect())
    }

    fn load(&self, path: &Path) -> Result<Option<Bytes>, Error> {
        let held = self.snaps.iter().find(|(known, _)| known == path).and_then(|(_, file)| file.as_ref());
        let file = match (held, &self.dir, path.file_name()) {
            (Some(file), _, _) => file.try_clone(),
            (None, Some(dir), Some(name)) => dir.file(name),
            _ => Err(ErrorKind::NotFound.into()),
        };
        match file.and_then(whole) {
            Err(error) if error.kind() == ErrorKind::FileTooLarge => Ok(None),
            read => read.map(|bytes| Some(Bytes::from(bytes))).map_err(Error::io("reading", path)),
        }
    }

    fn members(&self) -> Result<Option<Members>, Error> {
        self.dir.as_ref().map_or(Ok(None), |dir| database::members(dir))
    }
}

/// Reads a whole file from its beginning, even if it was read before.
fn whole(mut file: File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.rewind()?;
    regular_file::read_into(&mut bytes, file, SNAP_LIMIT)?;
    Ok(bytes)
}

/// Lists the files in the data dir `dir`, and opens those that etcd may purge.
pub(super) fn look(dir: &Path) -> Result<Layout, Error> {
    member(dir)?.map_or(Ok(Layout::Blank), |member| look_into(&member))
}

/// Lists the files in `member`, which is etcd's own directory or a renamed one. Opens those that etcd may purge.
pub(super) fn look_into(member: &Dir) -> Result<Layout, Error> {
    let (wal, snap) = (below(member, WAL)?.map(Arc::new), below(member, SNAP)?.map(Arc::new));
    let wal_names = wal.as_deref().map_or(Ok(Vec::new()), names)?;
    let snap_names = snap.as_deref().map_or(Ok(Vec::new()), names)?;
    let segment = |name: &OsString| {
        let wal = wal.as_ref()?;
        Some(Segment { from: Some(wal.clone()), ..Segment::from_path(&wal.path().join(name))? })
    };
    let mut wals = in_order(wal_names.iter().filter_map(segment).collect());
    if wals.is_empty() {
        return without_wal(member, &wal_names, snap.as_deref(), &snap_names);
    }
    for segment in wals.iter_mut().rev().take(HELD) {
        segment.hold();
    }
    let snaps = hold(snap.as_deref(), snap_names);
    Ok(Layout::Files(Files { wals, snaps: SnapDir { dir: snap, snaps }, damage: leftovers(member)? }))
}

/// Opens the data dir; `None` where there is none. A dangling link is an error, because a file system that is not mounted must
/// not look like an empty data dir.
pub(super) fn open(dir: &Path) -> Result<Option<Dir>, Error> {
    match Dir::open(dir) {
        Err(error) if error.kind() == ErrorKind::NotFound && fs::symlink_metadata(dir).is_err() => Ok(None),
        opened => opened.map(Some).map_err(Error::io("listing", dir)),
    }
}

/// Opens etcd's own directory `member` in the data dir; `None` where there is none.
pub(super) fn member(dir: &Path) -> Result<Option<Dir>, Error> {
    open(dir)?.map_or(Ok(None), |dir| below(&dir, MEMBER))
}

/// Opens the directory `name` in `dir`; `None` where there is none.
pub(super) fn below(dir: &Dir, name: impl AsRef<Path>) -> Result<Option<Dir>, Error> {
    let name = name.as_ref();
    match dir.below(name) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        opened => opened.map(Some).map_err(Error::io("listing", dir.path().join(name))),
    }
}

/// Returns the names of the entries of `dir`, sorted.
pub(super) fn names(dir: &Dir) -> Result<Vec<OsString>, Error> {
    dir.names().map_err(Error::io("listing", dir.path()))
}

/// Returns the paths of the `.snap` files among `names`, newest first, and opens the newest files. A file that cannot be opened causes an
/// error later, when it is read.
fn hold(dir: Option<&Dir>, mut names: Vec<OsString>) -> Vec<(PathBuf, Option<File>)> {
    let Some(dir) = dir else { return Vec::new() };
    names.retain(|name| has_extension(name, "snap"));
    // The names begin with term and index in hexadecimal of fixed width.
    names.sort_unstable_by(|one, other| other.cmp(one));
    let open = |(number, name): (usize, OsString)| {
        let file = (number < HELD).then(|| dir.file(&name).ok()).flatten();
        (dir.path().join(name), file)
    };
    names.into_iter().enumerate().map(open).collect()
}

/// Returns the state of a data dir without WAL files: blank if it was never used, else broken. A failed first start of etcd leaves a
/// database without entries, and such a data dir counts as blank. etcd creates the database before it knows whether it can join, and the
/// WAL last.
fn without_wal(
    member: &Dir,
    wal_names: &[OsString],
    snap: Option<&Dir>,
    snap_names: &[OsString],
) -> Result<Layout, Error> {
    let broken = |what: &str| Layout::Broken(format!("{} {what}: a part of it is missing", member.path().display()));
    let applied = snap.map_or(Ok(Applied::Nothing), database::applied)?;
    Ok(match applied {
        _ if !wal_names.is_empty() => broken("has no readable WAL file"),
        _ if snap_names.iter().any(|name| name != DATABASE) => broken("has snapshots, but no WAL"),
        Applied::UpTo(_) => broken("has a database, but no WAL"),
        Applied::Unreadable => broken("has a database that cannot be read, and no WAL"),
        Applied::Nothing => Layout::Blank,
    })
}

/// Sorts WAL files by their sequence numbers.
pub(super) fn in_order(mut wals: Vec<Segment>) -> Vec<Segment> {
    wals.sort_unstable_by_key(|segment| (segment.sequence, segment.first_index));
    wals
}

/// Lists the traces of an interrupted etcd in its directory `member`. A file that etcd renamed to `.broken` in a repair is no
/// longer damage.
fn leftovers(member: &Dir) -> Result<Vec<String>, Error> {
    let half = names(member)?.into_iter().filter(|name| name == "wal.tmp").map(|name| member.path().join(name));
    Ok(half.map(|path| format!("{}: a WAL that was never finished lies beside the real one", path.display())).collect())
}

fn has_extension(name: &OsStr, extension: &str) -> bool {
    Path::new(name).extension() == Some(OsStr::new(extension))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Asserts that files which etcd purges after they were listed are still read. Reading hundreds of megabytes takes time, so a
    /// running etcd can purge files meanwhile.
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
            assert_eq!(files.snaps.load(&snap_file).unwrap().unwrap(), &b"snapshot"[..]);
        }
    }
}
