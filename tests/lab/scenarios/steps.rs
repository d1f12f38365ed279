//! Steps that several scenarios take.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::check;
use crate::cluster::{self, Failure};
use crate::etcd::{self, View};
use crate::host;
use crate::node::{NODES, Node};
use crate::pcs;
use crate::power;
use crate::random::Random;
use crate::sh::{self, Result};
use crate::state::Lab;
use crate::up;
use crate::writer::Writers;

/// A stop's own time, and what a busy cluster takes to begin it.
const STOP_LIMIT: Duration = Duration::from_secs(180);

/// The environment variable that repeats a random run.
const SEED: &str = "LAB_SEED";

/// What chance decides in a scenario: seeded from the environment, else from the clock, and printed, so that a failure can be repeated.
pub(super) fn chance() -> Result<Random> {
    let seed = match std::env::var(SEED) {
        Ok(text) => text.parse().map_err(|_| format!("{SEED}={text} is no number"))?,
        Err(_) => u64::from(SystemTime::now().duration_since(UNIX_EPOCH)?.subsec_nanos()),
    };
    println!("   {SEED}={seed} repeats this");
    Ok(Random::new(seed))
}

/// The member ids of both nodes, in the order of [`NODES`].
pub(super) fn members(lab: &Lab) -> Result<[u64; 2]> {
    Ok([etcd::wait_view(lab, NODES[0])?.member, etcd::wait_view(lab, NODES[1])?.member])
}

/// Fails where a member is another one than before: its data was thrown away without need.
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

/// Takes the cluster out of Pacemaker's hands, or gives it back.
pub(super) fn maintenance(lab: &Lab, on: bool) -> Result<()> {
    pcs::run(lab, Node::One, &["property", "set", &format!("maintenance-mode={on}")])?;
    // Monitors that have begun end first.
    sh::wait_for("Pacemaker to be idle", Duration::from_secs(60), Duration::from_millis(500), || {
        host::must(lab, Node::One, &["crm_resource", "--wait", "--timeout=30s"]).ok().map(drop)
    })
}

/// Waits until `node` is the only voter and takes writes alone; its peer may be listed as a learner by then.
pub(crate) fn wait_alone(lab: &Lab, node: Node) -> Result<View> {
    let is_alone = |view: &Result<View>| view.as_ref().is_ok_and(|view| view.voters.len() == 1 && view.reads);
    let what = format!("{node} is the only voter");
    check::within(Duration::from_secs(120), &what, || etcd::view(lab, node), is_alone)?
}

/// Waits for a write that begins after this moment.
pub(super) fn wait_write(writers: &Writers, limit: Duration) -> Result<Node> {
    let moment = writers.now();
    let first =
        sh::wait_for("an acknowledged write", limit, Duration::from_millis(50), || writers.first_after(moment))?;
    println!("   first write after {:.1} s, by {}", first.ended.saturating_sub(moment).as_secs_f64(), first.node);
    Ok(first.node)
}

/// For this long, nobody acknowledges anything.
pub(super) fn nobody_writes(writers: &Writers, time: Duration) -> Result<()> {
    let moment = writers.now();
    std::thread::sleep(time);
    match writers.first_after(moment) {
        None => Ok(()),
        Some(ack) => Err(format!("{} acknowledged a write that nobody may", ack.node).into()),
    }
}

/// Cuts the power without BMC or button remembering it as wanted: nothing switches the node on but fencing or [`on`].
pub(super) fn cut(lab: &Lab, node: Node) -> Result<()> {
    power::cut(lab, node)
}

/// Switches a node on at once, whatever the lab's boot delay is.
pub(crate) fn on(lab: &Lab, node: Node, delay: u64) -> Result<()> {
    lab.set("boot-delay", "0")?;
    power::on(lab, node)?;
    lab.set("boot-delay", &delay.to_string())
}

/// Waits until Pacemaker on `node` has itself online.
pub(crate) fn wait_pacemaker(lab: &Lab, node: Node) -> Result<()> {
    let what = format!("Pacemaker on {node} has it online");
    let online = || cluster::online(lab, node);
    check::within(Duration::from_secs(120), &what, online, |online| online.contains(&node)).map(drop)
}

/// Waits until the stops of etcd have ended on these nodes, a moment after etcd itself is gone.
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

