//! Does an etcd process use these files? etcd holds a lock on the WAL file that it writes, and on its database.

use std::fs::File;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};

use super::error::Error;
use super::layout::{MEMBER, list};
use crate::os::{ofd_lock, regular_file};

/// The first file of the data dir that a process holds locked.
///
/// Asks without taking etcd's kind of lock, so that an etcd that starts at this moment is not turned away.
pub(super) fn holder(dir: &Path) -> Result<Option<PathBuf>, Error> {
    let member = dir.join(MEMBER);
    let mut paths = list(&member.join("wal"))?.unwrap_or_default();
    paths.extend(list(&member.join("wal.tmp"))?.unwrap_or_default());
    paths.extend(list(&member.join("snap"))?.unwrap_or_default().into_iter().filter(|path| path.ends_with("db")));
    for path in paths {
        let file = match regular_file::or_irregular(&path) {
            // Renamed or purged since it was listed: that is etcd at work, and its other files tell.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            file => file.map_err(Error::io("opening", &path))?,
        };
        // Such as `lost+found`: etcd locks regular files only.
        let Ok(file) = file else { continue };
        if is_locked(file).map_err(Error::io("looking for locks on", &path))? {
            return Ok(Some(path));
        }
    }
    Ok(None)
}

/// etcd locks WAL files with an open-file-description lock where the kernel has them (else with flock), the database
/// with flock.
fn is_locked(file: File) -> std::io::Result<bool> {
    if ofd_lock::is_taken(&file)? {
        return Ok(true);
    }
    // A shared lock conflicts with etcd's exclusive one only, and goes when it is dropped.
    match Flock::lock(file, FlockArg::LockSharedNonblock) {
        Ok(_) => Ok(false),
        Err((_, Errno::EWOULDBLOCK)) => Ok(true),
        Err((_, error)) => Err(error.into()),
    }
}

/// Opens a WAL file for writing, locked as etcd would lock it: until it is closed, no etcd can open it.
pub(super) fn open_locked(path: &Path) -> Result<File, Error> {
    let file = regular_file::open_to_change(path).map_err(Error::io("opening", path))?;
    match ofd_lock::try_take(&file) {
        Ok(true) => Ok(file),
        Ok(false) => Err(Error::Open { path: path.to_owned() }),
        Err(error) => Err(Error::io("locking", path)(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What keeps etcd out while a WAL file is changed.
    #[test]
    fn our_lock_is_seen_as_etcds_own() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("member/wal/0000000000000000-0000000000000000.wal");
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, b"").unwrap();
        let file = open_locked(&path).unwrap();
        assert_eq!(holder(dir.path()).unwrap(), Some(path.clone()));
        assert!(matches!(open_locked(&path), Err(Error::Open { .. })));
        drop(file);
        // A program that another test starts just then has the file open, too, until its `exec`.
        let patience = crate::os::clock::Deadline::after(std::time::Duration::from_secs(10));
        while holder(dir.path()).unwrap().is_some() {
            assert!(!patience.has_passed(), "a lock that was given back is still there");
            crate::os::clock::sleep(std::time::Duration::from_millis(5));
        }
    }
}
