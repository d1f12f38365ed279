//! The process of the container. /proc shows whether it is alive, without podman, and even after podman has lost track of it.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::fs;
use std::path::Path;
use std::time::Duration;

use nix::sys::signal::kill;
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};

use crate::base::Fact;
use crate::os::beneath::Dir;
use crate::os::proc;
use crate::os::terminate;
use crate::records::state_file;

const LOOK_EVERY: Duration = Duration::from_millis(5);

/// A process, identified by its number and by the time of its start, because the kernel reuses numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    pid: i32,
    started: u64,
}

/// The prefix of the name of a container's cgroup.
const CONTAINER: &str = "libpod-";
/// The prefix of the name of the cgroup of conmon, which monitors a container.
const CONMON: &str = "libpod-conmon-";
/// Parts of the name of a cgroup that show that kubelet runs the container.
const PODS: &[&str] = &["kubepods", "crio-"];

impl Process {
    /// Returns the process with the number `pid`; `None` if it is not alive.
    pub fn of(pid: i32) -> Option<Self> {
        let stat = proc::stat(pid).filter(|stat| !stat.has_ended)?;
        Some(Self { pid, started: stat.started })
    }

    pub fn is_alive(self) -> bool {
        Self::of(self.pid) == Some(self)
    }

    /// Ends the process: SIGTERM, and SIGKILL after `grace`. Returns whether the process has ended.
    pub fn end(self, grace: Duration) -> bool {
        let send = |signal| {
            if self.is_alive() {
                // A process that ends at this moment is the wanted result.
                let _ = kill(Pid::from_raw(self.pid), signal);
            }
        };
        let Ok(gone) = terminate::end(grace, LOOK_EVERY, send, || Ok::<_, Infallible>(!self.is_alive()));
        gone
    }

    /// Sets how likely the kernel is to kill the process when memory runs out. `score` is from -1000 (never) to 1000.
    pub fn set_oom_score(self, score: i32) -> std::io::Result<()> {
        proc::set_oom_score(self.pid, score)
    }
}

/// The record of the process of etcd's container, in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Recorded {
    #[serde(flatten)]
    process: Process,
    /// True if a stop of this agent has ended the process.
    #[serde(default)]
    ended: bool,
}

/// Writes to the file at `path` that the process of etcd's container has the number `pid`. Later actions find the process in `/proc`,
/// without podman.
pub fn remember(path: &Path, pid: i32) {
    if let Some(process) = Process::of(pid) {
        record(path, Recorded { process, ended: false });
    }
}

fn record(path: &Path, recorded: Recorded) {
    if let Err(error) = state_file::write(path, &recorded) {
        log::debug!("etcd's process cannot be recorded: {error}");
    }
}

fn recorded(path: &Path) -> Option<Recorded> {
    let recorded: Fact<Recorded> = state_file::read(path);
    recorded.known().copied()
}

/// Returns the process of etcd's container from the file at `path`; `None` if the process is not alive, or if the file has none.
pub fn remembered(path: &Path) -> Option<Process> {
    recorded(path).map(|recorded| recorded.process).filter(|process| process.is_alive())
}

/// Ends the process of etcd's container from the file at `path`. Returns whether the process was alive and has ended now.
pub fn end_remembered(path: &Path, grace: Duration) -> bool {
    let Some(process) = remembered(path) else { return false };
    let gone = process.end(grace);
    if gone {
        record(path, Recorded { process, ended: true });
    }
    gone
}

/// Returns whether a stop of this agent has ended the process of etcd's container in the file at `path`.
pub fn was_ended(path: &Path) -> bool {
    recorded(path).is_some_and(|recorded| recorded.ended && !recorded.process.is_alive())
}

/// Deletes the file at `path` with the process of etcd's container, because the container is about to have another process.
pub fn forget(path: &Path) {
    // A record that cannot be deleted is of a process that has ended.
    let _ = fs::remove_file(path);
}