/// Waits until Pacemaker has etcd stopped on these nodes.
pub(super) fn wait_stop_answered(lab: &Lab, nodes: &[Node]) -> Result<()> {
    let by = host::any_running(lab)?;
    // A stop that is under way is an operation without a result; crm_resource does not always count it as running.
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

/// Waits until Pacemaker is through with etcd on `node`, which is in standby: a start that was on its way when the standby
/// came has a stop after it. As a whole Pacemaker may never rest, where the other node's starts wait for this one.
pub(crate) fn wait_through_with(lab: &Lab, node: Node) -> Result<()> {
    const LOOKS: usize = 10;
    let mut at_rest = 0;
    let what = format!("Pacemaker is through with etcd on {node}");
    sh::wait_for(&what, STOP_LIMIT, Duration::from_millis(300), || {
        at_rest = if cluster::last_is_a_stop(lab, node).unwrap_or(false) { at_rest + 1 } else { 0 };
        (at_rest == LOOKS).then_some(())
    })
}

/// For this long, no etcd answers on `node`.
pub(super) fn stays_inert(lab: &Lab, node: Node, seconds: u64) -> Result<()> {
    for _ in 0..seconds {
        std::thread::sleep(Duration::from_secs(1));
        if etcd::pid(lab, node).is_some() {
            return Err(format!("an etcd runs on {node}, which nobody may have started").into());
        }
    }
    Ok(())
}

/// Waits until Pacemaker, as `by` sees it, shows a failed action that fits.
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

/// Waits until the words stand in the node's own log, after `from` bytes of it.
pub(super) fn wait_said(lab: &Lab, node: Node, from: usize, words: &str, limit: Duration) -> Result<()> {
    let what = format!("{node} to say '{words}'");
    sh::wait_for(&what, limit, Duration::from_millis(30), || said(lab, node, from).contains(words).then_some(()))
        .map_err(|error| {
            let all = said(lab, node, from);
            let last = all.lines().rfind(|line| line.contains("podman-etcd")).unwrap_or("nothing");
            format!("{error}: the last that it said is: {last}").into()
        })
}

/// What the node's log has after `from` bytes.
pub(crate) fn said(lab: &Lab, node: Node, from: usize) -> String {
    // Its last character may be half written.
    let bytes = std::fs::read(lab.messages(node)).unwrap_or_default();
    String::from_utf8_lossy(bytes.get(from..).unwrap_or_default()).into_owned()
}

/// How long the node's log is by now.
pub(crate) fn log_length(lab: &Lab, node: Node) -> usize {
    std::fs::read(lab.messages(node)).unwrap_or_default().len()
}

/// The boots of both nodes by their first process, in the order of [`NODES`].
pub(super) fn boots(lab: &Lab) -> [Option<i32>; 2] {
    NODES.map(|node| host::running(lab, node).map(|init| init.pid))
}

/// How often power was cut in this lab so far, by whomever.
pub(super) fn power_cuts(lab: &Lab) -> usize {
    let events = std::fs::read_to_string(lab.events()).unwrap_or_default();
    events.lines().filter(|line| line.contains("lab: power of ") && line.ends_with(" is cut")).count()
}

/// How often a BMC of this lab was asked for a reset so far. Fencing asks for one of a machine that is off, too; the lab itself, which
/// cuts and boots, asks none.
pub(super) fn resets_asked(lab: &Lab) -> usize {
    let log = std::fs::read_to_string(lab.bmc_log()).unwrap_or_default();
    log.lines().filter(|line| line.contains(": POST ") && line.contains("ComputerSystem.Reset")).count()
}

/// Both nodes are in the boot that they were in before.
pub(super) fn nobody_was_fenced(lab: &Lab, before: [Option<i32>; 2]) -> Result<()> {
    if boots(lab) == before { Ok(()) } else { Err("a node was fenced although both are well".into()) }
}

/// Nothing in any node's log from `from` on tells of a forced new cluster.
pub(super) fn nothing_forced(lab: &Lab, from: [usize; 2]) -> Result<()> {
    for (node, from) in NODES.into_iter().zip(from) {
        if said(lab, node, from).contains("forcing a new cluster") {
            return Err(format!("{node} forced a new cluster without need").into());
        }
    }
    Ok(())
}

/// What 'pcs quorum unblock' does, but for fencing, which is the cluster's own here.
pub(crate) fn grant_quorum(lab: &Lab, node: Node) -> Result<()> {
    host::must(lab, node, &["corosync-cmapctl", "-s", "quorum.cancel_wait_for_all", "u8", "1"])?;
    lab.event(&format!("{node} is granted quorum"));
    Ok(())
}

/// Waits until Pacemaker on `node` has it alone online.
pub(super) fn wait_peer_gone(lab: &Lab, node: Node) -> Result<()> {
    let what = format!("Pacemaker on {node} has its peer not online");
    check::eventually(&what, || cluster::online(lab, node), |online| *online == [node]).map(drop)
}

/// Which nodes acknowledged writes that began after `moment`.
pub(super) fn who_wrote(writers: &Writers, moment: Duration) -> Vec<Node> {
    let acks = writers.acknowledged();
    let wrote = |node: &Node| acks.iter().any(|ack| ack.began > moment && ack.node == *node);
    NODES.into_iter().filter(wrote).collect()
}

/// What an agent would do at its next monitor it has done after three of them.
pub(super) const THREE_MONITORS: Duration = Duration::from_secs(16);

/// A try of fencing that has begun goes on for that long at most, its delay included.
const LAST_TRY: Duration = Duration::from_secs(90);

/// The hosts have each other back, and what fencing was under way has failed.
pub fn nobody_is_wanted_dead(lab: &Lab) -> Result<()> {
    up::wait_online(lab)?;
    let fenced = || NODES.map(|node| cluster::being_fenced(lab, node));
    let nobody =
        |seen: &[Result<Vec<String>>; 2]| seen.iter().all(|seen| matches!(seen, Ok(nodes) if nodes.is_empty()));
    check::within(LAST_TRY, "no fencing is under way", fenced, nobody).map(drop)
}
