//! A host from outside: switch its namespaces on, run programs in it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use nix::sched::{CloneFlags, setns, unshare};

use crate::init;
use crate::net;
use crate::node::{NODES, Node};
use crate::proc::Record;
use crate::sh::{self, Output, Result};
use crate::state::Lab;

const PATH: &str = "/usr/sbin:/usr/bin:/sbin:/bin";

/// The record of the host's pid 1, if the host runs.
pub fn running(lab: &Lab, node: Node) -> Option<Record> {
    Record::load(&lab.init_record(node)).filter(Record::alive)
}

/// The host's own cgroup: its processes and containers live below it and it is easy to find what is left.
pub fn cgroup(lab: &Lab, node: Node) -> Result<PathBuf> {
    Ok(cgroup_root()?.join(format!("tandem-lab-{}-{node}", lab.name)))
}

/// Where the machine mounts the unified cgroup hierarchy: at the root of the tree, or beside the old controllers.
fn cgroup_root() -> Result<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mounts")?;
    let mount = mounts.lines().find_map(|line| {
        let mut fields = line.split(' ');
        let point = fields.nth(1)?;
        (fields.next()? == "cgroup2").then(|| PathBuf::from(point))
    });
    mount.ok_or_else(|| "this machine mounts no cgroup2 hierarchy, which the lab's hosts need".into())
}

/// Boots the host's pid 1 in namespaces of its own. Its network must be plugged in already.
///
/// A process of its own does it ([`boot`]), since new namespaces take hold of whoever asks for them.
pub fn start(lab: &Lab, node: Node) -> Result<()> {
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

/// The hidden command behind [`start`].
pub fn boot(lab: &Lab, node: Node) -> Result<()> {
    nix::unistd::setsid()?;
    let cgroup = cgroup(lab, node)?;
    // Processes must not live in a cgroup that has children with controllers: pid 1 and all else go into `init`,
    // containers beside it.
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
    // The new pid 1 shares our mounts and is about to replace /proc and /var/lib: it waits until its record is there.
    let _ = fs::remove_file(lab.init_record(node));
    let init = Command::new("/proc/self/exe")
        .args(["--name", &lab.name, "host-init", node.name()])
        .stdin(Stdio::null())
        .spawn()?;
    Record::of(init.id())?.save(&lab.init_record(node))
}

/// `program args` inside the host: all its namespaces, its cgroup, and an environment without the machine's proxies.
pub fn command(lab: &Lab, node: Node, words: &[&str]) -> Result<Command> {
    let init = running(lab, node).ok_or_else(|| format!("{node} is switched off; type 'cargo lab on {node}'"))?;
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

/// Runs a program in the host and answers what it said, whatever its exit code.
pub fn output(lab: &Lab, node: Node, words: &[&str]) -> Result<Output> {
    sh::output(&mut command(lab, node, words)?)
}

/// Runs a program in the host; a non-zero exit code is an error.
pub fn must(lab: &Lab, node: Node, words: &[&str]) -> Result<String> {
    let done = output(lab, node, words)?;
    if done.ok {
        return Ok(done.stdout);
    }
    Err(format!("on {node}: '{}' failed: {}", words.join(" "), done.text().trim()).into())
}

/// What a program on the host says, or why it says nothing: for messages, and for looking again and again.
pub fn said(lab: &Lab, node: Node, words: &[&str]) -> String {
    output(lab, node, words).map_or_else(|error| error.to_string(), |done| done.text())
}

/// Writes a file on the host, its directory included.
pub fn put(lab: &Lab, node: Node, path: &str, content: &str) -> Result<()> {
    let mut command = command(lab, node, &["sh", "-c", "mkdir -p \"${0%/*}\" && cat > \"$0\"", path])?;
    sh::feed(&mut command, content).map(drop)
}

/// A host that runs and answers; for questions that either can answer.
pub fn any_running(lab: &Lab) -> Result<Node> {
    NODES
        .into_iter()
        .find(|node| running(lab, *node).is_some())
        .ok_or_else(|| "both nodes are switched off; type 'cargo lab on node1'".into())
}

/// Brings a container image into the host's podman.
pub fn import_image(lab: &Lab, node: Node, tar: &Path, name: &str) -> Result<()> {
    sh::wait_for(&format!("{node} to boot"), Duration::from_secs(30), Duration::from_millis(20), || {
        must(lab, node, &["test", "-e", init::BOOTED]).ok()
    })?;
    // The tar lies outside of what the host sees: it comes in through a pipe.
    let file = fs::File::open(tar)?;
    let mut command = command(lab, node, &["podman", "import", "--quiet", "-", name])?;
    let done = command.stdin(file).output()?;
    if done.status.success() {
        return Ok(());
    }
    Err(format!("{node} cannot import {name}: {}", String::from_utf8_lossy(&done.stderr).trim()).into())
}

/// Ends every process of the host, its containers' included, and waits until none lives. Killing pid 1 has done that
/// already, but for a host whose record a crash of the lab has lost, and for programs that `exec` brought in.
pub fn empty(lab: &Lab, node: Node) -> Result<()> {
    let cgroup = cgroup(lab, node)?;
    let _ = fs::write(cgroup.join("cgroup.kill"), "1");
    let events = cgroup.join("cgroup.events");
    let empty = || fs::read_to_string(&events).map_or(true, |text| text.contains("populated 0"));
    if sh::wait_for_quietly(Duration::from_secs(20), Duration::from_millis(5), empty) {
        return Ok(());
    }
    Err(format!("processes of {node} survive the power cut").into())
}

/// Removes the host's cgroups, leaves first. They are empty once its processes are gone.
pub fn remove_cgroup(lab: &Lab, node: Node) {
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
