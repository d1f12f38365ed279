//! etcd dies on one node and cannot be started again: podman's storage is damaged, another program listens on a port,
//! or the OCI runtime is gone. The agent repairs what it can. Otherwise the start is refused with the cause, and can be
//! tried again. A node on which all starts fail lets its peer run standalone.

use std::net::TcpListener;
use std::time::{Duration, Instant};

use nix::sched::{CloneFlags, setns};

use super::steps;
use crate::cluster::etcd;
use crate::cluster::pcs;
use crate::cluster::up::Wish;
use crate::cluster::{self, Failure};
use crate::host;
use crate::host::net;
use crate::host::node::{NODES, Node};
use crate::host::state::Lab;
use crate::judge::check::{eventually, must};
use crate::sh::{self, Result};

/// The exit code for a retry, so that Pacemaker finds the repaired node by itself.
const GENERIC: &str = "1";
/// The end of a reason that was cut.
const CUT: &str = "...";
const PEER_PORT: u16 = 2380;
const RUNTIME: &str = "/usr/sbin/runc";
/// The path to which the runtime is moved, so that it can be moved back.
const AWAY: &str = "/usr/sbin/runc.away";
/// The time for which the runtime stays away after the peer runs standalone.
const MENDED_AFTER: Duration = Duration::from_secs(40);
/// The least number of failures at that time: of a monitor, and of starts that let the peer run standalone.
const LEAST_FAILURES: u32 = 3;
/// The limit for failures: of a monitor, of three quick starts and a started one, and of one start per [`PACE`].
/// Without a pace there are dozens.
const QUICK_FAILURES: u32 = 5;
const PACE: Duration = Duration::from_secs(15);

pub fn run(lab: &Lab, _: Wish) -> Result<()> {
    let node = etcd::wait_two_voters(lab, Duration::from_secs(60))?.leader;
    let members = steps::members(lab)?;
    let logs = NODES.map(|node| steps::log_length(lab, node));
    let mut writers = super::writing(lab)?;

    storage_is_damaged(lab, node)?;
    port_is_taken(lab, node)?;
    steps::same_members(lab, members)?;
    steps::nothing_forced(lab, logs)?;

    without_runtime(lab, node, || etcd::kill(lab, node).and_then(|()| the_peer_goes_on(lab, node)))?;
    comes_back(lab, node)?;
    super::ends_well(lab, &mut writers)
}

/// Runs `work` while `node` cannot start containers.
pub(super) fn without_runtime(lab: &Lab, node: Node, work: impl FnOnce() -> Result<()>) -> Result<()> {
    host::must(lab, node, &["mv", RUNTIME, AWAY])?;
    lab.event(&format!("the OCI runtime of {node} is gone"));
    let done = work();
    host::must(lab, node, &["mv", AWAY, RUNTIME])?;
    lab.event(&format!("the OCI runtime of {node} is back"));
    done
}

/// Checks that a container without its layer is created again.
fn storage_is_damaged(lab: &Lab, node: Node) -> Result<()> {
    let words = ["podman", "inspect", "--format", "{{.GraphDriver.Data.UpperDir}}", cluster::ETCD];
    let upper = host::must(lab, node, &words)?;
    let layer = upper.trim().strip_suffix("/diff").ok_or_else(|| format!("no overlay: {upper}"))?;
    let from = steps::log_length(lab, node);
    let pid = etcd::pid(lab, node).ok_or("no etcd runs")?;
    host::must(lab, node, &["mv", layer, &format!("{layer}.away")])?;
    lab.event(&format!("the container of {node} has lost its layer"));
    host::must(lab, node, &["kill", "-9", &pid])?;
    steps::wait_said(lab, node, from, "is damaged: making it anew", Duration::from_secs(90))?;
    comes_back(lab, node)?;
    host::must(lab, node, &["rm", "-rf", &format!("{layer}.away")]).map(drop)
}

/// Occupies etcd's port with another listener from the moment at which etcd's own is closed.
fn port_is_taken(lab: &Lab, node: Node) -> Result<()> {
    etcd::kill(lab, node)?;
    let listener = listen(lab, node)?;
    lab.event(&format!("another program listens on port {PEER_PORT} of {node}"));
    let said = wait_refused(lab, node, &format!("another program listens on port {PEER_PORT}"));
    drop(listener);
    said?;
    comes_back(lab, node)
}

/// Returns a listening socket in the host's network, once the port is free.
fn listen(lab: &Lab, node: Node) -> Result<TcpListener> {
    let network = std::fs::File::open(net::host_handle(lab, node))?;
    let thread = std::thread::spawn(move || -> Result<TcpListener> {
        setns(network, CloneFlags::CLONE_NEWNET)?;
        sh::wait_for("the port to be free", Duration::from_secs(30), Duration::from_millis(5), || {
            TcpListener::bind(("0.0.0.0", PEER_PORT)).ok()
        })
    });
    thread.join().map_err(|_| "the listener's thread panicked")?
}

/// Checks that its starts report the cause, at a limited rate, while the other node takes writes.
fn the_peer_goes_on(lab: &Lab, node: Node) -> Result<()> {
    let began = Instant::now();
    wait_refused(lab, node, "/usr/sbin/runc")?;
    steps::wait_alone(lab, node.other())?;
    std::thread::sleep(MENDED_AFTER);
    let words = ["crm_failcount", "--query", "--resource", cluster::ETCD, "--node", node.name()];
    let count = || {
        let text = host::said(lab, node.other(), &words);
        text.trim().rsplit_once("value=").and_then(|(_, count)| count.parse::<u32>().ok())
    };
    let failures = eventually("several starts have failed", count, |count| *count >= Some(LEAST_FAILURES))?;
    let most = f64::from(QUICK_FAILURES) + began.elapsed().div_duration_f64(PACE);
    must(&format!("at most {most:.0} starts have failed"), failures, |count| count.map(f64::from) <= Some(most))
        .map(drop)
}

/// Waits until the start of etcd on `node` is refused with `words` and a retriable code, and checks that no etcd runs
/// there.
fn wait_refused(lab: &Lab, node: Node, words: &str) -> Result<()> {
    let tells = |failure: &Failure| failure.action == "etcd_start_0" && failure.reason.contains(words);
    let failure = steps::wait_failure(lab, node.other(), &format!("a start that fails with '{words}'"), tells)?;
    println!("   {failure}");
    if failure.code != GENERIC || failure.reason.ends_with(CUT) {
        return Err(format!("neither retriable nor whole: {failure}").into());
    }
    steps::stays_inert(lab, node, 1)
}

fn comes_back(lab: &Lab, node: Node) -> Result<()> {
    etcd::wait_two_voters(lab, Duration::from_secs(120))?;
    cluster::wait_clean(lab)?;
    pcs::run(lab, node, &["resource", "cleanup", cluster::ETCD])
}
