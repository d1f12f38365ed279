//! Processes that the lab started and must end. Each is recorded with its pid and start time, so that the lab never
//! signals another process that was given the same pid.

use std::fs;
use std::path::Path;
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::sh::{self, Result};

/// A process id with the start time of the process, which distinguishes it from a later process with the same id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    pub pid: i32,
    /// The start time in clock ticks since the machine's boot: field 22 of `/proc/PID/stat`.
    started: u64,
}

impl Record {
    /// Returns the record of the running process `pid`.
    pub fn of(pid: u32) -> Result<Self> {
        let pid = i32::try_from(pid)?;
        let (_, started) = stat(pid).ok_or_else(|| format!("process {pid} has ended already"))?;
        Ok(Self { pid, started })
    }

    /// Reads the record that [`Record::save`] wrote. Returns `None` if there is no such file.
    pub fn load(path: &Path) -> Option<Self> {
        let text = fs::read_to_string(path).ok()?;
        let (pid, started) = text.trim().split_once(' ')?;
        Some(Self { pid: pid.parse().ok()?, started: started.parse().ok()? })
    }

    pub fn save(&self, path: &Path) -> Result<()> {
        // The rename makes the file appear complete, because another process may be waiting for it.
        let unfinished = path.with_extension("new");
        sh::write(&unfinished, format!("{} {}\n", self.pid, self.started))?;
        Ok(fs::rename(unfinished, path)?)
    }

    /// Returns whether the recorded process still exists and is no zombie.
    pub fn alive(&self) -> bool {
        stat(self.pid).is_some_and(|(state, started)| started == self.started && state != 'Z' && state != 'X')
    }

    /// Sends `signal` to the recorded process, unless it has ended already.
    pub fn signal(&self, signal: Signal) -> Result<()> {
        match self.alive().then(|| kill(Pid::from_raw(self.pid), signal)) {
            Some(Err(errno)) if errno != Errno::ESRCH => Err(errno.into()),
            _ => Ok(()),
        }
    }

    /// Sends SIGKILL to the recorded process, unless it has ended already, and waits until it is gone. The pid 1 of a
    /// pid namespace is gone only after all other processes of that namespace.
    pub fn kill(&self) -> Result<()> {
        if !self.alive() {
            return Ok(());
        }
        let _ = kill(Pid::from_raw(self.pid), Signal::SIGKILL);
        sh::wait_for_quietly(Duration::from_secs(20), Duration::from_millis(5), || !self.alive())
            .then_some(())
            .ok_or_else(|| format!("process {} does not end after SIGKILL", self.pid).into())
    }
}

/// Returns whether the process `pid` has ended and its parent has not reaped it yet.
pub fn is_zombie(pid: u32) -> bool {
    i32::try_from(pid).ok().and_then(stat).is_none_or(|(state, _)| matches!(state, 'Z' | 'X'))
}

/// Returns the state letter of a process and its start time, in clock ticks since the machine's boot; `None` if there
/// is no such process.
fn stat(pid: i32) -> Option<(char, u64)> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The program's name may contain spaces and brackets, so the fields begin after the last bracket.
    let rest = text.get(text.rfind(')')? + 2..)?;
    let mut fields = rest.split(' ');
    let state = fields.next()?.chars().next()?;
    Some((state, fields.nth(18)?.parse().ok()?))
}
