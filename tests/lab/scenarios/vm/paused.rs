//! A machine that stands still and goes on as if nothing had been, as one does whose hypervisor is busy or migrates it.

use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::{roles, struck_until_fenced, two_voters};
use crate::bmc;
use crate::cluster;
use crate::host;
use crate::node::Node;
use crate::scenarios::steps;
use crate::sh::{self, Result};
use crate::state::Lab;
use crate::up::Wish;

/// Twice as long as a node may take that would go on alone.
const LOOKED_AT: Duration = Duration::from_secs(12);

/// Nothing fences it: its BMC is away. It wakes up beside a peer that waits for fencing, and nobody has gone on alone.
pub fn not_fenced(lab: &Lab, _: Wish) -> Result<()> {
    let mut writers = crate::scenarios::writing(lab)?;
    let (leader, follower) = roles(lab)?;
    crate::redundant::wait(lab)?;
    bmc::set_mode(lab, leader, "unreachable")?;
    signal(lab, leader, Signal::SIGSTOP)?;
    steps::wait_peer_gone(lab, follower)?;
    steps::nobody_writes(&writers, sh::patience(LOOKED_AT))?;
    signal(lab, leader, Signal::SIGCONT)?;
    bmc::set_mode(lab, leader, "ok")?;
    // Who fences whom now is Pacemaker's affair; the device that failed is asked again once somebody says so.
    let device = cluster::fence_device(leader);
    host::must(lab, follower, &["crm_resource", "--cleanup", "--resource", &device])?;
    two_voters(lab)?;
    crate::scenarios::ends_well(lab, &mut writers)
}

/// It is fenced while it stands still: what its etcd had on its way to clients never comes.
pub fn fenced(lab: &Lab, _: Wish) -> Result<()> {
    struck_until_fenced(lab, |leader| signal(lab, leader, Signal::SIGSTOP))
}

/// It stands still for less than Corosync waits: everybody goes on.
pub fn for_a_moment(lab: &Lab, _: Wish) -> Result<()> {
    let mut writers = crate::scenarios::writing(lab)?;
    let cuts = steps::power_cuts(lab);
    let (leader, follower) = roles(lab)?;
    for node in [leader, follower] {
        signal(lab, node, Signal::SIGSTOP)?;
        std::thread::sleep(Duration::from_secs(5));
        signal(lab, node, Signal::SIGCONT)?;
        steps::wait_write(&writers, Duration::from_secs(60))?;
    }
    two_voters(lab)?;
    crate::check::must("nobody was fenced", steps::power_cuts(lab), |now| *now == cuts)?;
    crate::scenarios::ends_well(lab, &mut writers)
}

fn signal(lab: &Lab, node: Node, signal: Signal) -> Result<()> {
    let machine = host::running(lab, node).ok_or_else(|| format!("{node} is off"))?;
    kill(Pid::from_raw(machine.pid), signal)?;
    lab.event(&format!("the machine of {node} got {signal}"));
    Ok(())
}
