//! The shell agent `ocf:heartbeat:podman-etcd` in the lab, for comparisons. It is fetched from Debian unstable's
//! `resource-agents` into the hosts, and never into this repository.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::cluster::etcd;
use crate::cluster::openshift;
use crate::cluster::pcs;
use crate::cluster::sidecar;
use crate::cluster::{self, CloneKind};
use crate::host;
use crate::host::node::{NODES, Node};
use crate::host::state::Lab;
use crate::programs::debian::{self, CACHE};
use crate::sh::{self, Result};

/// The resource agent that manages etcd in a lab.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Agent {
    Tandem,
    Shell,
}

impl Agent {
    pub fn parse(text: &str) -> Result<Self> {
        match text {
            "tandem" => Ok(Self::Tandem),
            "shell" => Ok(Self::Shell),
            other => Err(format!("there is no agent '{other}'; type --agent tandem or --agent shell").into()),
        }
    }

    /// Returns the resource agent of a running lab.
    pub fn of(lab: &Lab) -> Self {
        if lab.setting("agent").as_deref() == Some(Self::Shell.word()) { Self::Shell } else { Self::Tandem }
    }

    pub fn word(self) -> &'static str {
        match self {
            Self::Tandem => "tandem",
            Self::Shell => "shell",
        }
    }
}

/// The path at which Pacemaker finds the agent `ocf:heartbeat:podman-etcd`.
const PLACE: &str = "/usr/lib/ocf/resource.d/heartbeat/podman-etcd";
/// The path of a copy of the shell agent on a host, from which [`put`] installs it again.
const KEPT: &str = "/usr/lib/tandem-lab/podman-etcd";
const SUITE: &str = "unstable";
/// The Debian packages of the shell agent. They include a newer jq with its libraries, because jq of Debian 12 rounds
/// member ids.
const PACKAGES: &[&str] = &["resource-agents", "jq", "libjq1", "libonig5", "libc6"];
/// A script that runs the newer jq with its own loader, because the host's libc is too old for that jq.
const JQ: &str =
    "#!/bin/sh\nexec /usr/lib/tandem-lab/ld.so --library-path /usr/lib/tandem-lab /usr/lib/tandem-lab/jq \"$@\"\n";
/// The programs that the shell agent calls and a host outside of OpenShift lacks. These fakes report no static pod
/// and no API.
const FAKES: &[(&str, &str)] =
    &[("crictl", "#!/bin/sh\nexit 0\n"), ("oc", "#!/bin/sh\nexit 1\n"), ("curl", "#!/bin/sh\nexit 1\n"), ("jq", JQ)];

/// Installs the shell agent and what it needs on a host's disk, before the first boot.
pub fn install(lab: &Lab, node: Node) -> Result<()> {
    let tree = tree()?;
    let usr = lab.disk(node, "usr");
    sh::must(Command::new("cp").args(["--archive", "--no-target-directory"]).arg(tree.join("usr")).arg(&usr))?;
    sh::make_dir(&usr.join("bin"))?;
    for (name, text) in FAKES {
        let path = usr.join("bin").join(name);
        sh::write(&path, text)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
    }
    openshift::install(lab, node)
}

/// Returns the directory with the files of the shell agent's packages for the hosts. The first call makes it.
fn tree() -> Result<PathBuf> {
    let tree = Path::new(CACHE).join("shell-agent");
    if tree.is_dir() {
        return Ok(tree);
    }
    println!("fetching the shell agent from Debian {SUITE}");
    let work = Path::new(CACHE).join(format!("work-shell-agent-{}", std::process::id()));
    sh::make_dir(&work)?;
    let made = assemble(&work, &tree);
    let _ = fs::remove_dir_all(&work);
    made.map_err(|error| format!("cannot fetch the shell agent: {error}"))?;
    Ok(tree)
}

fn assemble(work: &Path, tree: &Path) -> Result<()> {
    debian::unpack(SUITE, PACKAGES, work)?;
    let (unpacked, unfinished) = (work.join("unpacked"), work.join("tree"));
    let ours = unfinished.join("usr/lib/tandem-lab");
    for dir in [&ours, &unfinished.join("usr/lib/ocf/lib"), &unfinished.join("usr/lib/ocf/resource.d/heartbeat")] {
        sh::make_dir(dir)?;
    }
    let ocf = unpacked.join("usr/lib/ocf");
    let library = unfinished.join("usr/lib/ocf/lib/heartbeat");
    sh::must(Command::new("cp").arg("--archive").arg(ocf.join("lib/heartbeat")).arg(library))?;
    let agent = ocf.join("resource.d/heartbeat/podman-etcd");
    fs::copy(&agent, unfinished.join(PLACE.trim_start_matches('/')))?;
    fs::copy(&agent, unfinished.join(KEPT.trim_start_matches('/')))?;
    fs::copy(unpacked.join("usr/bin/jq"), ours.join("jq"))?;
    let libraries = unpacked.join("usr/lib/x86_64-linux-gnu");
    for (name, file) in [
        ("libjq.so.1", "libjq.so.1"),
        ("libonig.so.5", "libonig.so.5"),
        ("libc.so.6", "libc.so.6"),
        ("libm.so.6", "libm.so.6"),
        ("ld-linux-x86-64.so.2", "ld.so"),
    ] {
        fs::copy(libraries.join(name), ours.join(file))?;
    }
    Ok(fs::rename(&unfinished, tree)?)
}

/// Creates a cluster as OpenShift's installer leaves it, with two voters and equal revisions, and hands it to the
/// shell agent. Tandem bootstraps etcd first, in the place of OpenShift's static pods.
pub fn create(lab: &Lab, node: Node) -> Result<()> {
    cluster::create_etcd(lab, node, CloneKind::Plain)?;
    etcd::wait_two_voters(lab, Duration::from_secs(120))?;
    sidecar::write_both(lab)?;
    pcs::run(lab, node, &["resource", "delete", "etcd"])?;
    for node in NODES {
        sh::wait_for("etcd to be handed over", Duration::from_secs(60), Duration::from_millis(300), || {
            etcd::pid(lab, node).is_none().then_some(())
        })?;
        host::must(lab, node, &["podman", "rm", "--force", "--ignore", "etcd"])?;
    }
    create_resource(lab, node)
}

/// Creates the etcd resource with the shell agent as Two Node OpenShift does. The lab has no systemd, and allows no
/// negative OOM score.
fn create_resource(lab: &Lab, node: Node) -> Result<()> {
    let map = format!("node_ip_map={}", NODES.map(|node| format!("{node}:{}", node.ip())).join(";"));
    // The image has no entry point, unlike OpenShift's.
    let options = [&map, "oom=0", "run_cmd=etcd", "meta", "migration-threshold=60"];
    let create = [&["etcd", "ocf:heartbeat:podman-etcd"], &options[..]].concat();
    pcs::create_clone(lab, node, pcs::run, &create, &["clone", "interleave=true", "notify=true"])
}

/// Installs `agent` as `ocf:heartbeat:podman-etcd` on one host. The shell agent is copied from [`KEPT`].
pub fn put(lab: &Lab, node: Node, agent: Agent) -> Result<()> {
    let words = match agent {
        Agent::Tandem => ["ln", "--symbolic", "--force", "/usr/sbin/tandem", PLACE],
        Agent::Shell => ["cp", "--remove-destination", "--preserve", KEPT, PLACE],
    };
    host::must(lab, node, &words)?;
    lab.event(&format!("{node} has the {} agent in place", agent.word()));
    Ok(())
}
