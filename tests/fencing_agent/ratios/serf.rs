//! Debian's serf on the hosts of the agents.

use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use super::Heard;
use crate::cluster::{Cluster, Node, eventually};
use crate::executable;
use crate::namespaces::program;

const SERF: &str = "target/fencing/serf/usr/bin/serf";
/// The port that serf uses here. Its default, 7946, is also the default of the agents.
const PORT: u16 = 7947;
/// The script that serf runs at each event. It writes a line for each host in the event.
const HANDLER: &str =
    "at=$EPOCHREALTIME\nwhile read -r name rest; do echo \"$at $SERF_EVENT $name\"; done >> \"$HEARD\"";

pub(super) struct Serfs {
    children: Vec<Child>,
    files: Vec<PathBuf>,
    names: Vec<String>,
}

fn serf() -> PathBuf {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(SERF);
    assert!(path.exists(), "{SERF} is missing: type 'tests/fencing_agent/setup'");
    path
}

impl Serfs {
    pub(super) fn start(cluster: &Cluster) -> Self {
        let handler = cluster.dir.path().join("handler");
        executable::script_of("/bin/bash", &handler, HANDLER);
        let files: Vec<PathBuf> = cluster.nodes.iter().map(|node| node.path("serf")).collect();
        let start = |(node, file): (&Node, &PathBuf)| {
            let log = OpenOptions::new().create(true).append(true).open(node.path("serf.log")).unwrap();
            let mut agent = node.inside(serf());
            agent.args(["agent", "-node", &node.name, "-profile=lan", "-log-level=err", "-iface=e0"]);
            agent.arg(format!("-bind=0.0.0.0:{PORT}"));
            agent.arg(format!("-event-handler=member-join,member-failed,member-leave={}", handler.display()));
            agent.env("HEARD", file).stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
            agent.spawn().unwrap()
        };
        let children = cluster.nodes.iter().zip(&files).map(start).collect();
        let names = cluster.nodes.iter().map(|node| node.name.clone()).collect();
        let serfs = Self { children, files, names };
        // `serf join` succeeds with a single answer, and does not join a serf that starts later.
        eventually("serf does not start", || serfs.join() && seen_from(&serfs.names[0]) == serfs.names.len());
        serfs
    }

    /// Makes the serf of the first host reconnect to all others. Otherwise each serf would wait for its own next attempt after a cut.
    pub(super) fn join(&self) -> bool {
        let mut join = program("nsenter");
        join.arg("--net=/run/netns/n1").arg(serf()).args(["join", "-replay=false"]);
        join.args((2..=self.names.len()).map(|at| format!("10.0.0.{at}:{PORT}")));
        join.stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap().success()
    }

    /// Waits until the serf of each host sees `count` hosts.
    pub(super) fn must_see(&mut self, count: usize) {
        for name in &self.names {
            eventually(&format!("the serf of {name} does not see {count} hosts"), || seen_from(name) == count);
        }
    }

    pub(super) fn heard(&self, at: usize) -> Vec<Heard> {
        let text = fs::read_to_string(&self.files[at]).unwrap_or_default();
        let parse = |line: &str| {
            let [at, event, name] = line.split(' ').collect::<Vec<_>>()[..] else { return None };
            let (is_left, name) = (event == "member-failed", name.to_owned());
            Some(Heard { at: at.parse().ok()?, is_left, name, decided: None })
        };
        text.lines().filter_map(parse).collect()
    }

    pub(super) fn ids(&self) -> impl Iterator<Item = u32> {
        self.children.iter().map(Child::id)
    }
}

impl Drop for Serfs {
    fn drop(&mut self) {
        for child in &mut self.children {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Returns the number of hosts that the serf of host `name` reports as alive.
fn seen_from(name: &str) -> usize {
    let mut members = program("nsenter");
    members.arg(format!("--net=/run/netns/{name}")).arg(serf()).args(["members", "-status=alive"]);
    String::from_utf8_lossy(&members.output().unwrap().stdout).lines().count()
}
