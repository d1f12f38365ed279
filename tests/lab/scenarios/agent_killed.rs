//! An agent is killed while podman starts etcd for it, as Pacemaker kills an action whose time is over, or a monitor
//! that it cancels before a stop. What it had begun goes on without it: a stop that comes then ends that as well, and
//! does not answer before.

use std::time::Duration;

use super::steps;
use crate::etcd;
use crate::host;
use crate::node::Node;
use crate::pcs;
use crate::sh::{self, Result};
use crate::state::Lab;
use crate::up::Wish;

/// Found before the real one in every search.
const IN_ITS_PLACE: &str = "/usr/sbin/podman";
/// Says that a launch has begun, which then takes its time. What podman warns of goes nowhere: nobody reads it once the
/// agent is gone, and a podman with nothing to warn of does not end by that.
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
/// Longer than a launch takes.
const LAUNCH_IS_OVER_S: u64 = 20;

/// During a start, beside a peer that serves.
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

/// During the recovery of a survivor: what podman starts then is the only voter, and takes writes.
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

/// Once podman launches etcd, its node is put on standby and the agent is killed; the stop that follows must have ended it.
fn killed_and_stopped(lab: &Lab, node: Node, actions: &[&str]) -> Result<()> {
    let launches = || host::must(lab, node, &["test", "-e", LAUNCHES]).is_ok();
    sh::wait_for("etcd to be launched", Duration::from_secs(90), Duration::from_millis(50), || {
        launches().then_some(())
    })?;
    let group = agent(lab, node, actions)?;
    pcs::run(lab, node, &["node", "standby", node.name()])?;
    // With its group, as Pacemaker does.
    host::must(lab, node, &["kill", "-KILL", "--", &format!("-{group}")])?;
    lab.event(&format!("the agent on {node} got SIGKILL while podman launched etcd"));
    steps::wait_stopped(lab, &[node])?;
    lab.event(&format!("the stop of etcd on {node} is answered"));
    steps::stays_inert(lab, node, LAUNCH_IS_OVER_S)
}

/// The process group of the agent's action that is under way.
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
