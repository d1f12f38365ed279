//! A host as seen from outside, of any kind: switches it on, runs programs in it, and reads its files.

pub mod blank;
pub mod bmc;
pub mod cpu;
pub mod disks;
pub mod init;
pub mod namespaces;
pub mod net;
pub mod node;
pub mod power;
pub mod proc;
pub mod services;
pub mod state;
pub mod syslog;
pub mod tls;
pub mod units;
pub mod vm;

use std::fs::File;
use std::path::Path;
use std::process::Command;

use crate::host::node::{NODES, Node};
use crate::host::proc::Record;
use crate::host::state::Lab;
use crate::sh::{self, Output, Result};

/// The way in which the lab makes its hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Hosts made of this machine's namespaces. They are fast, and share the machine's kernel, programs and page
    /// cache.
    Namespaces,
    /// Hosts that are virtual machines. They are slow, and have a kernel, an init and a disk of their own.
    Vm,
}

impl Kind {
    pub fn word(self) -> &'static str {
        match self {
            Self::Namespaces => "namespaces",
            Self::Vm => "vm",
        }
    }

    /// Returns the kind of hosts that a running lab has.
    pub fn of(lab: &Lab) -> Self {
        if lab.setting("hosts").as_deref() == Some(Self::Vm.word()) { Self::Vm } else { Self::Namespaces }
    }
}

/// The operations that differ between hosts of namespaces and virtual machines. The file [`Lab::init_record`] names
/// the host's pid 1, or the process that represents it on this machine.
trait Host {
    /// Prepares this machine once for all hosts, before they get their disks.
    fn prepare(&self, lab: &Lab) -> Result<()>;

    /// Makes the host's disks, before its first boot.
    fn make_disks(&self, lab: &Lab, node: Node, authkey: &[u8]) -> Result<()>;

    /// Connects the host to the lab's networks and boots it.
    fn boot(&self, lab: &Lab, node: Node) -> Result<()>;

    /// Takes the host's network links down.
    fn deaden(&self, lab: &Lab, node: Node) -> Result<()>;

    /// Waits until no process of the host runs. The caller has already killed the host's pid 1.
    fn ended(&self, lab: &Lab, node: Node) -> Result<()>;

    /// Removes everything of a switched-off host from this machine, except its disks.
    fn unplug(&self, lab: &Lab, node: Node);

    /// Returns what is left on this machine although [`Host::unplug`] should have removed it.
    fn remains(&self, lab: &Lab, node: Node) -> Vec<String>;

    /// Returns a command that runs `words` on the running host.
    fn command(&self, lab: &Lab, node: Node, words: &[&str]) -> Result<Command>;

    /// Waits until the host can run programs.
    fn wait_booted(&self, lab: &Lab, node: Node) -> Result<()>;

    /// Imports a container image into the host's podman.
    fn import_image(&self, lab: &Lab, node: Node, tar: &Path, name: &str) -> Result<()>;

    /// Moves files off the host, and returns their contents. A program that has one of the files open continues to write to the moved
    /// file.
    fn take_files(&self, lab: &Lab, node: Node, dir: &str, prefix: &str) -> Result<Vec<u8>>;
}

fn of(lab: &Lab) -> &'static dyn Host {
    match Kind::of(lab) {
        Kind::Namespaces => &namespaces::Namespaces,
        Kind::Vm => &vm::Vm,
    }
}

/// Returns the record of the host's pid 1. `None` if the host does not run.
pub fn running(lab: &Lab, node: Node) -> Option<Record> {
    Record::load(&lab.init_record(node)).filter(Record::alive)
}

pub fn prepare(lab: &Lab) -> Result<()> {
    of(lab).prepare(lab)
}

pub fn make_disks(lab: &Lab, node: Node, authkey: &[u8]) -> Result<()> {
    of(lab).make_disks(lab, node, authkey)
}

/// Boots the host from the disks that it had when it was switched off.
pub fn boot(lab: &Lab, node: Node) -> Result<()> {
    // Removes the remains of the last power cut now, because a power cut itself must not be delayed.
    of(lab).unplug(lab, node);
    of(lab).boot(lab, node)
}

/// Cuts the host's power, and returns whether the host ran. The network links go down first. Otherwise the dying
/// kernel would send FINs, and peers would notice at once. After a real power cut they cannot.
pub fn cut(lab: &Lab, node: Node) -> Result<bool> {
    of(lab).deaden(lab, node)?;
    let running = running(lab, node);
    if let Some(init) = running {
        init.kill()?;
    }
    // Fencing relies on it that no process runs on a host that is off.
    of(lab).ended(lab, node)?;
    Ok(running.is_some())
}

