//! An agent is killed while podman starts etcd for it. Pacemaker does that to an action that exceeds its time-out, or
//! to a monitor that it cancels before a stop. The launch continues without the agent. A stop that follows ends the
//! launch as well, and answers only then.

use std::time::Duration;

use super::steps;
use crate::cluster::etcd;
use crate::cluster::pcs;
use crate::cluster::up::Wish;
use crate::host;
use crate::host::node::Node;
use crate::host::state::Lab;
use crate::sh::{self, Result};

/// The path of a wrapper of podman, which every search of the path finds before the real podman.
const IN_ITS_PLACE: &str = "/usr/sbin/podman";
/// A wrapper of podman that creates a file when a launch begins, and then delays the launch. It discards podman's
/// warnings, because no program reads them after the agent's end, and an unread warning would end podman.
const SLOW_TO_LAUNCH: &str = "#!/bin/sh
case $1 in
    run|start)
        : > /run/lab-launch
        sleep 15
        exec /usr/bin/podman \"$@\" >/dev/null 2>&1
        ;;
esac
exec /usr/bin/podman \"$@\"
";
const LAUNCHES: &str = "/run/lab-launch";
/// The seconds after which a delayed launch is over.
const LAUNCH_IS_OVER_S: u64 = 20;

/// Kills the agent while it starts etcd on one node and the other node serves.
pub fn while_etcd_starts(lab: &Lab, _: Wish) -> Result<()> {
    let node = etcd::wait_two_voters(lab, Duration::from_secs(60))?.leader.other();
    let mut writers = super::writing(lab)?;
    steps::standby(lab, node, true)?;
    steps::wait_stopped(lab, &[node])?;
    slow_podman(lab, node, true)?;
    steps::standby(lab, node, false)?;
    let stopped = killed_and_stopped(lab, node, &["start"]);
    slow_podman(lab, node, false)?;
    stopped?;
    steps::standby(lab, node, false)?;
    super::ends_well(lab, &mut writers)
}

/// Kills the agent while it makes a survivor run standalone. The etcd that podman is launching would be the only
/// voter, and would take writes.
pub fn while_it_goes_on_alone(lab: &Lab, wish: Wish) -> Result<()> {
    let lost = etcd::wait_two_voters(lab, Duration::from_secs(60))?.leader;
    let survivor = lost.other();
    let mut writers = super::writing(lab)?;
    lab.set("boot-delay", "3600")?;
    slow_podman(lab, survivor, true)?;
    steps::cut(lab, lost)?;
    let stopped = killed_and_stopped(lab, survivor, &["notify", "monitor", "start"]);
    slow_podman(lab, survivor, false)?;
    stopped?;
    steps::standby(lab, survivor, false)?;
    steps::wait_write(&writers, Duration::from_secs(120))?;
    steps::on(lab, lost, wish.boot_delay)?;
    super::ends_well(lab, &mut writers)
}

/// Waits until podman launches etcd on `node`. Then puts the node on standby and kills the agent. Checks that the
/// stop that follows has ended the launch.
fn killed_and_stopped(lab: &Lab, node: Node, actions: &[&str]) -> Result<()> {
    let launches = || host::must(lab, node, &["test", "-e", LAUNCHES]).is_ok();
    sh::wait_for("etcd to be launched", Duration::from_secs(90), Duration::from_millis(50), || {
        launches().then_some(())
    })?;
    let group = agent(lab, node, actions)?;
    pcs::run(lab, node, &["node", "standby", node.name()])?;
    // Pacemaker kills the whole process group, too.
    host::must(lab, node, &["kill", "-KILL", "--", &format!("-{group}")])?;
    lab.event(&format!("the agent on {node} got SIGKILL while podman launched etcd"));
    steps::wait_stopped(lab, &[node])?;
    lab.event(&format!("the stop of etcd on {node} is answered"));
    steps::stays_inert(lab, node, LAUNCH_IS_OVER_S)
}

/// Returns the process group of the agent's running action on `node`, which must be one of `actions`.
fn agent(lab: &Lab, node: Node, actions: &[&str]) -> Result<String> {
    let processes = host::must(lab, node, &["ps", "-e", "-o", "pgid=,args="])?;
    let is_wanted = |command: &str| actions.iter().any(|action| command.ends_with(&format!("/podman-etcd {action}")));
    let lines = processes.lines().filter_map(|line| line.trim().split_once(' '));
    let found = lines.filter(|(_, command)| is_wanted(command)).map(|(group, _)| group.to_owned()).next();
    found.ok_or_else(|| format!("no agent acts on {node}: {processes}").into())
}

fn slow_podman(lab: &Lab, node: Node, slow: bool) -> Result<()> {
    if slow {
        host::put(lab, node, IN_ITS_PLACE, SLOW_TO_LAUNCH)?;
        return host::must(lab, node, &["chmod", "755", IN_ITS_PLACE]).map(drop);
    }
    host::must(lab, node, &["rm", "-f", IN_ITS_PLACE, LAUNCHES]).map(drop)
}
