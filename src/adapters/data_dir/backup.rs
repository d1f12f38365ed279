//! Moves a member's data aside. The data is renamed, and deleted only when the agent knows that it is no longer needed.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::sys::statvfs::statvfs;

use super::error::Error;
use super::layout::{self, MEMBER};
use super::lock;
use super::{Backup, Room};
use crate::os::beneath::Dir;
use crate::os::file_kind::Kind;
use crate::os::{clock, proc};
use crate::records::kept_history::KeptHistory;

/// The prefix of the names of backups, which are former directories `member`. A number and the time of the backup follow.
const BACKUP_PREFIX: &str = "member-backup-";
/// The prefix of the names of directories with data that was given up for the peer's data. `prune_backups` and `drop_backups` do not delete
/// these directories.
const HISTORY_PREFIX: &str = "member-history-";
/// The prefix of the names of backups that are being deleted, and so may be incomplete.
const DISCARD_PREFIX: &str = "member-discard-";
/// The greatest depth of directories in which sizes are measured. etcd's data has two levels of directories below a backup.
const DEPTH: usize = 8;

/// Renames `member` in `dir` to `member-backup-<number>-<time>`. Returns the new path, or `None` if there is no `member`. Refuses while
/// etcd has the files open.
pub fn move_aside(dir: &Path) -> Result<Option<PathBuf>, Error> {
    move_to(dir, BACKUP_PREFIX, |_| {})
}

/// Writes `kept` into `member`, and renames `member` in `dir` to `member-history-<number>-<time>`. Only an operator deletes a
/// directory of that name.
pub fn move_history_aside(dir: &Path, kept: &KeptHistory) -> Result<Option<PathBuf>, Error> {
    move_to(dir, HISTORY_PREFIX, |member| {
        // Without this file the fork can only be found by comparing the two histories. A full disk must not keep a node from its
        // peer.
        if let Err(error) = kept.write(member) {
            log::warn!("the fork from the other history cannot be recorded in {}: {error}", member.path().display());
        }
    })
}

fn move_to(dir: &Path, prefix: &str, prepare: impl FnOnce(&Dir)) -> Result<Option<PathBuf>, Error> {
    let member = dir.join(MEMBER);
    let Some(data) = layout::open(dir)? else { return Ok(None) };
    let Some(of_etcd) = layout::below(&data, MEMBER)? else { return Ok(None) };
    if let Some(path) = lock::holder(dir)? {
        return Err(Error::Open { path });
    }
    prepare(&of_etcd);
    let name = next_name(&data, prefix, "")?;
    let backup = dir.join(&name);
    data.rename(MEMBER, &name).map_err(|error| not_renamed(dir, &member, error))?;
    #[cfg(feature = "lab-faults")]
    if crate::os::lab_faults::is_on(crate::os::lab_faults::SKIP_RENAME_SYNC) {
        crate::os::lab_faults::wait_after_writing(crate::os::lab_faults::WAIT_AFTER_RENAME);
        return Ok(Some(backup));
    }
    sync(&data)?;
    #[cfg(feature = "lab-faults")]
    crate::os::lab_faults::wait_after_writing(crate::os::lab_faults::WAIT_AFTER_RENAME);
    Ok(Some(backup))
}

/// Returns the error of a failed rename of `member`. The error names the remedy if `member` is a mount point or on another file system.
fn not_renamed(dir: &Path, member: &Path, source: io::Error) -> Error {
    match source.raw_os_error().map(Errno::from_raw) {
        Some(Errno::EBUSY | Errno::EXDEV) => Error::Mounted { dir: dir.to_owned(), member: member.to_owned(), source },
        _ => Error::io("backing up", member)(source),
    }
}

/// Returns the path of `member` in `dir` if it is a mount point; else `None`. A mount point cannot be renamed, so each later join
/// would fail.
pub fn mounted_member(dir: &Path) -> Option<PathBuf> {
    Some(dir.join(MEMBER)).filter(|member| proc::is_mount_point(member))
}

/// Deletes the backups in `dir`, except for the newest `keep`.
pub fn prune_backups(dir: &Path, keep: usize) -> Result<(), Error> {
    layout::open(dir)?.map_or(Ok(()), |data| try_prune(&data, BACKUP_PREFIX, keep, None))
}

/// Deletes the backups in `dir` that have one of these names. Ignores every other name.
pub fn drop_backups(dir: &Path, names: &[String]) -> Result<(), Error> {
    let Some(data) = layout::open(dir)? else { return Ok(()) };
    let all = numbered(&data, BACKUP_PREFIX)?;
    let doomed = all.into_iter().filter(|(_, backup)| names.contains(backup));
    doomed.into_iter().try_for_each(|(_, name)| delete(&data, &name))
}

