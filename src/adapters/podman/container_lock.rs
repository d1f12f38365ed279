//! The lock on the container. An agent holds it from its first observation to its end, and passes it to each podman that changes
//! something. A killed agent leaves its podman running, which holds the lock until it has ended.
//!
//! The lock is passed as standard input. podman passes that to its runtime, which starts etcd, but not to conmon or to etcd
//! (measured with podman 4.3, conmon 2.1 and runc 1.1). conmon would keep any other descriptor while etcd runs.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::base::Fact;
use crate::os::clock::Deadline;
use crate::os::{ofd_lock, proc, regular_file};

const LOOK_EVERY: Duration = Duration::from_millis(50);
/// The time in which a process must disappear after SIGKILL.
const AFTER_KILL: Duration = Duration::from_secs(5);

/// The lock on one resource's container. A process may change the container only while it holds the lock.
#[derive(Debug)]
pub struct ContainerLock {
    path: PathBuf,
    /// The locked file, once this process holds the lock. It stays open until the process ends.
    held: OnceLock<File>,
}

impl ContainerLock {
    /// Returns the lock with the lock file at `path`. Does not take the lock.
    pub fn at(path: PathBuf) -> Self {
        Self { path, held: OnceLock::new() }
    }

    /// Takes the lock if it is free. Returns whether another process holds it.
    pub fn take(&self) -> Fact<bool> {
        if self.held.get().is_some() {
            return Fact::Known(false);
        }
        self.answer(self.try_take())
    }

    fn try_take(&self) -> io::Result<bool> {
        let file = open(&self.path)?;
        if !ofd_lock::try_take(&file)? {
            return Ok(true);
        }
        // If another thread was faster, its file is equivalent.
        let _ = self.held.set(file);
        Ok(false)
    }

    /// Returns whether another process holds the lock. Does not take it.
    pub fn is_anothers(&self) -> Fact<bool> {
        if self.held.get().is_some() {
            return Fact::Known(false);
        }
        match regular_file::open(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Fact::Known(false),
            file => self.answer(file.and_then(|file| ofd_lock::is_taken(&file))),
        }
    }

    fn answer(&self, is_anothers: io::Result<bool>) -> Fact<bool> {
        match is_anothers {
            Ok(is_anothers) => Fact::Known(is_anothers),
            Err(error) => Fact::Unknown(format!("{}: {error}", self.path.display())),
        }
    }

    /// Takes the lock, and waits for it for at most `patience`. Returns whether another process holds it after that time.
    pub fn await_it(&self, patience: Duration) -> Fact<bool> {
        let deadline = Deadline::after(patience);
        loop {
            match self.take() {
                Fact::Known(true) if !deadline.has_passed() => deadline.sleep(LOOK_EVERY),
                answer => return answer,
            }
        }
    }

    /// Kills the other processes that hold the lock, and processes that start meanwhile and hold it, too.
    pub fn end_others(&self) -> io::Result<()> {
        let Some(file) = proc::inode(&self.path) else { return Ok(()) };
        let deadline = Deadline::after(AFTER_KILL);
        let mut ended = BTreeSet::new();
        while !deadline.has_passed() && self.take() == Fact::Known(true) {
            for pid in proc::holders(&BTreeSet::from([file]))? {
                if ended.insert(pid) {
                    log::warn!("process {pid} was left behind by an earlier action and is ended");
                }
                // A process that has ended meanwhile is the wanted result.
                let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
            }
            deadline.sleep(LOOK_EVERY);
        }
        Ok(())
    }

    /// Returns the locked file for a program that changes the container. The program also holds the lock while it runs.
    pub(super) fn share(&self) -> io::Result<File> {
        match self.held.get() {
            Some(file) => file.try_clone(),
            // A stop continues without the lock where it cannot be taken.
            None => File::open("/dev/null"),
        }
    }
}

fn open(path: &Path) -> io::Result<File> {
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory)?;
    }
    OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a child that is left behind")]
mod tests {
    use std::process::{Child, Command, Stdio};

    use super::*;

    fn leave_behind(container_lock: &ContainerLock, script: &str) -> Child {
        let mut command = Command::new("sh");
        command.args(["-c", script]).stdin(container_lock.share().unwrap()).stdout(Stdio::null());
        command.spawn().unwrap()
    }

    #[test]
    fn it_is_nobody_elses_turn_until_what_was_left_behind_has_ended() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("sub/etcd.turn");
        let killed = ContainerLock::at(path.clone());
        assert_eq!(killed.is_anothers(), Fact::Known(false), "nobody ever had it");
        assert_eq!(killed.take(), Fact::Known(false));
        assert_eq!(killed.take(), Fact::Known(false), "it is ours already");
        let mut left = leave_behind(&killed, "sleep 0.6");
        drop(killed);
        let next = ContainerLock::at(path);
        assert_eq!((next.is_anothers(), next.take()), (Fact::Known(true), Fact::Known(true)));
        assert_eq!(next.await_it(Duration::from_millis(100)), Fact::Known(true));
        assert_eq!(next.await_it(Duration::from_secs(20)), Fact::Known(false));
        assert!(left.try_wait().unwrap().is_some(), "it had ended by then");
    }

    /// Asserts that a process with another standard input does not keep the lock. podman starts conmon (which outlives podman) in this way.
    #[test]
    fn what_runs_on_with_another_input_does_not_keep_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("etcd.turn");
        let killed = ContainerLock::at(path.clone());
        assert_eq!(killed.take(), Fact::Known(false));
        let runs_on = format!("sleep 100 < /dev/null & echo $! > {}", dir.path().join("pid").display());
        leave_behind(&killed, &runs_on).wait().unwrap();
        drop(killed);
        // Child processes of other tests hold all open files of this process between fork and exec.
        assert_eq!(ContainerLock::at(path).await_it(Duration::from_secs(5)), Fact::Known(false));
        let pid = fs::read_to_string(dir.path().join("pid")).unwrap().trim().parse().unwrap();
        kill(Pid::from_raw(pid), Signal::SIGKILL).unwrap();
    }

    #[test]
    fn who_does_not_end_is_ended_with_all_that_it_started() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("etcd.turn");
        let killed = ContainerLock::at(path.clone());
        assert_eq!(killed.take(), Fact::Known(false));
        let mut left = leave_behind(&killed, "trap '' TERM; sleep 100; sleep 100");
        drop(killed);
        let next = ContainerLock::at(path);
        assert_eq!(next.take(), Fact::Known(true));
        next.end_others().unwrap();
        assert_eq!(next.take(), Fact::Known(false));
        left.wait().unwrap();
    }

    #[test]
    fn a_lock_that_cannot_be_asked_for_is_unknown() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("etcd.turn");
        fs::create_dir(&path).unwrap();
        assert!(matches!(ContainerLock::at(path.clone()).take(), Fact::Unknown(why) if why.contains("etcd.turn")));
        assert!(matches!(ContainerLock::at(path).is_anothers(), Fact::Unknown(_)));
    }
}
