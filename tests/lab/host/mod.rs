//! A host from outside, whatever it is made of: switch it on, run programs in it, look at what it left.

pub mod namespaces;
pub mod vm;

use std::fs::File;
use std::path::Path;
use std::process::Command;

use crate::node::{NODES, Node};
use crate::proc::Record;
use crate::sh::{self, Output, Result};
use crate::state::Lab;

/// What the lab's hosts are made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Namespaces of this machine: quick, with its kernel, its programs and its page cache.
    Namespaces,
    /// Virtual machines: slow, with a kernel, an init and a disk of their own.
    Vm,
}

impl Kind {
    pub fn word(self) -> &'static str {
        match self {
            Self::Namespaces => "namespaces",
            Self::Vm => "vm",
        }
    }

    /// Of a lab that is up.
    pub fn of(lab: &Lab) -> Self {
        if lab.setting("hosts").as_deref() == Some(Self::Vm.word()) { Self::Vm } else { Self::Namespaces }
    }
}

/// What every kind of host can do. Its pid 1, or what stands for that on this machine, is in [`Lab::init_record`].
trait Host {
    /// What is to be done once before the hosts get their disks.
    fn prepare(&self, lab: &Lab) -> Result<()>;

    /// Its disks, before its first boot.
    fn make_disks(&self, lab: &Lab, node: Node, authkey: &[u8]) -> Result<()>;

    /// Plugs it in and switches it on.
    fn boot(&self, lab: &Lab, node: Node) -> Result<()>;

    /// Makes sure that its cables are dead.
    fn deaden(&self, lab: &Lab, node: Node) -> Result<()>;

    /// After its pid 1 was killed: waits until nothing of it runs.
    fn ended(&self, lab: &Lab, node: Node) -> Result<()>;

    /// Takes away what a host that is off holds on this machine, but for its disks.
    fn unplug(&self, lab: &Lab, node: Node);

    /// What [`Host::unplug`] would have taken away.
    fn remains(&self, lab: &Lab, node: Node) -> Vec<String>;

    /// Runs `words` on the host; it runs.
    fn command(&self, lab: &Lab, node: Node, words: &[&str]) -> Result<Command>;

    /// Waits until programs can be run on it.
    fn wait_booted(&self, lab: &Lab, node: Node) -> Result<()>;

    /// Brings a container image into its podman.
    fn import_image(&self, lab: &Lab, node: Node, tar: &Path, name: &str) -> Result<()>;

    /// Moves files off it, and answers what they held. A program that writes one just now has it open, or makes a new one.
    fn take_files(&self, lab: &Lab, node: Node, dir: &str, prefix: &str) -> Result<Vec<u8>>;
}

fn of(lab: &Lab) -> &'static dyn Host {
    match Kind::of(lab) {
        Kind::Namespaces => &namespaces::Namespaces,
        Kind::Vm => &vm::Vm,
    }
}

/// The record of the host's pid 1, if the host runs.
pub fn running(lab: &Lab, node: Node) -> Option<Record> {
    Record::load(&lab.init_record(node)).filter(Record::alive)
}

pub fn prepare(lab: &Lab) -> Result<()> {
    of(lab).prepare(lab)
}

pub fn make_disks(lab: &Lab, node: Node, authkey: &[u8]) -> Result<()> {
    of(lab).make_disks(lab, node, authkey)
}

/// Switches it on, from the disks that it had when it was switched off.
pub fn boot(lab: &Lab, node: Node) -> Result<()> {
    // What the last power cut left goes now: at that time nothing may keep the cut waiting.
    of(lab).unplug(lab, node);
    of(lab).boot(lab, node)
}

/// Cuts its power. The cables go dead first: otherwise the dying kernel would send FINs, and peers would learn at once
/// what a real power cut never tells them. Answers whether there was anything to cut.
pub fn cut(lab: &Lab, node: Node) -> Result<bool> {
    of(lab).deaden(lab, node)?;
    let running = running(lab, node);
    if let Some(init) = running {
        init.kill()?;
    }
    // Off means that nothing runs any more: that is what fencing relies on.
    of(lab).ended(lab, node)?;
    Ok(running.is_some())
}

/// Takes away what it holds on this machine, but for its disks. For teardown: errors are found as [`remains`].
pub fn remove(lab: &Lab, node: Node) {
    if let Some(init) = Record::load(&lab.init_record(node)) {
        let _ = init.kill();
    }
    let _ = of(lab).ended(lab, node);
    of(lab).unplug(lab, node);
}

/// What of it is still on this machine.
pub fn remains(lab: &Lab, node: Node) -> Vec<String> {
    of(lab).remains(lab, node)
}

/// `program args` inside the host, in an environment without the machine's proxies.
pub fn command(lab: &Lab, node: Node, words: &[&str]) -> Result<Command> {
    if running(lab, node).is_none() {
        return Err(format!("{node} is switched off; type 'cargo lab on {node}'").into());
    }
    of(lab).command(lab, node, words)
}

pub fn wait_booted(lab: &Lab, node: Node) -> Result<()> {
    of(lab).wait_booted(lab, node)
}

/// Brings a container image into the host's podman.
pub fn import_image(lab: &Lab, node: Node, tar: &Path, name: &str) -> Result<()> {
    of(lab).import_image(lab, node, tar, name)
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

/// What a shell on the host says to a line that is typed, both of its outputs, and the exit code: for what answers by it.
pub fn typed(lab: &Lab, node: Node, line: &str) -> Result<(i32, String)> {
    let text = output(lab, node, &["sh", "-c", &format!("{{ {line}; }} 2>&1; echo \"code $?\"")])?.text();
    let (said, code) = text.trim_end().rsplit_once("code ").ok_or_else(|| format!("no exit code: {text}"))?;
    Ok((code.parse()?, said.trim().to_owned()))
}

/// Writes a file on the host, its directory included.
pub fn put(lab: &Lab, node: Node, path: &str, content: &str) -> Result<()> {
    let mut command = command(lab, node, &["sh", "-c", "mkdir -p \"${0%/*}\" && cat > \"$0\"", path])?;
    sh::feed(&mut command, content).map(drop)
}

/// Runs a program in the host that reads `file`, which lies outside of what the host sees, from its standard input.
pub fn feed(lab: &Lab, node: Node, words: &[&str], file: &Path) -> Result<()> {
    let input = File::open(file).map_err(|error| format!("{}: {error}", file.display()))?;
    let done = command(lab, node, words)?.stdin(input).output()?;
    if done.status.success() {
        return Ok(());
    }
    let complaint = String::from_utf8_lossy(&done.stderr).trim().to_owned();
    Err(format!("{node} does not take {}: {complaint}", file.display()).into())
}

/// A host that runs and answers; for questions that either can answer.
pub fn any_running(lab: &Lab) -> Result<Node> {
    NODES
        .into_iter()
        .find(|node| running(lab, *node).is_some())
        .ok_or_else(|| "both nodes are switched off; type 'cargo lab on node1'".into())
}

/// Takes the files of `dir`, below `/var/lib`, whose names begin with `prefix` off the host, and answers what they held, the
/// longest name first.
pub fn take_files(lab: &Lab, node: Node, dir: &str, prefix: &str) -> Result<Vec<u8>> {
    of(lab).take_files(lab, node, dir, prefix)
}
