//! A host made of namespaces on this machine. Such hosts share the machine's kernel and programs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use nix::sched::{CloneFlags, setns, unshare};

use super::{Host, feed, must, running};
use crate::host::disks;
use crate::host::init;
use crate::host::net;
use crate::host::node::Node;
use crate::host::proc::Record;
use crate::host::state::Lab;
use crate::sh::{self, Result};

const PATH: &str = "/usr/sbin:/usr/bin:/sbin:/bin";

pub struct Namespaces;

impl Host for Namespaces {
    fn prepare(&self, _: &Lab) -> Result<()> {
        Ok(())
    }

    fn make_disks(&self, lab: &Lab, node: Node, authkey: &[u8]) -> Result<()> {
        disks::create(lab, node, authkey)
    }

    fn boot(&self, lab: &Lab, node: Node) -> Result<()> {
        net::plug_in(lab, node)?;
        start(lab, node)
    }

    fn deaden(&self, lab: &Lab, node: Node) -> Result<()> {
        if net::host_handle(lab, node).exists() { net::deaden(lab, node) } else { Ok(()) }
    }

    /// Kills the host's processes that survived the death of its pid 1. Such processes exist if the lab lost the
    /// record of pid 1 in a crash, or if `exec` started them.
    fn ended(&self, lab: &Lab, node: Node) -> Result<()> {
        let cgroup = cgroup(lab, node)?;
        let _ = fs::write(cgroup.join("cgroup.kill"), "1");
        let events = cgroup.join("cgroup.events");
        let empty = || fs::read_to_string(&events).map_or(true, |text| text.contains("populated 0"));
        if sh::wait_for_quietly(Duration::from_secs(20), Duration::from_millis(5), empty) {
            return Ok(());
        }
        Err(format!("processes of {node} survive the power cut").into())
    }

    fn unplug(&self, lab: &Lab, node: Node) {
        net::unplug(lab, node);
        remove_cgroup(lab, node);
    }

    fn remains(&self, lab: &Lab, node: Node) -> Vec<String> {
        let cgroup = cgroup(lab, node).ok().filter(|cgroup| cgroup.exists());
        cgroup.map(|cgroup| format!("cgroup {}", cgroup.display())).into_iter().collect()
    }

    /// Returns a command that enters all namespaces of the host, and its cgroup.
    fn command(&self, lab: &Lab, node: Node, words: &[&str]) -> Result<Command> {
        let init = running(lab, node).ok_or_else(|| format!("{node} has ended"))?;
        let leaf = cgroup(lab, node)?.join("init/cgroup.procs");
        let mut command = Command::new("sh");
        command
            .args(["-c", "echo $$ > \"$1\"; shift; exec \"$@\"", "sh"])
            .arg(leaf)
            .args(["nsenter", "--target", &init.pid.to_string()])
            .args(["--mount", "--uts", "--ipc", "--net", "--pid", "--cgroup", "--wd=/", "--"])
            .args(words)
            .env_clear()
            .env("PATH", PATH)
            .env("HOME", "/root")
            .env("LANG", "C.UTF-8")
            .env("TERM", std::env::var_os("TERM").unwrap_or_else(|| "dumb".into()));
        Ok(command)
    }

    fn wait_booted(&self, lab: &Lab, node: Node) -> Result<()> {
        let booted = || must(lab, node, &["test", "-e", init::BOOTED]).ok().map(drop);
        sh::wait_for(&format!("{node} to boot"), Duration::from_secs(30), Duration::from_millis(20), booted)
    }

    fn import_image(&self, lab: &Lab, node: Node, tar: &Path, name: &str) -> Result<()> {
        feed(lab, node, &["podman", "import", "--quiet", "-", name], tar)
    }

    /// Moves the files off the host's disk, which works even while the host is off.
    fn take_files(&self, lab: &Lab, node: Node, dir: &str, prefix: &str) -> Result<Vec<u8>> {
        let entries = fs::read_dir(lab.disk(node, "var-lib").join(dir)).into_iter().flatten().flatten();
        let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
        files.retain(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(prefix)));
        files.sort_by_key(|path| std::cmp::Reverse(path.as_os_str().len()));
        let taken = lab.taken_decisions(node);
        sh::make_dir(&taken)?;
        let mut held = Vec::new();
        for file in &files {
            let moved = taken.join(file.file_name().unwrap_or_default());
            fs::rename(file, &moved)?;
            held.extend(fs::read(&moved)?);
        }
        Ok(held)
    }
}

