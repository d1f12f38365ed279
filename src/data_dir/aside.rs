//! Moving a member's data aside: renamed, never deleted at once, and bounded in number.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use super::error::Error;
use super::layout::{MEMBER, list};
use super::lock;
use crate::clock;

/// Backups of `member` begin with this, and go on with when they were made.
const BACKUP_PREFIX: &str = "member-backup-";
/// A backup that is being deleted; one with this name is not whole.
const DISCARD_PREFIX: &str = "member-discard-";

/// Moves `member` aside inside `dir` and keeps the newest `keep` of such backups, the one just made always. Answers
/// where it is now, or `None` if there was nothing to move. Refuses while etcd has the files open.
pub fn move_aside(dir: &Path, keep: usize) -> Result<Option<PathBuf>, Error> {
    let member = dir.join(MEMBER);
    if list(dir)?.is_none() || list(&member)?.is_none() {
        return Ok(None);
    }
    if let Some(path) = lock::holder(dir)? {
        return Err(Error::Open { path });
    }
    let backup = next_name(dir, BACKUP_PREFIX, "")?;
    fs::rename(&member, &backup).map_err(Error::io("moving aside", &member))?;
    sync_parent(&backup)?;
    prune(dir, BACKUP_PREFIX, keep, &backup);
    Ok(Some(backup))
}

/// A name with the next number: `<prefix><number>-<UTC time><label>`. Order comes from the number, as a clock that was
/// once wrong must not make an old backup look new.
pub(super) fn next_name(dir: &Path, prefix: &str, label: &str) -> Result<PathBuf, Error> {
    let newest = numbered(dir, prefix)?.last().map_or(0, |(number, _)| *number);
    Ok(dir.join(format!("{prefix}{:04}-{}{label}", newest.saturating_add(1), clock::utc_stamp())))
}

/// Deletes the oldest of what [`next_name`] named, but for the newest `keep` and never `made`. A failure is only
/// logged: what was asked for is done by now.
pub(super) fn prune(dir: &Path, prefix: &str, keep: usize, made: &Path) {
    if let Err(error) = try_prune(dir, prefix, keep, made) {
        log::warn!("old backups stay: {error}");
    }
}

fn try_prune(dir: &Path, prefix: &str, keep: usize, made: &Path) -> Result<(), Error> {
    for half_deleted in with_prefix(dir, DISCARD_PREFIX)? {
        discard(&half_deleted)?;
    }
    let all = numbered(dir, prefix)?;
    let surplus = all.len().saturating_sub(keep);
    for (_, path) in all.into_iter().take(surplus).filter(|(_, path)| path != made) {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        // Deleting takes a while: under its own name, half of a backup would pass for a whole one after a power cut.
        let doomed = dir.join(format!("{DISCARD_PREFIX}{name}"));
        fs::rename(&path, &doomed).map_err(Error::io("renaming", &path))?;
        discard(&doomed)?;
    }
    Ok(())
}

fn discard(path: &Path) -> Result<(), Error> {
    let is_dir = fs::symlink_metadata(path).map_err(Error::io("looking at", path))?.is_dir();
    let removed = if is_dir { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    removed.map_err(Error::io("deleting", path))
}

/// What [`next_name`] named, oldest first.
fn numbered(dir: &Path, prefix: &str) -> Result<Vec<(u64, PathBuf)>, Error> {
    let number = |path: &Path| {
        let name = path.file_name()?.to_str()?.strip_prefix(prefix)?;
        name.split_once('-')?.0.parse::<u64>().ok()
    };
    let paths = with_prefix(dir, prefix)?.into_iter();
    let mut numbered: Vec<_> = paths.filter_map(|path| Some((number(&path)?, path))).collect();
    numbered.sort_unstable();
    Ok(numbered)
}

fn with_prefix(dir: &Path, prefix: &str) -> Result<Vec<PathBuf>, Error> {
    let mut paths = list(dir)?.unwrap_or_default();
    paths.retain(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(prefix)));
    Ok(paths)
}

/// Makes a directory's names durable: a rename or a new file is not before this.
pub(super) fn sync_parent(path: &Path) -> Result<(), Error> {
    let parent = path.parent().unwrap_or(path);
    File::open(parent).and_then(|dir| dir.sync_all()).map_err(Error::io("syncing", parent))
}
