//! The processes that have a data dir's files open. They are found and ended without podman.
//!
//! The container can link any file into the data dir, and the host's root sends the signals. So three conditions must hold for a
//! process. It has a file open that is in the data dir itself, with no link followed. The caller knows it as one of the
//! container's. It is neither process 1, nor this process, nor one of its ancestors.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::error::Error;
use super::layout::{SNAP, WAL};
use super::lock;
use crate::os::{proc, terminate};

const PAUSE: Duration = Duration::from_millis(50);

/// Ends the processes that have the WAL or the database of `dir` open, and that `is_ours` accepts. Does nothing unless one of
/// these files is locked. Returns the number of ended processes.
pub(super) fn end(dir: &Path, grace: Duration, is_ours: &dyn Fn(i32) -> bool) -> Result<usize, Error> {
    let Some(locked) = lock::holder(dir)? else { return Ok(0) };
    let spared = proc::self_and_ancestors();
    let (ours, others): (BTreeSet<i32>, BTreeSet<i32>) =
        holders(dir)?.into_iter().partition(|pid| *pid > 1 && !spared.contains(pid) && is_ours(*pid));
    for pid in others {
        log::warn!(
            "process {pid} of no container has etcd's data open and is not ended: {} is locked",
            locked.display()
        );
    }
    if !ours.is_empty() {
        terminate::end(grace, PAUSE, |signal| send(&ours, signal), || Ok(lock::holder(dir)?.is_none()))?;
    }
    Ok(ours.len())
}

fn send(holders: &BTreeSet<i32>, signal: Signal) {
    for pid in holders {
        // A process that has ended meanwhile is the wanted result.
        let _ = kill(Pid::from_raw(*pid), signal);
    }
}

fn holders(dir: &Path) -> Result<BTreeSet<i32>, Error> {
    let mut files = BTreeSet::new();
    for part in [WAL, SNAP] {
        let Some((found, names)) = lock::directory(dir, part)? else { continue };
        let inode = |name| found.stat(name).ok().as_ref().and_then(proc::inode_of);
        files.extend(names.iter().filter_map(inode));
    }
    proc::holders(&files).map_err(Error::io("listing", Path::new(proc::ROOT)))
}
