//! The process behind the container: alive or not is a look into /proc, without podman, and stays true where podman has
//! lost sight of it.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::decide::Fact;
use crate::notes;

/// A process, told from a later one with the same number by when it started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    pid: i32,
    started: u64,
}

/// Words in the cgroup of a container that kubelet runs.
const PODS: &[&str] = &["kubepods", "crio-"];

impl Process {
    /// The process `pid`, if it lives.
    pub fn of(pid: i32) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name, in parentheses, may hold blanks. After it come the state and, 19 fields on, the start time.
        let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
        let state = fields.next()?;
        let started = fields.nth(18)?.parse().ok()?;
        (!matches!(state, "Z" | "X")).then_some(Self { pid, started })
    }

    /// Whether it still lives.
    pub fn is_alive(self) -> bool {
        Self::of(self.pid) == Some(self)
    }

    /// Sets how willing the kernel is to end it when memory runs out.
    pub fn set_oom_score(self, score: i32) -> std::io::Result<()> {
        fs::write(format!("/proc/{}/oom_score_adj", self.pid), score.to_string())
    }
}

/// Writes down at `path` that the container's process is `pid`: it is looked for in /proc from now on, not with podman.
pub fn remember(path: &Path, pid: i32) {
    if let Some(process) = Process::of(pid)
        && let Err(error) = notes::write(path, &process)
    {
        log::debug!("etcd's process is not written down: {error}");
    }
}

/// The process that was written down at `path`, if it lives.
pub fn remembered(path: &Path) -> Option<Process> {
    let recorded: Fact<Process> = notes::read(path);
    recorded.known().copied().filter(|process| process.is_alive())
}

/// Whether etcd's database in `data_dir` is locked by a process that kubelet runs: OpenShift's own static pod.
pub fn a_pod_has_open(data_dir: &Path) -> bool {
    let Ok(inode) = fs::metadata(data_dir.join("member/snap/db")).map(|metadata| metadata.ino()) else { return false };
    let locks = fs::read_to_string("/proc/locks").unwrap_or_default();
    locks.lines().filter_map(|line| holder(line, inode)).any(is_in_a_pod)
}

/// The process that holds the lock which a line of /proc/locks tells of, if it is one on `inode`.
fn holder(line: &str, inode: u64) -> Option<i32> {
    // `1: FLOCK  ADVISORY  WRITE 1234 fe:01:5678 0 EOF`; one that waits has an arrow after its number.
    let mut fields = line.split_whitespace().skip(1).skip_while(|field| *field == "->").skip(3);
    let pid = fields.next()?.parse().ok()?;
    let of = fields.next()?.rsplit(':').next()?.parse::<u64>().ok()?;
    (of == inode).then_some(pid)
}

fn is_in_a_pod(pid: i32) -> bool {
    let cgroup = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
    PODS.iter().any(|word| cgroup.contains(word))
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a child to look at")]
mod tests {
    use super::*;

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

    #[test]
    fn a_line_of_the_lock_table_names_its_holder() {
        assert_eq!(holder("1: FLOCK  ADVISORY  WRITE 1234 fe:01:5678 0 EOF", 5678), Some(1234));
        assert_eq!(holder("1: -> FLOCK  ADVISORY  WRITE 1234 fe:01:5678 0 EOF", 5678), Some(1234));
        assert_eq!(holder("1: FLOCK  ADVISORY  WRITE 1234 fe:01:56789 0 EOF", 5678), None);
        assert_eq!(holder("2: OFDLCK ADVISORY  WRITE -1 fe:01:5678 0 EOF", 5678), Some(-1));
    }
}