/// Runs `work` while every process of the host is frozen. `work` then finds the host's files in the state that a snapshot of a running
/// machine would have.
pub fn frozen<T>(lab: &Lab, node: Node, work: impl FnOnce() -> Result<T>) -> Result<T> {
    let cgroup = cgroup(lab, node)?;
    let freeze = |word: &str| sh::write(&cgroup.join("cgroup.freeze"), word);
    let is_frozen = || fs::read_to_string(cgroup.join("cgroup.events")).is_ok_and(|text| text.contains("frozen 1"));
    freeze("1")?;
    let done = if sh::wait_for_quietly(Duration::from_secs(2), Duration::from_millis(2), is_frozen) {
        work()
    } else {
        Err(format!("{node} does not freeze").into())
    };
    freeze("0")?;
    done
}

/// Freezes every process of the host. Its BMC still reports On, as for a machine with a hung kernel. Only a power
/// cycle ends the freeze.
pub fn hang(lab: &Lab, node: Node) -> Result<()> {
    sh::write(&cgroup(lab, node)?.join("cgroup.freeze"), "1")
}

/// Returns the host's cgroup. All its processes and containers are below it, so that leftovers are easy to find.
pub fn cgroup(lab: &Lab, node: Node) -> Result<PathBuf> {
    Ok(cgroup_root()?.join(format!("tandem-lab-{}-{node}", lab.name)))
}

/// Returns the mount point of the unified cgroup hierarchy (v2). It is the root of the cgroup tree, or a directory
/// next to the controllers of version 1.
fn cgroup_root() -> Result<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mounts")?;
    let mount = mounts.lines().find_map(|line| {
        let mut fields = line.split(' ');
        let point = fields.nth(1)?;
        (fields.next()? == "cgroup2").then(|| PathBuf::from(point))
    });
    mount.ok_or_else(|| "this machine mounts no cgroup2 hierarchy, which the lab's hosts need".into())
}

/// Boots the host's pid 1 in new namespaces. The host's network namespace must exist already.
///
/// A separate process ([`boot`]) makes the other namespaces, because they also apply to the process that makes them.
fn start(lab: &Lab, node: Node) -> Result<()> {
    let log = fs::OpenOptions::new().append(true).create(true).open(lab.node_dir(node).join("boot.log"))?;
    let status = Command::new("/proc/self/exe")
        .args(["--name", &lab.name, "host-boot", node.name()])
        .env_clear()
        .env("PATH", PATH)
        .env("HOME", "/root")
        .env("LANG", "C.UTF-8")
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        .status()?;
    if status.success() {
        return Ok(());
    }
    let said = fs::read_to_string(lab.node_dir(node).join("boot.log")).unwrap_or_default();
    Err(format!("{node} does not boot: {}", said.lines().last().unwrap_or("it said nothing")).into())
}

/// Runs as the hidden subcommand `host-boot`, which [`start`] calls.
pub fn boot(lab: &Lab, node: Node) -> Result<()> {
    nix::unistd::setsid()?;
    let cgroup = cgroup(lab, node)?;
    // Processes must not be in a cgroup that has children with controllers. So pid 1 and the other processes go into
    // `init`, and containers into cgroups next to it.
    let leaf = cgroup.join("init");
    sh::make_dir(&leaf)?;
    let me = std::process::id().to_string();
    sh::write(&cgroup.join("cgroup.procs"), &me)?;
    let network = fs::File::open(net::host_handle(lab, node))?;
    setns(network, CloneFlags::CLONE_NEWNET)?;
    unshare(
        CloneFlags::CLONE_NEWCGROUP
            | CloneFlags::CLONE_NEWNS
            | CloneFlags::CLONE_NEWUTS
            | CloneFlags::CLONE_NEWIPC
            | CloneFlags::CLONE_NEWPID,
    )?;
    sh::write(&leaf.join("cgroup.procs"), &me)?;
    // The new pid 1 shares our mounts, and will replace `/proc` and `/var/lib`. So it waits until its record exists.
    let _ = fs::remove_file(lab.init_record(node));
    let init = Command::new("/proc/self/exe")
        .args(["--name", &lab.name, "host-init", node.name()])
        .stdin(Stdio::null())
        .spawn()?;
    Record::of(init.id())?.save(&lab.init_record(node))
}

/// Removes the host's cgroups, leaves first. They have no processes once the host has ended.
fn remove_cgroup(lab: &Lab, node: Node) {
    if let Ok(top) = cgroup(lab, node) {
        sh::wait_for_quietly(Duration::from_secs(3), Duration::from_millis(50), || {
            remove_tree(&top);
            !top.exists()
        });
    }
}

fn remove_tree(dir: &Path) {
    if let Ok(entries) = fs::read_dir(dir) {
        for entry in entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
            remove_tree(&entry.path());
        }
    }
    let _ = fs::remove_dir(dir);
}
