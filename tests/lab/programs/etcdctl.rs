//! Debian's `etcdctl` of the lab's etcd release line. It runs at the client's place on the network, with one node's
//! endpoint and the client's certificate, as an operator would type it.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::host::net;
use crate::host::node::Node;
use crate::host::state::Lab;
use crate::programs::debian::CACHE;
use crate::programs::image::{self, Tools, Version};
use crate::sh::{self, Result};

/// etcd's own `etcdctl` with the lab's client certificate and one endpoint.
#[derive(Clone, Debug)]
pub struct Etcdctl {
    program: PathBuf,
    network: PathBuf,
    pki: PathBuf,
    endpoint: String,
}

impl Etcdctl {
    /// Returns an `etcdctl` that uses the endpoint of `node` only.
    pub fn at(lab: &Lab, node: Node) -> Result<Self> {
        let version = Version::parse(&lab.setting("etcd").unwrap_or_default())?;
        Ok(Self {
            program: program(version, Tools::ForTheShellAgent, "etcdctl")?,
            network: net::client_handle(lab),
            pki: lab.pki(),
            endpoint: node.endpoint(),
        })
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new("/usr/bin/nsenter");
        command.arg(format!("--net={}", self.network.display())).arg(&self.program).args(words).env_clear();
        // The credentials are environment variables, so that the arguments are exactly the commands that a guide
        // prints.
        command.env("ETCDCTL_API", "3").env("ETCDCTL_ENDPOINTS", &self.endpoint);
        for (name, file) in [("CACERT", "ca.crt"), ("CERT", "client.crt"), ("KEY", "client.key")] {
            command.env(format!("ETCDCTL_{name}"), self.pki.join(file));
        }
        command
    }

    /// Runs a subcommand of `etcdctl` to its end. A non-zero exit code is an error.
    pub fn must(&self, words: &[&str]) -> Result<String> {
        sh::must(&mut self.command(words))
    }

    /// Returns the revision of etcd's store.
    pub fn revision(&self) -> Result<i64> {
        let answer: Value = serde_json::from_str(&self.must(&["get", "lab/probe", "--write-out=json"])?)?;
        let revision = answer.pointer("/header/revision").and_then(Value::as_i64);
        revision.ok_or_else(|| format!("an answer without a revision: {answer}").into())
    }

    /// Starts a subcommand of `etcdctl` that keeps running, with its output in the file `log`.
    pub fn start(&self, words: &[&str], log: &Path) -> Result<Running> {
        let file = File::create(log).map_err(|error| format!("cannot write {}: {error}", log.display()))?;
        let mut command = self.command(words);
        let child = command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file).spawn()?;
        Ok(Running { child, log: log.to_owned() })
    }
}

/// An `etcdctl` that keeps running. Dropping this value kills it.
#[derive(Debug)]
pub struct Running {
    child: Child,
    log: PathBuf,
}

impl Running {
    /// Returns the output of the running `etcdctl` so far.
    pub fn said(&self) -> String {
        fs::read(&self.log).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
    }

    pub fn goes_on(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Sends SIGINT to the running `etcdctl`, upon which it releases its locks and leases.
    pub fn interrupt(&self) -> Result<()> {
        Ok(kill(Pid::from_raw(i32::try_from(self.child.id())?), Signal::SIGINT)?)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the path of a program from the packages of which the lab makes an etcd image.
pub fn program(version: Version, tools: Tools, name: &str) -> Result<PathBuf> {
    let program = Path::new(CACHE).join(format!("{name}-{}", version.number()));
    if program.is_file() {
        return Ok(program);
    }
    let rootfs = image::rootfs(version, tools)?;
    let unfinished = program.with_extension(format!("new-{}", std::process::id()));
    let mut tar = Command::new("tar");
    tar.args(["--extract", "--to-stdout", "--file"]).arg(rootfs).arg(format!("./usr/bin/{name}"));
    let done = tar.stdout(File::create(&unfinished)?).stderr(Stdio::null()).status()?;
    if !done.success() {
        return Err(format!("the image has no {name}").into());
    }
    fs::set_permissions(&unfinished, std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
    fs::rename(&unfinished, &program)?;
    Ok(program)
}