/// Removes everything of the host from this machine, except its disks, for a teardown. [`remains`] returns what is
/// left.
pub fn remove(lab: &Lab, node: Node) {
    if let Some(init) = Record::load(&lab.init_record(node)) {
        let _ = init.kill();
    }
    let _ = of(lab).ended(lab, node);
    of(lab).unplug(lab, node);
}

/// Returns what is left of the host on this machine after [`remove`].
pub fn remains(lab: &Lab, node: Node) -> Vec<String> {
    of(lab).remains(lab, node)
}

/// Returns a command that runs `words` inside the host, without the machine's proxy settings in its environment.
pub fn command(lab: &Lab, node: Node, words: &[&str]) -> Result<Command> {
    if running(lab, node).is_none() {
        return Err(format!("{node} is switched off; type 'cargo lab on {node}'").into());
    }
    of(lab).command(lab, node, words)
}

pub fn wait_booted(lab: &Lab, node: Node) -> Result<()> {
    of(lab).wait_booted(lab, node)
}

/// Imports a container image into the host's podman.
pub fn import_image(lab: &Lab, node: Node, tar: &Path, name: &str) -> Result<()> {
    of(lab).import_image(lab, node, tar, name)
}

/// Runs a program in the host, and returns its output, whatever its exit code.
pub fn output(lab: &Lab, node: Node, words: &[&str]) -> Result<Output> {
    sh::output(&mut command(lab, node, words)?)
}

/// Runs a program in the host. A non-zero exit code is an error.
pub fn must(lab: &Lab, node: Node, words: &[&str]) -> Result<String> {
    let done = output(lab, node, words)?;
    if done.ok {
        return Ok(done.stdout);
    }
    Err(format!("on {node}: '{}' failed: {}", words.join(" "), done.text().trim()).into())
}

/// Runs a program on the host and returns its output, or the error's text if it fails. Callers use it for messages,
/// and for checks that they repeat.
pub fn said(lab: &Lab, node: Node, words: &[&str]) -> String {
    output(lab, node, words).map_or_else(|error| error.to_string(), |done| done.text())
}

/// Runs a line in a shell on the host. Returns the exit code, and standard output and standard error as one text.
pub fn typed(lab: &Lab, node: Node, line: &str) -> Result<(i32, String)> {
    let text = output(lab, node, &["sh", "-c", &format!("{{ {line}; }} 2>&1; echo \"code $?\"")])?.text();
    let (said, code) = text.trim_end().rsplit_once("code ").ok_or_else(|| format!("no exit code: {text}"))?;
    Ok((code.parse()?, said.trim().to_owned()))
}

/// Writes a file on the host, and makes its directory if that is missing.
pub fn put(lab: &Lab, node: Node, path: &str, content: &str) -> Result<()> {
    let mut command = command(lab, node, &["sh", "-c", "mkdir -p \"${0%/*}\" && cat > \"$0\"", path])?;
    sh::feed(&mut command, content).map(drop)
}

/// Runs a program in the host with `file` as its standard input. The file is outside of the host's own file system.
pub fn feed(lab: &Lab, node: Node, words: &[&str], file: &Path) -> Result<()> {
    let input = File::open(file).map_err(|error| format!("{}: {error}", file.display()))?;
    let done = command(lab, node, words)?.stdin(input).output()?;
    if done.status.success() {
        return Ok(());
    }
    let complaint = String::from_utf8_lossy(&done.stderr).trim().to_owned();
    Err(format!("{node} does not take {}: {complaint}", file.display()).into())
}

/// Returns a host that runs, for queries that either host can answer.
pub fn any_running(lab: &Lab) -> Result<Node> {
    NODES
        .into_iter()
        .find(|node| running(lab, *node).is_some())
        .ok_or_else(|| "both nodes are switched off; type 'cargo lab on node1'".into())
}

/// Moves files off the host, and returns their contents. The files are in `dir` below `/var/lib`, and their names
/// begin with `prefix`. The file with the longest name comes first.
pub fn take_files(lab: &Lab, node: Node, dir: &str, prefix: &str) -> Result<Vec<u8>> {
    of(lab).take_files(lab, node, dir, prefix)
}
