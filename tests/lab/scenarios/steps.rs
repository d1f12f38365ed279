//! Steps that several scenarios share.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::cluster::etcd::{self, View};
use crate::cluster::pcs;
use crate::cluster::up;
use crate::cluster::{self, Failure};
use crate::host;
use crate::host::node::{NODES, Node};
use crate::host::power;
use crate::host::state::Lab;
use crate::judge::check;
use crate::judge::figures;
use crate::load::writer::Writers;
use crate::random::Random;
use crate::sh::{self, Result};

/// The time-out for a stop of etcd. It includes the time in which a busy cluster begins the stop.
const STOP_LIMIT: Duration = Duration::from_secs(180);

/// The environment variable with the seed that repeats a random run.
const SEED: &str = "LAB_SEED";

/// Returns a random generator, with the seed from [`SEED`] or else from the clock. Prints the seed, so that a failed
/// run can be repeated.
pub(super) fn chance() -> Result<Random> {
    let seed = match std::env::var(SEED) {
        Ok(text) => text.parse().map_err(|_| format!("{SEED}={text} is no number"))?,
        Err(_) => u64::from(SystemTime::now().duration_since(UNIX_EPOCH)?.subsec_nanos()),
    };
    println!("   {SEED}={seed} repeats this");
    Ok(Random::new(seed))
}

/// Returns the etcd member ids of both nodes, in the order of [`NODES`].
pub(super) fn members(lab: &Lab) -> Result<[u64; 2]> {
    Ok([etcd::wait_view(lab, NODES[0])?.member, etcd::wait_view(lab, NODES[1])?.member])
}

/// Fails if a node's etcd member has another id than in `before`, because then its data was discarded without need.
pub(super) fn same_members(lab: &Lab, before: [u64; 2]) -> Result<()> {
    let after = members(lab)?;
    if after == before {
        return Ok(());
    }
    Err(format!("the members were {before:x?} and are {after:x?}: data was thrown away without need").into())
}

pub(crate) fn standby(lab: &Lab, node: Node, on: bool) -> Result<()> {
    let by = host::any_running(lab)?;
    pcs::run(lab, by, &["node", if on { "standby" } else { "unstandby" }, node.name()])
}

/// Puts the cluster into maintenance mode if `on` is true. Otherwise ends the maintenance.
pub(super) fn maintenance(lab: &Lab, on: bool) -> Result<()> {
    pcs::run(lab, Node::One, &["property", "set", &format!("maintenance-mode={on}")])?;
    // Running monitors end first.
    sh::wait_for("Pacemaker to be idle", Duration::from_secs(60), Duration::from_millis(500), || {
        host::must(lab, Node::One, &["crm_resource", "--wait", "--timeout=30s"]).ok().map(drop)
    })
}

/// Waits until `node` is the only voter and takes writes standalone. Its peer may be listed as a learner.
pub(crate) fn wait_alone(lab: &Lab, node: Node) -> Result<View> {
    let is_alone = |view: &Result<View>| view.as_ref().is_ok_and(|view| view.voters.len() == 1 && view.reads);
    let what = format!("{node} is the only voter");
    check::within(Duration::from_secs(120), &what, || etcd::view(lab, node), is_alone)?
}

/// Waits for an acknowledged write that begins after the call. Returns the node that acknowledged it.
pub(super) fn wait_write(writers: &Writers, limit: Duration) -> Result<Node> {
    let moment = writers.now();
    let first =
        sh::wait_for("an acknowledged write", limit, Duration::from_millis(50), || writers.first_after(moment))?;
    let seconds = first.ended.saturating_sub(moment).as_secs_f64();
    figures::print(format!("first write after {seconds:.1} s, by {}", first.node));
    Ok(first.node)
}

/// Checks for the duration `time` that no write is acknowledged.
pub(super) fn nobody_writes(writers: &Writers, time: Duration) -> Result<()> {
    let moment = writers.now();
    std::thread::sleep(time);
    match writers.first_after(moment) {
        None => Ok(()),
        Some(ack) => Err(format!("{} acknowledged a write that nobody may", ack.node).into()),
    }
}

/// Cuts the power of a node. Only fencing or [`on`] switches the node on again.
pub(super) fn cut(lab: &Lab, node: Node) -> Result<()> {
    power::cut(lab, node)
}