/// Returns the disk usage in bytes of the directory `name` in `dir`, which must be an [`AsideKind::History`]; else `None`.
pub fn history_bytes(dir: &Path, name: &str) -> Result<Option<u64>, Error> {
    let Some(data) = layout::open(dir)? else { return Ok(None) };
    if !numbered(&data, HISTORY_PREFIX)?.iter().any(|(_, known)| known == name) {
        return Ok(None);
    }
    let found = data.stat(name).map_err(Error::io("looking at", data.path().join(name)))?;
    let is_history = Kind::of(&found) == Kind::Directory;
    is_history.then(|| size(&data, name, DEPTH)).transpose()
}

/// Deletes the directory `name` in `dir`, if it is an [`AsideKind::History`]. Ignores every other name.
pub fn forget_history(dir: &Path, name: &str) -> Result<(), Error> {
    match layout::open(dir)? {
        Some(data) if history_bytes(dir, name)?.is_some() => {
            delete(&data, name)?;
            sync(&data)
        }
        _ => Ok(()),
    }
}

/// Returns the free space of the data dir's file system, and the size of each backup in the data dir.
pub fn room(dir: &Path) -> Result<Room, Error> {
    let free = statvfs(dir).map_err(|errno| Error::io("asking for the room in", dir)(errno.into()))?;
    let mut backups = Vec::new();
    if let Some(data) = layout::open(dir)? {
        for (_, name) in numbered(&data, BACKUP_PREFIX)? {
            backups.push(Backup { bytes: size(&data, &name, DEPTH)?, name });
        }
    }
    Ok(Room { free_bytes: free.blocks_available() * free.fragment_size(), backups })
}

/// A directory with the former `member` of a data dir. It was renamed to keep the data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Aside {
    pub path: PathBuf,
    /// The time at which `member` was renamed, in seconds since 1970; 0 if the name does not contain a time.
    pub at: u64,
    pub bytes: u64,
}

/// The reason why a data dir's `member` was renamed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AsideKind {
    /// Data that a member had before it joined the cluster anew. Only the newest backups are kept.
    Backup,
    /// Data that was given up for the peer's data. Only an operator deletes it.
    History,
}

impl AsideKind {
    /// Returns the kind of the renamed `member` at `path`, by its name; `None` for a directory with any other name.
    pub fn of(path: &Path) -> Option<Self> {
        let name = path.file_name()?.to_str()?;
        let begins = |prefix: &str| name.starts_with(prefix);
        begins(BACKUP_PREFIX).then_some(Self::Backup).or_else(|| begins(HISTORY_PREFIX).then_some(Self::History))
    }
}

/// Returns the disk usage in bytes of `member` in `dir`; `None` where there is no `member`.
pub fn bytes(dir: &Path) -> Result<Option<u64>, Error> {
    let Some(data) = layout::open(dir)? else { return Ok(None) };
    layout::below(&data, MEMBER)?.map(|_| size(&data, MEMBER, DEPTH)).transpose()
}

/// Lists the renamed `member` directories in `dir`: first each [`AsideKind::Backup`], then each [`AsideKind::History`], both oldest first.
pub fn aside(dir: &Path) -> Result<Vec<Aside>, Error> {
    let mut found = Vec::new();
    let Some(data) = layout::open(dir)? else { return Ok(found) };
    for prefix in [BACKUP_PREFIX, HISTORY_PREFIX] {
        for (_, name) in numbered(&data, prefix)? {
            let stamp = name.rsplit('-').next().unwrap_or_default();
            let at = clock::of_utc_stamp(stamp).unwrap_or_default();
            found.push(Aside { at, bytes: size(&data, &name, DEPTH)?, path: dir.join(name) });
        }
    }
    Ok(found)
}

/// Returns the disk usage in bytes of the file or directory `name`, down to `depth` levels of directories. For a preallocated file it is
/// more than the file contains.
fn size(dir: &Dir, name: impl AsRef<OsStr>, depth: usize) -> Result<u64, Error> {
    const BLOCK: u64 = 512;
    let path = dir.path().join(name.as_ref());
    let found = dir.stat(name.as_ref()).map_err(Error::io("looking at", &path))?;
    let blocks = u64::try_from(found.st_blocks).unwrap_or_default() * BLOCK;
    if depth == 0 || Kind::of(&found) != Kind::Directory {
        return Ok(blocks);
    }
    let inside = dir.below(name.as_ref()).map_err(Error::io("listing", &path))?;
    layout::names(&inside)?.iter().try_fold(blocks, |sum, entry| Ok(sum + size(&inside, entry, depth - 1)?))
}

