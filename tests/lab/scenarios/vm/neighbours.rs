//! A virtual machine's neighbours in its group of fencing agents: two more agents, on the lab's client.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use crate::host::net;
use crate::host::node::Node;
use crate::host::state::Lab;
use crate::host::tls;
use crate::programs;
use crate::sh::{self, Result};

/// The key of a group of fencing agents. It is public, because other machines cannot reach the group.
const KEY: &str = "a key of the lab, and of nothing else\n";
const NAMES: [&str; 2] = ["left", "right"];

/// The fencing agents on the lab's client that form a group with a virtual machine's agent. Dropping this value kills
/// them.
#[derive(Debug)]
pub(super) struct Neighbours {
    children: Vec<Child>,
}

impl Drop for Neighbours {
    fn drop(&mut self) {
        for child in &mut self.children {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Neighbours {
    pub(super) fn start(lab: &Lab, of: Node) -> Result<Self> {
        let mut neighbours = Self { children: Vec::new() };
        for (name, address) in NAMES.into_iter().zip(addresses(of)) {
            net::add_client_address(lab, &address)?;
            let dir = dir(lab, of, name);
            for below in ["run", "state"] {
                sh::make_dir(&dir.join(below))?;
            }
            let (config, key, place) = (dir.join("config"), dir.join("key"), dir.display());
            tls::write_secret(&key, KEY.as_bytes())?;
            let head = format!("on_quorum_loss = 'notify'\ndisable_file = '{place}/disable'\n");
            let tail = format!("[grpc]\nsocket = '{place}/socket'\n");
            sh::write(&config, text(of, name, &key.display().to_string(), &head, &tail))?;
            let mut command = Command::new("nsenter");
            command.arg(format!("--net={}", net::client_handle(lab).display())).arg(programs::tested());
            command.arg("fencing-agent").arg("--config").arg(config).arg("--run-dir").arg(dir.join("run"));
            command.arg("--state-dir").arg(dir.join("state")).arg("run").env_remove("JOURNAL_STREAM");
            let log = File::create(dir.join("log"))?;
            neighbours.children.push(command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log).spawn()?);
        }
        Ok(neighbours)
    }

    /// Returns the logs of these fencing agents, for a failure's message.
    pub(super) fn logs(lab: &Lab, of: Node) -> String {
        NAMES.map(|name| fs::read_to_string(dir(lab, of, name).join("log")).unwrap_or_default()).join("\n")
    }
}

/// Returns the configuration and the key of the fencing agent on the virtual machine itself.
pub(super) fn own(of: Node, device: &str) -> (String, &'static str) {
    let tail = format!("[watchdog]\ndevice = '{device}'\n");
    (text(of, of.name(), "/etc/tandem/fencing-agent.key", "", &tail), KEY)
}

/// Returns a fencing agent's configuration. Each virtual machine has a group of its own with three members.
fn text(of: Node, name: &str, key: &str, head: &str, tail: &str) -> String {
    let [left, right] = addresses(of);
    format!(
        "node = '{name}'\ngroup = 'of-{of}'\nkey_file = '{key}'\n{head}[members]\n{of} = '{}'\nleft = '{left}'\nright = '{right}'\n{tail}",
        of.ip()
    )
}

fn addresses(of: Node) -> [String; 2] {
    [0, 1].map(|at| format!("10.99.0.{}", 20 + 2 * of.number() + at))
}

fn dir(lab: &Lab, of: Node, name: &str) -> PathBuf {
    lab.dir().join("neighbours").join(format!("{of}-{name}"))
}
