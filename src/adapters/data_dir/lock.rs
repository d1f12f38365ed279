//! The check whether an etcd process uses these files. etcd holds a lock on the WAL file that it writes, and on its database.

use std::ffi::OsString;
use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};

use super::database::DATABASE;
use super::error::Error;
use super::layout::{SNAP, WAL, below, member, names};
use crate::os::beneath::Dir;
use crate::os::ofd_lock;
use crate::os::regular_file::is_irregular;

/// Returns the path of the first file of the data dir that a process holds locked; `None` if there is none.
///
/// Takes no lock of the kind that etcd takes, because an etcd that starts at this moment would fail.
pub(super) fn holder(dir: &Path) -> Result<Option<PathBuf>, Error> {
    for place in files(dir)? {
        let file = match place.dir.or_irregular(&place.name) {
            // etcd has renamed or purged the file since it was listed. Its other files show that it is running.
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            // A process has a lease on the file.
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(Some(place.path())),
            file => file.map_err(Error::io("opening", place.path()))?,
        };
        // An entry such as `lost+found`. etcd locks regular files only.
        let Ok(file) = file else { continue };
        if is_locked(file).map_err(Error::io("looking for locks on", place.path()))? {
            return Ok(Some(place.path()));
        }
    }
    Ok(None)
}

/// A file of the data dir that etcd may have open.
#[derive(Debug)]
struct Place {
    dir: Arc<Dir>,
    name: OsString,
}

impl Place {
    fn path(&self) -> PathBuf {
        self.dir.path().join(&self.name)
    }
}

/// Returns the files that etcd locks. Skips a symbolic link in place of a directory, because etcd has no files there. The container may
/// leave such a link, which must not make a stop fail.
fn files(dir: &Path) -> Result<Vec<Place>, Error> {
    let mut places = Vec::new();
    for part in [WAL, "wal.tmp", SNAP] {
        let Some(found) = directory(dir, part)? else { continue };
        let (found, names) = (Arc::new(found.0), found.1);
        let locked = names.into_iter().filter(|name| part != SNAP || name == DATABASE);
        places.extend(locked.map(|name| Place { dir: found.clone(), name }));
    }
    Ok(places)
}

/// Opens the directory `part` of `member`, and lists its names; `None` where there is no such directory.
pub(super) fn directory(dir: &Path, part: &str) -> Result<Option<(Dir, Vec<OsString>)>, Error> {
    let found = member(dir).and_then(|member| member.map_or(Ok(None), |member| below(&member, part)));
    match found {
        Err(Error::Io { source, .. }) if is_irregular(&source) => Ok(None),
        found => found?.map_or(Ok(None), |found| names(&found).map(|names| Some((found, names)))),
    }
}

/// Returns whether a process has `file` locked as etcd does. etcd locks WAL files with an open-file-description lock, or with flock if the
/// kernel lacks such locks. etcd locks the database with flock.
fn is_locked(file: File) -> std::io::Result<bool> {
    if ofd_lock::is_taken(&file)? {
        return Ok(true);
    }
    // A shared lock conflicts only with etcd's exclusive one, and is released when it is dropped.
    match Flock::lock(file, FlockArg::LockSharedNonblock) {
        Ok(_) => Ok(false),
        Err((_, Errno::EWOULDBLOCK)) => Ok(true),
        Err((_, error)) => Err(error.into()),
    }
}

/// Opens the WAL file at `path` for writing, and takes etcd's own kind of lock. No etcd can open the file until this program
/// closes it.
pub(super) fn open_locked(dir: &Path, path: &Path) -> Result<File, Error> {
    let file = opened_to_change(dir, path).map_err(Error::io("opening", path))?;
    match ofd_lock::try_take(&file) {
        Ok(true) => Ok(file),
        Ok(false) => Err(Error::Open { path: path.to_owned() }),
        Err(error) => Err(Error::io("locking", path)(error)),
    }
}

fn opened_to_change(dir: &Path, path: &Path) -> std::io::Result<File> {
    let place = path.strip_prefix(dir).map_err(|_| ErrorKind::InvalidInput)?;
    Dir::open(dir)?.file_to_change(place)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Asserts that a locked WAL file counts as open and cannot be locked again. This lock keeps etcd out while a WAL file is changed.
    #[test]
    fn our_lock_is_seen_as_etcds_own() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("member/wal/0000000000000000-0000000000000000.wal");
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, b"").unwrap();
        let file = open_locked(dir.path(), &path).unwrap();
        assert_eq!(holder(dir.path()).unwrap(), Some(path.clone()));
        assert!(matches!(open_locked(dir.path(), &path), Err(Error::Open { .. })));
        drop(file);
        // A program that another test starts at this moment has the file open, too, until its `exec`.
        let patience = crate::os::clock::Deadline::after(std::time::Duration::from_secs(10));
        while holder(dir.path()).unwrap().is_some() {
            assert!(!patience.has_passed(), "a lock that was given back is still there");
            crate::os::clock::sleep(std::time::Duration::from_millis(5));
        }
    }
}