/// Returns the next name for a file or directory in `dir`: `<prefix><number>-<UTC time><label>`. The number defines the order,
/// because a wrong clock must not make an old backup appear new.
pub(super) fn next_name(dir: &Dir, prefix: &str, label: &str) -> Result<String, Error> {
    let newest = numbered(dir, prefix)?.last().map_or(0, |(number, _)| *number);
    Ok(format!("{prefix}{:04}-{}{label}", newest.saturating_add(1), clock::utc_stamp()))
}

/// Deletes the oldest entries of `dir` with names that [`next_name`] made from `prefix`. Keeps the newest `keep` of them, and the one named
/// `made`. A failure is only logged, because the caller's own change has already been made.
pub(super) fn prune(dir: &Dir, prefix: &str, keep: usize, made: &str) {
    if let Err(error) = try_prune(dir, prefix, keep, Some(made)) {
        log::warn!("old backups cannot be deleted: {error}");
    }
}

fn try_prune(dir: &Dir, prefix: &str, keep: usize, made: Option<&str>) -> Result<(), Error> {
    for half_deleted in with_prefix(dir, DISCARD_PREFIX)? {
        discard(dir, &half_deleted)?;
    }
    let all = numbered(dir, prefix)?;
    let surplus = all.len().saturating_sub(keep);
    let mut doomed = all.into_iter().take(surplus).filter(|(_, name)| Some(name.as_str()) != made);
    doomed.try_for_each(|(_, name)| delete(dir, &name))
}

/// Deletes a backup. Renames it first: if a power cut interrupted the deletion, the rest would otherwise look like a complete backup.
fn delete(dir: &Dir, name: &str) -> Result<(), Error> {
    let doomed = format!("{DISCARD_PREFIX}{name}");
    dir.rename(name, &doomed).map_err(Error::io("renaming", dir.path().join(name)))?;
    discard(dir, &doomed)
}

fn discard(dir: &Dir, name: &str) -> Result<(), Error> {
    dir.remove_all(name).map_err(Error::io("deleting", dir.path().join(name)))
}

/// Lists the entries of `dir` with names that [`next_name`] made from `prefix`, by number, lowest first.
fn numbered(dir: &Dir, prefix: &str) -> Result<Vec<(u64, String)>, Error> {
    let number = |name: &str| name.strip_prefix(prefix)?.split_once('-')?.0.parse::<u64>().ok();
    let names = with_prefix(dir, prefix)?.into_iter();
    let mut numbered: Vec<_> = names.filter_map(|name| Some((number(&name)?, name))).collect();
    numbered.sort_unstable();
    Ok(numbered)
}

fn with_prefix(dir: &Dir, prefix: &str) -> Result<Vec<String>, Error> {
    let names = layout::names(dir)?.into_iter().filter_map(|name| name.into_string().ok());
    Ok(names.filter(|name| name.starts_with(prefix)).collect())
}

/// Syncs a directory. Until this is done, a power cut may undo a rename or the creation of a file in it.
pub(super) fn sync(dir: &Dir) -> Result<(), Error> {
    dir.sync().map_err(Error::io("syncing", dir.path()))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_member_that_cannot_be_renamed_names_the_way_out() {
        let (dir, member) = (Path::new("/var/lib/etcd"), Path::new("/var/lib/etcd/member"));
        for errno in [Errno::EBUSY, Errno::EXDEV] {
            let error = not_renamed(dir, member, io::Error::from(errno)).to_string();
            let way_out = "mount the file system one level higher, at /var/lib/etcd, not at /var/lib/etcd/member";
            assert!(error.starts_with(way_out), "{error}");
        }
        let error = not_renamed(dir, member, io::Error::from(Errno::EROFS)).to_string();
        assert!(error.starts_with("backing up /var/lib/etcd/member: Read-only"), "{error}");
    }

    #[test]
    fn only_a_place_where_something_is_mounted_is_a_mount_point() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(mounted_member(dir.path()), None, "nothing is there yet");
        fs::create_dir(dir.path().join(MEMBER)).unwrap();
        assert_eq!(mounted_member(dir.path()), None);
        assert!(proc::is_mount_point(Path::new(proc::ROOT)));
        // A link is renamed itself, and not its target.
        fs::remove_dir(dir.path().join(MEMBER)).unwrap();
        std::os::unix::fs::symlink(proc::ROOT, dir.path().join(MEMBER)).unwrap();
        assert_eq!(mounted_member(dir.path()), None);
    }
}