/// Returns whether a process that kubelet runs has etcd's database in `data_dir` locked. That is the etcd of OpenShift's own static pod.
pub fn a_pod_has_open(data_dir: &Path) -> bool {
    let found = Dir::open(data_dir).and_then(|data_dir| data_dir.stat("member/snap/db"));
    let Some(database) = found.ok().as_ref().and_then(proc::inode_of) else { return false };
    let holders = proc::lockers(database.1).into_iter().filter(|pid| is_in_a_pod(*pid));
    // A file with the same number on another file system is excluded by a check of the open files.
    let database = BTreeSet::from([database]);
    holders.into_iter().any(|pid| proc::has_open(pid, &database))
}

/// Finds the process of the container `id`, by the cgroup of each process. `pid` is the container's first process as podman reports it.
/// Returns `Absent` if no process of the container is alive.
///
/// If the container has no cgroup of its own, and the process `pid` has its own root directory, the process may be the container's. In this
/// case the result is `NotAsked`.
pub(super) fn of_container(id: &str, pid: i32, has_cgroup: bool) -> Fact<i32> {
    let inside = in_container(id);
    if let Some(first) = inside.iter().find(|inside| **inside == pid).or(inside.first()) {
        return Fact::Known(*first);
    }
    let is_anothers = || has_cgroup || is_in_a_container(pid) || is_in_a_pod(pid) || proc::is_of_the_host(pid);
    match Process::of(pid) {
        Some(_) if pid > 0 && !is_anothers() => Fact::NotAsked,
        _ => Fact::Absent,
    }
}

/// Returns the numbers of the live processes in the cgroup of the container `id`, in ascending order.
fn in_container(id: &str) -> Vec<i32> {
    let is_inside =
        |pid: &i32| containers(&proc::cgroups(*pid)).any(|found| found == id) && Process::of(*pid).is_some();
    let mut inside: Vec<i32> = proc::pids().unwrap_or_default().into_iter().filter(is_inside).collect();
    inside.sort_unstable();
    inside
}

/// Ends the processes in the cgroup of the container `id`: SIGTERM, and SIGKILL after `grace`.
pub(super) fn end_container(id: &str, grace: Duration) {
    for process in in_container(id).into_iter().filter_map(Process::of) {
        process.end(grace);
    }
}

/// Returns whether a process is in the cgroup of a container that podman created, even if podman has forgotten the container. A process
/// inside a container cannot put a process of the host into such a cgroup.
pub fn is_in_a_container(pid: i32) -> bool {
    containers(&proc::cgroups(pid)).next().is_some() && !is_in_a_pod(pid)
}

/// Returns the ids of the containers in `cgroups`, the contents of `/proc/PID/cgroup`. The lines are `NUMBER:CONTROLLERS:PATH`. A path
/// has `libpod-ID.scope` if systemd creates the cgroups, `libpod-ID` if podman does, and `libpod-payload-ID` if a unit is split.
fn containers(cgroups: &str) -> impl Iterator<Item = &str> {
    let parts = cgroups.lines().filter_map(|line| line.splitn(3, ':').nth(2)).flat_map(|path| path.split('/'));
    let own = parts.filter(|part| !part.starts_with(CONMON)).filter_map(|part| part.strip_prefix(CONTAINER));
    own.map(|rest| rest.trim_end_matches(".scope").trim_start_matches("payload-"))
}

