//! The teardown of a lab, even of one that a crash left incomplete. No step stops at an error: each removes what it
//! can, and the end reports what is left.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::host;
use crate::host::net;
use crate::host::node::{NODES, Node};
use crate::host::power;
use crate::host::proc::{self, Record};
use crate::host::state::{self, FAILED_LOGS, Lab};
use crate::sh;

/// A guard that takes the lab down when it goes out of scope, even after a panic of a print into a closed pipe.
pub struct AtEnd<'a>(pub &'a Lab);

impl Drop for AtEnd<'_> {
    fn drop(&mut self) {
        if self.0.exists() {
            down(self.0);
        }
    }
}

/// Removes what a crash of the machine left of a lab with this name, so that a new one can begin. Fails if a lab of
/// this name is up.
pub fn make_room(lab: &Lab) -> sh::Result<()> {
    if !lab.exists() {
        return Ok(());
    }
    if !processes(lab).is_empty() || lab.lock_whole().is_err() {
        return Err(format!(
            "lab {0} is up already; type 'cargo lab --name {0} status' to see it, 'cargo lab --name {0} down' to end it, or use another --name",
            lab.name
        )
        .into());
    }
    println!("taking away what was left of lab {}, in which nothing runs", lab.name);
    match down(lab) {
        left if left.is_empty() => Ok(()),
        left => Err(format!("could not take away: {}", left.join(", ")).into()),
    }
}

/// Removes everything of the lab from the machine, and returns what it could not remove.
pub fn down(lab: &Lab) -> Vec<String> {
    if let Some(bmc) = Record::load(&lab.bmc_record()) {
        // The BMCs end first, so that no fencing request boots a host that was just ended.
        let _ = bmc.kill();
    }
    // This also finds a machine without a record, because of a crash.
    for machine in pids(|process| process.is_machine(lab)).filter_map(|pid| Record::of(pid).ok()) {
        let _ = machine.kill();
    }
    for node in NODES {
        if lab.node_dir(node).is_dir() {
            let _ = power::cut(lab, node);
        }
        host::remove(lab, node);
    }
    for namespace in net::namespaces(lab) {
        net::delete(&namespace);
    }
    // A host's mounts vanish with its last process, a moment after its pid 1.
    sh::wait_for_quietly(Duration::from_secs(5), Duration::from_millis(50), || {
        let _ = fs::remove_dir_all(lab.dir());
        !lab.dir().exists()
    });
    state::remove_root_if_empty();
    leftovers(lab)
}

/// Returns what is left of this lab on the machine: directory, namespaces, mounts, processes and cgroups.
pub fn leftovers(lab: &Lab) -> Vec<String> {
    let mut found = Vec::new();
    let dir = lab.dir();
    if dir.exists() {
        found.push(format!("directory {}", dir.display()));
    }
    for namespace in net::namespaces(lab) {
        if Path::new("/run/netns").join(&namespace).exists() {
            found.push(format!("network namespace {namespace}"));
        }
    }
    let dir_text = format!("{}/", dir.display());
    for line in fs::read_to_string("/proc/self/mounts").unwrap_or_default().lines() {
        if line.contains(&dir_text) {
            found.push(format!("mount {line}"));
        }
    }
    for node in NODES {
        found.extend(host::remains(lab, node));
    }
    found.extend(processes(lab));
    found
}

/// Returns the processes of this lab. Their cgroup identifies those on a host, containers included. The command line
/// identifies the lab's own daemons outside of the hosts, QEMU, and ssh's connections.
fn processes(lab: &Lab) -> Vec<String> {
    let said = |pid| {
        let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        format!("process {pid} ({})", name.trim())
    };
    pids(|process| process.is_of(lab)).map(said).collect()
}

/// Returns the ids of the processes that `is_wanted` accepts, without this process. It skips zombies, because the
/// machine's init reaps orphans at its own pace.
fn pids(is_wanted: impl Fn(&Process) -> bool) -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| *pid != std::process::id() && !proc::is_zombie(*pid))
        .filter(move |pid| is_wanted(&Process::of(*pid)))
}

/// A process of the machine, with the properties that show to which lab it belongs.
struct Process {
    words: Vec<String>,
    cgroup: String,
}

impl Process {
    fn of(pid: u32) -> Self {
        let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let words = words.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into_owned()).collect();
        Self { words, cgroup: fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default() }
    }

    fn is_of(&self, lab: &Lab) -> bool {
        let daemon = self.words.iter().any(|word| ["host-init", "bmc-daemon", "disk-daemon"].contains(&word.as_str()))
            && self.words.contains(&lab.name);
        let on_a_host = |node: &Node| self.cgroup.contains(&format!("::/tandem-lab-{}-{node}", lab.name));
        daemon || self.is_machine(lab) || self.runs("ssh", lab) || NODES.iter().any(on_a_host)
    }

    /// Returns whether the process is a QEMU that uses files of the lab.
    fn is_machine(&self, lab: &Lab) -> bool {
        self.runs("qemu-system", lab)
    }

    /// Returns whether the process runs `program` with a file of the lab as an argument.
    fn runs(&self, program: &str, lab: &Lab) -> bool {
        let dir = format!("{}/", lab.dir().display());
        self.words.first().is_some_and(|word| word.contains(program))
            && self.words.iter().any(|word| word.contains(&dir))
    }
}

/// Copies the logs of a failed run out of the lab, and returns the directory of the copies. It copies neither keys
/// nor etcd's data.
pub fn keep_logs(lab: &Lab, what: &str) -> PathBuf {
    let label = state::stamp(state::since_epoch()).replace([':', '.'], "-");
    let kept = Path::new(FAILED_LOGS).join(format!("{label}-{}-{what}", lab.name));
    let _ = fs::create_dir_all(&kept);
    let timeline = crate::judge::timeline::merged(lab);
    let _ = fs::write(kept.join("timeline.log"), timeline.join("\n") + "\n");
    let acks = fs::read_dir(lab.dir()).into_iter().flatten().flatten().map(|entry| entry.path());
    let acks = acks.filter(|path| path.extension().is_some_and(|extension| extension == "tsv"));
    for file in acks.chain([lab.events(), lab.bmc_log()]) {
        if let Some(name) = file.file_name() {
            let _ = fs::copy(&file, kept.join(name));
        }
    }
    for node in NODES {
        let _ = copy_tree(&lab.disk(node, "var-log"), &kept.join(node.name()));
        // A virtual machine's disk cannot be read from outside.
        if host::running(lab, node).is_some() {
            let _ = crate::judge::decisions::keep_unreplayed(lab, node);
        }
        for decisions in [lab.disk(node, "var-lib").join("tandem"), lab.taken_decisions(node)] {
            let _ = copy_tree(&decisions, &kept.join(node.name()));
        }
        let _ = fs::copy(lab.node_dir(node).join("boot.log"), kept.join(node.name()).join("boot.log"));
        if host::running(lab, node).is_some() {
            for (file, words) in [
                ("crm_mon.txt", &["crm_mon", "-1", "-A", "-f", "-r"][..]),
                ("cib.xml", &["cibadmin", "--query"]),
                ("podman-logs.txt", &["podman", "logs", "--timestamps", "etcd"]),
            ] {
                let _ = fs::write(kept.join(node.name()).join(file), host::said(lab, node, words));
            }
        }
    }
    kept
}

fn copy_tree(from: &Path, to: &Path) -> sh::Result<()> {
    sh::must(Command::new("cp").arg("-r").arg("--no-preserve=ownership").arg(from).arg(to)).map(drop)
}
