//! Moving a member's data aside: renamed, and deleted only when the agent knows that it is not needed any more.

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

/// Backups of `member` begin with this, and go on with when they were made.
const BACKUP_PREFIX: &str = "member-backup-";
/// A history that an operator gave up for another one: neither `prune_backups` nor `drop_backups` knows this name.
const HISTORY_PREFIX: &str = "member-history-";
/// A backup that is being deleted; one with this name is not whole.
const DISCARD_PREFIX: &str = "member-discard-";
/// The directories of etcd's data below a backup are two.
const DEPTH: usize = 8;

/// Moves `member` aside inside `dir`. Answers where it is now, or `None` if there was nothing to move. Refuses while etcd
/// has the files open.
pub fn move_aside(dir: &Path) -> Result<Option<PathBuf>, Error> {
    move_to(dir, BACKUP_PREFIX, |_| {})
}

/// The same, to a name that only an operator deletes, with `kept` inside.
pub fn move_history_aside(dir: &Path, kept: &KeptHistory) -> Result<Option<PathBuf>, Error> {
    move_to(dir, HISTORY_PREFIX, |member| {
        // Without this file, the fork is found by the two histories alone. A full disk must not keep a node from its peer.
        if let Err(error) = kept.write(member) {
            log::warn!("{} does not keep where it parted from the other history: {error}", member.path().display());
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

/// Explains why `member` cannot be renamed, and what to do where that does not pass by itself.
fn not_renamed(dir: &Path, member: &Path, source: io::Error) -> Error {
    match source.raw_os_error().map(Errno::from_raw) {
        Some(Errno::EBUSY | Errno::EXDEV) => Error::Mounted { dir: dir.to_owned(), member: member.to_owned(), source },
        _ => Error::io("backing up", member)(source),
    }
}

/// Returns `member` in `dir` where it is a mount point: nothing can move it aside, and each later join would fail.
pub fn mounted_member(dir: &Path) -> Option<PathBuf> {
    Some(dir.join(MEMBER)).filter(|member| proc::is_mount_point(member))
}

/// Deletes the oldest backups but for the newest `keep`.
pub fn prune_backups(dir: &Path, keep: usize) -> Result<(), Error> {
    layout::open(dir)?.map_or(Ok(()), |data| try_prune(&data, BACKUP_PREFIX, keep, None))
}

/// Deletes the backups of these names; what is no backup's name is left alone.
pub fn drop_backups(dir: &Path, names: &[String]) -> Result<(), Error> {
    let Some(data) = layout::open(dir)? else { return Ok(()) };
    let all = numbered(&data, BACKUP_PREFIX)?;
    let doomed = all.into_iter().filter(|(_, backup)| names.contains(backup));
    doomed.into_iter().try_for_each(|(_, name)| delete(&data, &name))
}

/// Returns what the history `name` in `dir` takes on the disk; `None` where that is the name of none, or a link.
pub fn history_bytes(dir: &Path, name: &str) -> Result<Option<u64>, Error> {
    let Some(data) = layout::open(dir)? else { return Ok(None) };
    if !numbered(&data, HISTORY_PREFIX)?.iter().any(|(_, known)| known == name) {
        return Ok(None);
    }
    let found = data.stat(name).map_err(Error::io("looking at", data.path().join(name)))?;
    let is_history = Kind::of(&found) == Kind::Directory;
    is_history.then(|| size(&data, name, DEPTH)).transpose()
}

/// Deletes the history `name` in `dir`; no other name is taken.
pub fn forget_history(dir: &Path, name: &str) -> Result<(), Error> {
    match layout::open(dir)? {
        Some(data) if history_bytes(dir, name)?.is_some() => {
            delete(&data, name)?;
            sync(&data)
        }
        _ => Ok(()),
    }
}

/// How much is free where the data dir is, and what the backups in it hold.
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

/// A data dir's `member` that was moved aside and lies there still.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Aside {
    pub path: PathBuf,
    /// When that was, in seconds since 1970; 0 where its name does not tell.
    pub at: u64,
    pub bytes: u64,
}

/// Why data was moved aside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AsideKind {
    /// Before its member joined anew: the newest few are kept.
    Backup,
    /// It was given up for another history: only an operator deletes it.
    History,
}

impl AsideKind {
    /// By the name that it was given then, wherever it lies now.
    pub fn of(path: &Path) -> Option<Self> {
        let name = path.file_name()?.to_str()?;
        let begins = |prefix: &str| name.starts_with(prefix);
        begins(BACKUP_PREFIX).then_some(Self::Backup).or_else(|| begins(HISTORY_PREFIX).then_some(Self::History))
    }
}

/// What the member's data in `dir` takes on the disk; `None` where there is none.
pub fn bytes(dir: &Path) -> Result<Option<u64>, Error> {
    let Some(data) = layout::open(dir)? else { return Ok(None) };
    layout::below(&data, MEMBER)?.map(|_| size(&data, MEMBER, DEPTH)).transpose()
}

/// What lies beside the data in `dir`, oldest first: backups, then histories that were given up.
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

/// What a file or a directory takes on the disk, down to `depth` directories: preallocated files take more than they hold.
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

/// A name with the next number: `<prefix><number>-<UTC time><label>`. Order comes from the number, as a clock that was
/// once wrong must not make an old backup look new.
pub(super) fn next_name(dir: &Dir, prefix: &str, label: &str) -> Result<String, Error> {
    let newest = numbered(dir, prefix)?.last().map_or(0, |(number, _)| *number);
    Ok(format!("{prefix}{:04}-{}{label}", newest.saturating_add(1), clock::utc_stamp()))
}

/// Deletes the oldest of what [`next_name`] named, but for the newest `keep` and never `made`. A failure is only
/// logged: what was asked for is done by now.
pub(super) fn prune(dir: &Dir, prefix: &str, keep: usize, made: &str) {
    if let Err(error) = try_prune(dir, prefix, keep, Some(made)) {
        log::warn!("old backups stay: {error}");
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

/// Deleting takes a while: under its own name, half of a backup would pass for a whole one after a power cut.
fn delete(dir: &Dir, name: &str) -> Result<(), Error> {
    let doomed = format!("{DISCARD_PREFIX}{name}");
    dir.rename(name, &doomed).map_err(Error::io("renaming", dir.path().join(name)))?;
    discard(dir, &doomed)
}

fn discard(dir: &Dir, name: &str) -> Result<(), Error> {
    dir.remove_all(name).map_err(Error::io("deleting", dir.path().join(name)))
}

/// What [`next_name`] named, oldest first.
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

/// Makes a directory's names durable: a rename or a new file is not before this.
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
        // A link is renamed itself, wherever it leads.
        fs::remove_dir(dir.path().join(MEMBER)).unwrap();
        std::os::unix::fs::symlink(proc::ROOT, dir.path().join(MEMBER)).unwrap();
        assert_eq!(mounted_member(dir.path()), None);
    }
}