fn is_in_a_pod(pid: i32) -> bool {
    let cgroups = proc::cgroups(pid);
    PODS.iter().any(|word| cgroups.contains(word))
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a child to look at")]
mod tests {
    use nix::sys::signal::Signal;

    use super::*;

    #[test]
    fn the_file_keeps_its_form() {
        let process = Process { pid: 4711, started: 263_940 };
        let text = include_str!("../../../tests/data/fixtures/formats/0.1.0/process.json");
        let recorded = Recorded { process, ended: true };
        assert_eq!(serde_json::from_str::<Recorded>(text).unwrap(), recorded);
        assert_eq!(serde_json::to_string(&recorded).unwrap(), text.trim_end());
        let least = include_str!("../../../tests/data/fixtures/formats/0.1.0/process-least.json");
        assert_eq!(serde_json::from_str::<Recorded>(least).unwrap(), Recorded { process, ended: false });
    }

    #[test]
    fn a_cgroup_names_its_container_and_not_the_one_that_watches() {
        for (cgroups, expected) in [
            ("0::/machine.slice/libpod-c0ffee.scope/container\n", &["c0ffee"][..]),
            ("9:name=systemd:/libpod_parent/libpod-c0ffee\n0::/\n", &["c0ffee"]),
            ("0::/system.slice/etcd.service/libpod-payload-c0ffee\n", &["c0ffee"]),
            ("0::/machine.slice/libpod-conmon-c0ffee.scope\n", &[]),
            ("0::/system.slice/libpod.service\n", &[]),
            ("0::/system.slice/pacemaker.service\n", &[]),
            ("", &[]),
        ] {
            assert_eq!(containers(cgroups).collect::<Vec<_>>(), expected, "{cgroups}");
        }
        assert!(!is_in_a_container(i32::try_from(std::process::id()).unwrap()) && !is_in_a_container(1));
    }

    #[test]
    fn a_process_is_alive_until_it_ends() {
        let mut child = std::process::Command::new("sleep").arg("100").spawn().unwrap();
        let process = Process::of(i32::try_from(child.id()).unwrap()).unwrap();
        assert!(process.is_alive());
        assert!(!Process { started: process.started + 1, ..process }.is_alive(), "another one with its number");
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!process.is_alive());
    }

    /// Starts a shell, and a thread that waits for its end, as conmon does for a container.
    fn shell(script: &str) -> (Process, std::thread::JoinHandle<std::process::ExitStatus>) {
        let mut child = std::process::Command::new("sh").arg("-c").arg(script).spawn().unwrap();
        let process = Process::of(i32::try_from(child.id()).unwrap()).unwrap();
        // The pause lets the shell read the script.
        crate::os::clock::sleep(Duration::from_millis(300));
        (process, std::thread::spawn(move || child.wait().unwrap()))
    }

    #[test]
    fn a_process_that_is_ended_has_its_grace_and_no_more() {
        use std::os::unix::process::ExitStatusExt;
        let (polite, status) = shell("trap 'exit 3' TERM; while :; do sleep 0.05; done");
        assert!(polite.end(Duration::from_secs(10)));
        assert_eq!(status.join().unwrap().code(), Some(3));
        let (deaf, status) = shell("trap '' TERM; while :; do sleep 0.05; done");
        assert!(deaf.end(Duration::from_millis(200)));
        assert_eq!(status.join().unwrap().signal(), Some(9));
        let (killed, status) = shell("trap 'exit 3' TERM; while :; do sleep 0.05; done");
        assert!(killed.end(Duration::ZERO), "no grace, no SIGTERM");
        assert_eq!(status.join().unwrap().signal(), Some(9));
    }

    #[test]
    fn who_ended_a_process_is_known_until_there_is_another_one() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("process.json");
        assert!(!end_remembered(&path, Duration::ZERO) && !was_ended(&path));
        let (process, status) = shell("while :; do sleep 0.05; done");
        remember(&path, process.pid);
        assert_eq!(remembered(&path), Some(process));
        assert!(!was_ended(&path), "it lives");
        assert!(end_remembered(&path, Duration::ZERO));
        status.join().unwrap();
        assert!(remembered(&path).is_none() && was_ended(&path));
        let (crashed, status) = shell("exec sleep 100");
        remember(&path, crashed.pid);
        kill(Pid::from_raw(crashed.pid), Signal::SIGKILL).unwrap();
        status.join().unwrap();
        assert!(!was_ended(&path), "it ended by itself");
        forget(&path);
        assert!(remembered(&path).is_none() && !was_ended(&path));
    }
}