/// Switches a node on at once, whatever the boot delay is, and then sets the boot delay to `delay` seconds.
pub(crate) fn on(lab: &Lab, node: Node, delay: u64) -> Result<()> {
    lab.set("boot-delay", "0")?;
    power::on(lab, node)?;
    lab.set("boot-delay", &delay.to_string())
}

/// Waits until Pacemaker on `node` reports itself as online.
pub(crate) fn wait_pacemaker(lab: &Lab, node: Node) -> Result<()> {
    let what = format!("Pacemaker on {node} has it online");
    let online = || cluster::online(lab, node);
    check::within(Duration::from_secs(120), &what, online, |online| online.contains(&node)).map(drop)
}

/// Waits until Pacemaker's stops of etcd on `nodes` have ended. Fails if etcd still runs there.
pub(crate) fn wait_stopped(lab: &Lab, nodes: &[Node]) -> Result<()> {
    wait_stop_answered(lab, nodes)?;
    for node in nodes {
        check::must(
            &format!("no etcd runs on {node} once its stop has ended"),
            etcd::pid(lab, *node),
            Option::is_none,
        )?;
    }
    Ok(())
}

/// Waits until Pacemaker reports etcd as stopped on `nodes`.
pub(super) fn wait_stop_answered(lab: &Lab, nodes: &[Node]) -> Result<()> {
    let by = host::any_running(lab)?;
    // A running stop is an operation without a result. `crm_resource` does not always report it as running.
    let under_way = "//node_state//lrm_rsc_op[@operation='stop'][@op-status='-1']";
    let locate = || {
        let said = host::said(lab, by, &["crm_resource", "--resource", cluster::ETCD, "--locate"]);
        let pending = host::said(lab, by, &["cibadmin", "--query", "--xpath", under_way]);
        if pending.contains("op-status") { format!("{said}\na stop is under way") } else { said }
    };
    let names: Vec<&str> = nodes.iter().map(|node| node.name()).collect();
    let is_stopped = |said: &String| {
        let runs_there = said.split_whitespace().any(|word| names.contains(&word));
        said.contains("resource etcd is") && !runs_there && !said.contains("under way")
    };
    let what = format!("Pacemaker has etcd stopped on {}", names.join(" and "));
    check::within(STOP_LIMIT, &what, locate, is_stopped).map(drop)
}

/// Waits until Pacemaker has finished with etcd on `node`, which is in standby. If a start was pending when the node was put to standby,
/// Pacemaker completes that start and then stops etcd. The wait is for this node only, because Pacemaker as a whole may never be idle
/// while the other node's starts wait for it.
pub(crate) fn wait_through_with(lab: &Lab, node: Node) -> Result<()> {
    const LOOKS: usize = 10;
    let mut at_rest = 0;
    let what = format!("Pacemaker is through with etcd on {node}");
    sh::wait_for(&what, STOP_LIMIT, Duration::from_millis(300), || {
        at_rest = if cluster::last_is_a_stop(lab, node).unwrap_or(false) { at_rest + 1 } else { 0 };
        (at_rest == LOOKS).then_some(())
    })
}

/// Checks for `seconds` that no etcd runs on `node`.
pub(super) fn stays_inert(lab: &Lab, node: Node, seconds: u64) -> Result<()> {
    for _ in 0..seconds {
        std::thread::sleep(Duration::from_secs(1));
        if etcd::pid(lab, node).is_some() {
            return Err(format!("an etcd runs on {node}, which nobody may have started").into());
        }
    }
    Ok(())
}

/// Waits until Pacemaker on `by` shows a failed action that `fits` accepts.
pub(super) fn wait_failure(lab: &Lab, by: Node, what: &str, fits: impl Fn(&Failure) -> bool) -> Result<Failure> {
    let what = format!("Pacemaker shows {what}");
    let find = || {
        let mut all = cluster::failures(lab, by);
        let place = all.iter().position(&fits);
        place.map(|place| all.swap_remove(place)).ok_or(all)
    };
    let found = check::within(Duration::from_secs(150), &what, find, std::result::Result::is_ok)?;
    found.map_err(|_| what.into())
}

/// Waits until the syslog of `node` has `words` after its first `from` bytes.
pub(super) fn wait_said(lab: &Lab, node: Node, from: usize, words: &str, limit: Duration) -> Result<()> {
    let what = format!("{node} to say '{words}'");
    sh::wait_for(&what, limit, Duration::from_millis(30), || said(lab, node, from).contains(words).then_some(()))
        .map_err(|error| {
            let all = said(lab, node, from);
            let last = all.lines().rfind(|line| line.contains("podman-etcd")).unwrap_or("nothing");
            format!("{error}: the last that it said is: {last}").into()
        })
}

