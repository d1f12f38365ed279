//! The record of the mount that holds the data dir, in a file outside of the data dir. It keeps a mount point without its file
//! system from being taken for a blank data dir.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::base::Fact;
use crate::os::fstab::{self, Entry};
use crate::os::proc::{self, Mount};
use crate::records::state_file;

/// The mount that held etcd's data when etcd was last started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct DataMount {
    mount_point: PathBuf,
    source: String,
    file_system: String,
}

/// The reason why an empty data dir may be a mount point without its file system, and so must not count as blank.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotBlank {
    #[error(
        "the file system that held the data ({source_name}, {file_system}) is not mounted at {point}: mount it; only to give up its data, delete {record}"
    )]
    Held { source_name: String, file_system: String, point: String, record: String },
    #[error(
        "{table} has a file system ({source_name}, {file_system}) for {point}, which is not mounted: mount it; only to give up its data, delete its line"
    )]
    Listed { table: &'static str, source_name: String, file_system: String, point: String },
    #[error("what is mounted is not known: cannot read {path}: {why}")]
    Unread { path: &'static str, why: String },
    #[error("whether the data's disk is mounted is not known: {why}; only if no disk is missing, delete {record}")]
    Damaged { record: String, why: String },
}

/// Returns the path of the file that records the mount of the data of `resource`.
pub fn path(directory: &Path, resource: &str) -> PathBuf {
    directory.join(format!("data-mount-{resource}.json"))
}

/// Records the mount that holds the data in `data_dir`. Writes nothing if the file at `path` already has that mount.
pub fn keep(path: &Path, data_dir: &Path) -> io::Result<()> {
    let mounts = proc::mounts()?;
    let Some(found) = holding(&mounts, &place(data_dir)) else {
        return Err(io::Error::from(io::ErrorKind::NotFound));
    };
    match state_file::read::<DataMount>(path) {
        Fact::Known(kept) if kept == found => Ok(()),
        _ => state_file::write(path, &found),
    }
}

/// Checks that no file system with data is missing at the empty `data_dir`. Compares the present mounts with the mount of the last start,
/// which is in the file at `path`, and with `/etc/fstab`.
pub fn check_blank(path: &Path, data_dir: &Path) -> Result<(), NotBlank> {
    let unread = |path| move |error: io::Error| NotBlank::Unread { path, why: error.to_string() };
    let mounts = proc::mounts().map_err(unread(proc::MOUNT_TABLE))?;
    let at_boot = fstab::read().map_err(unread(fstab::PATH))?;
    check(path, &place(data_dir), &mounts, &at_boot)
}

fn check(path: &Path, place: &Path, mounts: &[Mount], at_boot: &[Entry]) -> Result<(), NotBlank> {
    let is_missing = |point: &Path| place.starts_with(point) && mounts.iter().all(|mount| mount.point != point);
    let record = path.display().to_string();
    match state_file::read::<DataMount>(path) {
        Fact::Known(kept) if is_missing(&kept.mount_point) => {
            let point = kept.mount_point.display().to_string();
            return Err(NotBlank::Held { source_name: kept.source, file_system: kept.file_system, point, record });
        }
        Fact::Unknown(why) => return Err(NotBlank::Damaged { record, why }),
        Fact::Known(_) | Fact::Absent | Fact::NotAsked => {}
    }
    // The root file system is always mounted.
    let mut below_the_root = at_boot.iter().filter(|entry| entry.point.parent().is_some());
    below_the_root.find(|entry| is_missing(&resolved(&entry.point))).map_or(Ok(()), |entry| {
        Err(NotBlank::Listed {
            table: fstab::PATH,
            source_name: entry.source.clone(),
            file_system: entry.file_system.clone(),
            point: entry.point.display().to_string(),
        })
    })
}

/// Returns the mount that holds `place`: the one with the longest mount point. If several have the same mount point, returns the last one,
/// which hides the others.
fn holding(mounts: &[Mount], place: &Path) -> Option<DataMount> {
    let above = mounts.iter().filter(|mount| place.starts_with(&mount.point));
    let mount = above.max_by_key(|mount| mount.point.components().count())?;
    Some(DataMount {
        mount_point: mount.point.clone(),
        source: mount.source.clone(),
        file_system: mount.file_system.clone(),
    })
}

/// Returns the real path of etcd's directory `member`, which need not exist.
fn place(data_dir: &Path) -> PathBuf {
    resolved(&data_dir.join("member"))
}

/// Resolves the symbolic links in the existing part of `path`.
fn resolved(path: &Path) -> PathBuf {
    let resolve = |there: &Path| {
        let real = fs::canonicalize(there).ok()?;
        path.strip_prefix(there).ok().map(|rest| real.join(rest))
    };
    path.ancestors().find_map(resolve).unwrap_or_else(|| path.to_owned())
}

#[cfg(test)]
#[path = "data_mount/tests.rs"]
mod tests;
