//! The processes that have a data dir's files open, found and ended without asking podman.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::error::Error;
use super::layout::{MEMBER, list};
use super::lock;
use crate::os::{proc, terminate};

const PAUSE: Duration = Duration::from_millis(50);

/// Ends every process that has the WAL or the database of `dir` open, if one has it locked; answers how many there were.
pub(super) fn end(dir: &Path, grace: Duration) -> Result<usize, Error> {
    if lock::holder(dir)?.is_none() {
        return Ok(0);
    }
    let holders = holders(dir)?;
    terminate::end(grace, PAUSE, |signal| send(&holders, signal), || Ok(lock::holder(dir)?.is_none()))?;
    Ok(holders.len())
}

fn send(holders: &BTreeSet<i32>, signal: Signal) {
    for pid in holders {
        // One that has ended meanwhile is what we want.
        let _ = kill(Pid::from_raw(*pid), signal);
    }
}

fn holders(dir: &Path) -> Result<BTreeSet<i32>, Error> {
    let member = dir.join(MEMBER);
    let mut files = BTreeSet::new();
    for part in ["wal", "snap"] {
        for path in list(&member.join(part))?.unwrap_or_default() {
            files.extend(proc::inode(&path));
        }
    }
    proc::holders(&files).map_err(Error::io("listing", Path::new(proc::ROOT)))
}