/// Returns the syslog of `node` after its first `from` bytes.
pub(crate) fn said(lab: &Lab, node: Node, from: usize) -> String {
    // The last character may be incomplete.
    let bytes = std::fs::read(lab.messages(node)).unwrap_or_default();
    String::from_utf8_lossy(bytes.get(from..).unwrap_or_default()).into_owned()
}

/// Returns the present length in bytes of a node's syslog.
pub(crate) fn log_length(lab: &Lab, node: Node) -> usize {
    std::fs::read(lab.messages(node)).unwrap_or_default().len()
}

/// Returns the pid of each host's first process, in the order of [`NODES`]. A host that boots again gets another one.
/// `None` for a host that is off.
pub(super) fn boots(lab: &Lab) -> [Option<i32>; 2] {
    NODES.map(|node| host::running(lab, node).map(|init| init.pid))
}

/// Returns the number of power cuts in this lab so far, by fencing or by the lab.
pub(super) fn power_cuts(lab: &Lab) -> usize {
    let events = std::fs::read_to_string(lab.events()).unwrap_or_default();
    events.lines().filter(|line| line.contains("lab: power of ") && line.ends_with(" is cut")).count()
}

/// Returns the number of resets that were requested from this lab's BMCs so far. Fencing also requests them for a
/// machine that is off. The lab itself requests none when it cuts or boots a host.
pub(super) fn resets_asked(lab: &Lab) -> usize {
    let log = std::fs::read_to_string(lab.bmc_log()).unwrap_or_default();
    log.lines().filter(|line| line.contains(": POST ") && line.contains("ComputerSystem.Reset")).count()
}

/// Checks that no node has booted since `before`, a result of [`boots`].
pub(super) fn nobody_was_fenced(lab: &Lab, before: [Option<i32>; 2]) -> Result<()> {
    if boots(lab) == before { Ok(()) } else { Err("a node was fenced although both are well".into()) }
}

/// Checks that no node's syslog reports a forced new cluster after its first `from` bytes.
pub(super) fn nothing_forced(lab: &Lab, from: [usize; 2]) -> Result<()> {
    for (node, from) in NODES.into_iter().zip(from) {
        if said(lab, node, from).contains("forcing a new cluster") {
            return Err(format!("{node} forced a new cluster without need").into());
        }
    }
    Ok(())
}

/// Grants quorum to `node` as `pcs quorum unblock` does. It does not fence the other node, because the cluster does
/// that itself here.
pub(crate) fn grant_quorum(lab: &Lab, node: Node) -> Result<()> {
    host::must(lab, node, &["corosync-cmapctl", "-s", "quorum.cancel_wait_for_all", "u8", "1"])?;
    lab.event(&format!("{node} is granted quorum"));
    Ok(())
}

/// Waits until Pacemaker on `node` reports only itself as online.
pub(super) fn wait_peer_gone(lab: &Lab, node: Node) -> Result<()> {
    let what = format!("Pacemaker on {node} has its peer not online");
    check::eventually(&what, || cluster::online(lab, node), |online| *online == [node]).map(drop)
}

/// Returns the nodes that acknowledged a write that began after `moment`.
pub(super) fn who_wrote(writers: &Writers, moment: Duration) -> Vec<Node> {
    let acks = writers.acknowledged();
    let wrote = |node: &Node| acks.iter().any(|ack| ack.began > moment && ack.node == *node);
    NODES.into_iter().filter(wrote).collect()
}

/// The time in which three monitors run. All that the agent does in a monitor is done after this time.
pub(super) const THREE_MONITORS: Duration = Duration::from_secs(16);

/// The longest time, including the device's delay, that a try of fencing can still take after it has begun.
const LAST_TRY: Duration = Duration::from_secs(90);

/// Waits until the hosts are connected again, and until no fencing is pending.
pub fn nobody_is_wanted_dead(lab: &Lab) -> Result<()> {
    up::wait_online(lab)?;
    let fenced = || NODES.map(|node| cluster::being_fenced(lab, node));
    let nobody =
        |seen: &[Result<Vec<String>>; 2]| seen.iter().all(|seen| matches!(seen, Ok(nodes) if nodes.is_empty()));
    check::within(LAST_TRY, "no fencing is under way", fenced, nobody).map(drop)
}
