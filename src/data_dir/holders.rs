//! The processes that have a data dir's files open, found and ended without asking podman.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::error::Error;
use super::layout::{MEMBER, list};
use super::lock;
use crate::ending;

const PAUSE: Duration = Duration::from_millis(50);

/// Ends every process that has the WAL or the database of `dir` open, if one has it locked; answers how many there were.
pub(super) fn end(dir: &Path, grace: Duration) -> Result<usize, Error> {
    if lock::holder(dir)?.is_none() {
        return Ok(0);
    }
    let holders = holders(dir)?;
    ending::end(grace, PAUSE, |signal| send(&holders, signal), || Ok(lock::holder(dir)?.is_none()))?;
    Ok(holders.len())
}

fn send(holders: &BTreeSet<i32>, signal: Signal) {
    for pid in holders {
        // One that has ended meanwhile is what we want.
        let _ = kill(Pid::from_raw(*pid), signal);
    }
}

/// A file as the kernel knows it, under whatever path a container sees it.
type Inode = (u64, u64);

fn holders(dir: &Path) -> Result<BTreeSet<i32>, Error> {
    let member = dir.join(MEMBER);
    let mut files = BTreeSet::new();
    for part in ["wal", "snap"] {
        for path in list(&member.join(part))?.unwrap_or_default() {
            files.extend(inode(&path));
        }
    }
    let myself = i32::try_from(std::process::id()).unwrap_or_default();
    let pids = list(Path::new("/proc"))?.unwrap_or_default().into_iter();
    let pids = pids.filter_map(|path| path.file_name()?.to_str()?.parse::<i32>().ok());
    Ok(pids.filter(|pid| *pid != myself && has_open(*pid, &files)).collect())
}

fn inode(path: &Path) -> Option<Inode> {
    let metadata = fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
    Some((metadata.dev(), metadata.ino()))
}

/// A process that ends while it is looked at has nothing open.
fn has_open(pid: i32, files: &BTreeSet<Inode>) -> bool {
    let Ok(entries) = fs::read_dir(format!("/proc/{pid}/fd")) else { return false };
    entries.flatten().filter_map(|entry| inode(&entry.path())).any(|inode| files.contains(&inode))
}
