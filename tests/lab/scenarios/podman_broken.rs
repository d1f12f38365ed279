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

/// The agent's exit code for a failure after which Pacemaker tries again. So Pacemaker starts etcd by itself once the
/// node is repaired.
const GENERIC: &str = "1";
/// The end of an exit reason that was cut because it is too long.
const CUT: &str = "...";
const PEER_PORT: u16 = 2380;
const RUNTIME: &str = "/usr/sbin/runc";
/// The path to which the scenario moves the OCI runtime, so that it can move the runtime back.
const AWAY: &str = "/usr/sbin/runc.away";
/// The time from the moment at which the peer runs standalone until the scenario puts the OCI runtime back.
const MENDED_AFTER: Duration = Duration::from_secs(40);
/// The least number of failed actions after [`MENDED_AFTER`]: a monitor, and the starts before the peer runs
/// standalone.
const LEAST_FAILURES: u32 = 3;
/// The number of failures that are allowed at once: a monitor, three quick starts, and one that has begun. In
/// addition one start per [`PACE`] is allowed. An agent that does not slow down fails dozens of times.
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

/// Runs `work` while `node` has no OCI runtime, and so cannot start containers.
pub(super) fn without_runtime(lab: &Lab, node: Node, work: impl FnOnce() -> Result<()>) -> Result<()> {
    host::must(lab, node, &["mv", RUNTIME, AWAY])?;
    lab.event(&format!("the OCI runtime of {node} is gone"));
    let done = work();
    host::must(lab, node, &["mv", AWAY, RUNTIME])?;
    lab.event(&format!("the OCI runtime of {node} is back"));
    done
}

/// Damages podman's storage of etcd's container. The agent must create the container anew.
fn storage_is_damaged(lab: &Lab, node: Node) -> Result<()> {
    let words = ["podman", "inspect", "--format", "{{.GraphDriver.Data.UpperDir}}", cluster::ETCD];
    let upper = host::must(lab, node, &words)?;
    let layer = upper.trim().strip_suffix("/diff").ok_or_else(|| format!("no overlay: {upper}"))?;
    let from = steps::log_length(lab, node);
    let pid = etcd::pid(lab, node).ok_or("no etcd runs")?;
    host::must(lab, node, &["mv", layer, &format!("{layer}.away")])?;
    lab.event(&format!("the container of {node} has lost its layer"));
    host::must(lab, node, &["kill", "-9", &pid])?;
    steps::wait_said(lab, node, from, "is damaged, and a new container is made", Duration::from_secs(90))?;
    comes_back(lab, node)?;
    host::must(lab, node, &["rm", "-rf", &format!("{layer}.away")]).map(drop)
}

/// Occupies etcd's peer port with another program as soon as etcd has ended. The start must be refused with that
/// reason.
fn port_is_taken(lab: &Lab, node: Node) -> Result<()> {
    etcd::kill(lab, node)?;
    let listener = listen(lab, node)?;
    lab.event(&format!("another program listens on port {PEER_PORT} of {node}"));
    let said = wait_refused(lab, node, &format!("another program listens on port {PEER_PORT}"));
    drop(listener);
    said?;
    comes_back(lab, node)
}

/// Returns a socket that listens on etcd's peer port in the host's network. Waits until the port is free.
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

/// Checks the starts on a node without an OCI runtime. They must report the cause, and fail at a limited rate, while
/// the other node takes writes.
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

/// Waits until a start of etcd on `node` fails with `words` in its exit reason. Pacemaker must try it again, and no
/// etcd may run there.
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
