//! A host that is a virtual machine under QEMU, with a kernel, an init and a disk of its own. A power cut loses data
//! that was not synced. The lab runs programs on it through ssh, over the fencing network.

pub mod disk;
mod guest;
pub mod nbd;
mod qemu;
pub mod qmp;
mod tree;

pub use qemu::slower;
pub use tree::of_packages as packages;

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use nix::sys::signal::Signal;

use super::{Host, command, must, running};
use crate::host::disks;
use crate::host::net;
use crate::host::node::Node;
use crate::host::proc::Record;
use crate::host::state::Lab;
use crate::sh::{self, Result};

const PATH: &str = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// The time-out of a virtual machine's boot, which takes one to two minutes of a core.
const BOOTS_WITHIN: Duration = Duration::from_secs(120);

/// Sends `signal` to the process of the virtual machine, and returns that process. SIGSTOP freezes the machine, and SIGCONT has it
/// continue.
pub fn signal(lab: &Lab, node: Node, signal: Signal) -> Result<Record> {
    let machine = running(lab, node).ok_or_else(|| format!("{node} is off"))?;
    machine.signal(signal)?;
    lab.event(&format!("the machine of {node} got {signal}"));
    Ok(machine)
}

pub struct Vm;

impl Host for Vm {
    fn prepare(&self, lab: &Lab) -> Result<()> {
        qemu::check()?;
        make_key(lab)?;
        tree::make(lab)?;
        qemu::choose_accelerator(lab)?;
        sh::wait_longer(slower(lab));
        Ok(())
    }

    fn make_disks(&self, lab: &Lab, node: Node, authkey: &[u8]) -> Result<()> {
        disks::create_for_vm(lab, node, authkey)?;
        disk::make(lab, node)
    }

    fn boot(&self, lab: &Lab, node: Node) -> Result<()> {
        net::plug_in_vm(lab, node)?;
        nbd::start(lab, node)?;
        qemu::start(lab, node)
    }

    fn deaden(&self, lab: &Lab, node: Node) -> Result<()> {
        // A machine that its guest has shut down has no network links any more.
        if running(lab, node).is_some() { net::deaden(lab, node) } else { Ok(()) }
    }

    /// Waits until the servers of the host's disks have ended. A server ends when its only client, the virtual machine, has gone. At its
    /// end it decides which of the last writes are on the disk.
    fn ended(&self, lab: &Lab, node: Node) -> Result<()> {
        leave(lab, node);
        nbd::ended(lab, node)
    }

    fn unplug(&self, lab: &Lab, node: Node) {
        net::unplug(lab, node);
    }

    fn remains(&self, _: &Lab, _: Node) -> Vec<String> {
        Vec::new()
    }

    fn command(&self, lab: &Lab, node: Node, words: &[&str]) -> Result<Command> {
        let mut line = format!("exec env {PATH} LANG=C.UTF-8");
        for word in words {
            line.push_str(&format!(" {}", quoted(word)));
        }
        let mut command = ssh(lab, node);
        if is_a_shell(words) {
            command.arg("-t");
        }
        command.arg(format!("root@{}", node.fence_ip())).arg("--").arg(line);
        Ok(command)
    }

    fn wait_booted(&self, lab: &Lab, node: Node) -> Result<()> {
        sh::wait_for(&format!("{node} to boot"), BOOTS_WITHIN, Duration::from_secs(1), || {
            must(lab, node, &["true"]).ok().map(drop)
        })
    }

    /// Does nothing. A virtual machine has the image already, because its disk is made of a tree that contains it.
    fn import_image(&self, _: &Lab, _: Node, _: &Path, _: &str) -> Result<()> {
        Ok(())
    }

    fn take_files(&self, lab: &Lab, node: Node, dir: &str, prefix: &str) -> Result<Vec<u8>> {
        const TAKE: &str = "cd \"/var/lib/$1\" 2>/dev/null || exit 0
            taken=$(mktemp -d /run/lab-taken-XXXXXX)
            for file in \"$2\"*; do [ ! -e \"$file\" ] || mv \"$file\" \"$taken\"; done
            for file in $(ls -r \"$taken\"); do cat \"$taken/$file\"; done
            rm -r \"$taken\"";
        let done = command(lab, node, &["sh", "-c", TAKE, "sh", dir, prefix])?.stdin(Stdio::null()).output()?;
        if done.status.success() {
            return Ok(done.stdout);
        }
        Err(format!("{node} does not give its {dir}: {}", String::from_utf8_lossy(&done.stderr).trim()).into())
    }
}

/// Returns whether `words` start an interactive shell.
fn is_a_shell(words: &[&str]) -> bool {
    words == ["bash", "--login"]
}

/// Returns an ssh client, on the switch, that shares one persistent connection to the host. A new connection would
/// cost an emulated machine seconds.
fn ssh(lab: &Lab, node: Node) -> Command {
    let mut command = Command::new("nsenter");
    command
        .arg(format!("--net={}", net::switch_handle(lab).display()))
        .args(["ssh", "-q", "-F", "none", "-i"])
        .arg(lab.pki().join("ssh"))
        .args(["-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-o", "ConnectTimeout=30"])
        .args(["-o", "ServerAliveInterval=20", "-o", "ServerAliveCountMax=6"])
        .args(["-o", "ControlMaster=auto", "-o", "ControlPersist=yes"])
        .arg("-o")
        .arg(format!("ControlPath={}", lab.node_dir(node).join("ssh").display()));
    command
}

/// Closes the persistent ssh connection to a host. Its virtual machine may be gone already.
fn leave(lab: &Lab, node: Node) {
    if lab.node_dir(node).join("ssh").exists() {
        let _ = sh::output(ssh(lab, node).args(["-O", "exit", &node.fence_ip()]));
    }
}

fn make_key(lab: &Lab) -> Result<()> {
    let key = lab.pki().join("ssh");
    sh::must(Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-C", "tandem-lab", "-f"]).arg(key))
        .map(drop)
}

/// Quotes a word for a shell.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Returns the record of the process with the id in the file `pidfile`.
fn record(pidfile: &Path) -> Result<Record> {
    let pid = std::fs::read_to_string(pidfile).map_err(|error| format!("{}: {error}", pidfile.display()))?;
    Record::of(pid.trim().parse()?)
}
