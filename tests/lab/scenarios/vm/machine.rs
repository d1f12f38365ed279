//! A kernel panic, a watchdog that is no longer fed, and machines that systemd shuts down or reboots.

use std::process::Stdio;
use std::time::{Duration, Instant};

use super::{roles, struck_until_fenced, two_voters, two_voters_since};
use crate::cluster::up::Wish;
use crate::host;
use crate::host::node::{NODES, Node};
use crate::host::power;
use crate::host::state::Lab;
use crate::judge::check;
use crate::scenarios::steps;
use crate::sh::{self, Result};

/// The time-out for a shutdown, in which Pacemaker stops etcd, and for the boot that follows.
const SHUTDOWN: Duration = Duration::from_secs(120);

/// Panics the leader's kernel. The machine then halts with its network cards, and only fencing ends that. The other
/// node must run standalone, and no acknowledged write may be lost.
pub fn kernel_panic(lab: &Lab, _: Wish) -> Result<()> {
    struck_until_fenced(lab, |leader| {
        order(lab, leader, "echo 1 > /proc/sys/kernel/sysrq; echo c > /proc/sysrq-trigger")?;
        lab.event(&format!("the kernel of {leader} panics"));
        Ok(())
    })
}

/// Stops feeding the leader's watchdog. The machine resets itself, and comes back before or after it is fenced. No
/// acknowledged write may be lost.
pub fn watchdog(lab: &Lab, _: Wish) -> Result<()> {
    let mut writers = crate::scenarios::writing(lab)?;
    let (leader, _) = roles(lab)?;
    crate::cluster::redundant::wait(lab)?;
    let boot = boot_id(lab, leader)?;
    // The device is opened and never fed again. Its holder is stopped, so that the device is not closed in good order.
    order(lab, leader, "setsid sh -c 'exec 3> /dev/watchdog0; kill -STOP $$' < /dev/null > /dev/null 2>&1 &")?;
    lab.event(&format!("nobody feeds the watchdog of {leader}"));
    let struck = Instant::now();
    booted_anew(lab, leader, &boot)?;
    two_voters_since(lab, struck)?;
    crate::scenarios::ends_well(lab, &mut writers)
}

/// Reboots one node, then the other one, and then both at once. etcd must leave in good order, and no node may be
/// fenced.
pub fn reboots(lab: &Lab, _: Wish) -> Result<()> {
    let mut writers = crate::scenarios::writing(lab)?;
    let resets = steps::resets_asked(lab);
    for node in NODES {
        crate::cluster::redundant::wait(lab)?;
        let boot = boot_id(lab, node)?;
        let asked = Instant::now();
        order(lab, node, "systemctl reboot")?;
        booted_anew(lab, node, &boot)?;
        two_voters_since(lab, asked)?;
    }
    crate::cluster::redundant::wait(lab)?;
    let boots = [boot_id(lab, NODES[0])?, boot_id(lab, NODES[1])?];
    let asked = Instant::now();
    for node in NODES {
        order(lab, node, "systemctl reboot")?;
    }
    for (node, boot) in NODES.into_iter().zip(&boots) {
        booted_anew(lab, node, boot)?;
    }
    two_voters_since(lab, asked)?;
    nobody_was_fenced_since(lab, resets)?;
    crate::scenarios::ends_well(lab, &mut writers)
}

/// Shuts one node down and switches it on later. Then does the same with both nodes at once.
pub fn shutdowns(lab: &Lab, _: Wish) -> Result<()> {
    let mut writers = crate::scenarios::writing(lab)?;
    let (leader, follower) = roles(lab)?;
    let resets = steps::resets_asked(lab);
    order(lab, leader, "systemctl poweroff")?;
    off(lab, leader)?;
    steps::wait_write(&writers, Duration::from_secs(120))?;
    steps::wait_alone(lab, follower)?;
    power::on(lab, leader)?;
    two_voters(lab)?;
    for node in NODES {
        order(lab, node, "systemctl poweroff")?;
    }
    for node in NODES {
        off(lab, node)?;
    }
    for node in NODES {
        power::on(lab, node)?;
    }
    two_voters(lab)?;
    // A node that is off because of fencing has not shut down, and a node that shut down in good order must not be
    // fenced.
    nobody_was_fenced_since(lab, resets)?;
    crate::scenarios::ends_well(lab, &mut writers)
}

fn nobody_was_fenced_since(lab: &Lab, resets: usize) -> Result<()> {
    check::must("nobody was fenced", steps::resets_asked(lab), |now| *now == resets).map(drop)
}

/// Runs a script on a virtual machine that may die before it reports the result.
pub(super) fn order(lab: &Lab, node: Node, script: &str) -> Result<()> {
    let mut command = host::command(lab, node, &["sh", "-c", script])?;
    let mut said = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    let ended = || said.try_wait().is_ok_and(|status| status.is_some());
    if !sh::wait_for_quietly(Duration::from_secs(20), Duration::from_millis(100), ended) {
        said.kill()?;
        said.wait()?;
    }
    Ok(())
}

pub(super) fn boot_id(lab: &Lab, node: Node) -> Result<String> {
    host::must(lab, node, &["timeout", "20", "cat", "/proc/sys/kernel/random/boot_id"])
}

pub(super) fn booted_anew(lab: &Lab, node: Node, before: &str) -> Result<()> {
    let anew = || boot_id(lab, node).is_ok_and(|now| now != before).then_some(());
    sh::wait_for(&format!("{node} to boot anew"), SHUTDOWN, Duration::from_secs(2), anew)
}

fn off(lab: &Lab, node: Node) -> Result<()> {
    let is_off = || host::running(lab, node).is_none().then_some(());
    sh::wait_for(&format!("{node} to shut down"), SHUTDOWN, Duration::from_secs(1), is_off)?;
    lab.event(&format!("{node} has shut down"));
    Ok(())
}
