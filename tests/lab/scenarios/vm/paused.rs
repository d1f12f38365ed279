//! A machine that freezes and resumes unaware of it, as one does under a hypervisor that is busy or migrates it.

use std::time::Duration;

use nix::sys::signal::Signal;

use super::{roles, struck_until_fenced, two_voters};
use crate::cluster;
use crate::cluster::up::Wish;
use crate::host;
use crate::host::bmc;
use crate::host::state::Lab;
use crate::host::vm::signal;
use crate::scenarios::steps;
use crate::sh::{self, Result};

/// The time for which a node is observed. It is twice the time after which it would run standalone.
const LOOKED_AT: Duration = Duration::from_secs(12);

/// Freezes a node that cannot be fenced, because its BMC is unreachable. Its peer must wait for the fencing and take
/// no write. Then the node resumes, and both vote again.
pub fn not_fenced(lab: &Lab, _: Wish) -> Result<()> {
    let mut writers = crate::scenarios::writing(lab)?;
    let (leader, follower) = roles(lab)?;
    crate::cluster::redundant::wait(lab)?;
    bmc::set_mode(lab, leader, "unreachable")?;
    signal(lab, leader, Signal::SIGSTOP)?;
    steps::wait_peer_gone(lab, follower)?;
    steps::nobody_writes(&writers, sh::patience(LOOKED_AT))?;
    signal(lab, leader, Signal::SIGCONT)?;
    bmc::set_mode(lab, leader, "ok")?;
    // Which node Pacemaker fences now is its own decision. It uses the failed device again after a clean-up.
    let device = cluster::fence_device(leader);
    host::must(lab, follower, &["crm_resource", "--cleanup", "--resource", &device])?;
    two_voters(lab)?;
    crate::scenarios::ends_well(lab, &mut writers)
}

/// Freezes a node until it is fenced. Responses of its etcd that were in flight never arrive. No acknowledged write
/// may be lost.
pub fn fenced(lab: &Lab, _: Wish) -> Result<()> {
    struck_until_fenced(lab, |leader| signal(lab, leader, Signal::SIGSTOP).map(drop))
}

/// Freezes each node for less than Corosync's token time-out. Both must continue, and no node may be fenced.
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
    crate::judge::check::must("nobody was fenced", steps::power_cuts(lab), |now| *now == cuts)?;
    crate::scenarios::ends_well(lab, &mut writers)
}
