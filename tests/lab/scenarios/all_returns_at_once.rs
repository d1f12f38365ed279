//! One switch carries all networks and restarts. The hosts lose each other and both BMCs, and get all of them back at
//! the same moment, while each tries to fence the other. If both tries were executed, both machines would be off, with
//! no node to switch them on. At most one node is fenced, no agent forces without need, and the cluster recovers
//! without an operator.

use std::time::Duration;

use super::steps;
use crate::cluster;
use crate::cluster::pcs;
use crate::cluster::up::Wish;
use crate::host::bmc;
use crate::host::net;
use crate::host::node::{NODES, Node};
use crate::host::state::{self, Lab};
use crate::sh::{self, Result};

/// The delays of the fence devices in the README. They differ by so much that a fenced node is off before it tries again to fence its
/// peer.
const DELAYS: [&str; 2] = ["10s", "1s"];
/// The time that a BMC takes to switch a server off.
const OFF_TAKES: Duration = Duration::from_secs(4);
/// The two tries of a fence agent, in seconds since the device's delay at the fencer ended. Each range is the middle
/// of a try.
const KNOCKING: [std::ops::Range<u64>; 2] = [2..9, 13..20];

pub fn run(lab: &Lab, _: Wish) -> Result<()> {
    set_delays(lab, DELAYS)?;
    bmc::set_off_takes(lab, OFF_TAKES)?;
    let done = outage(lab);
    bmc::set_off_takes(lab, Duration::ZERO)?;
    done?;
    set_delays(lab, cluster::FENCING_DELAYS)
}

fn set_delays(lab: &Lab, delays: [&str; 2]) -> Result<()> {
    NODES.into_iter().zip(delays).try_for_each(|(target, delay)| {
        let device = cluster::fence_device(target);
        pcs::run(lab, target, &["stonith", "update", &device, &format!("pcmk_delay_base={delay}")])
    })
}

fn outage(lab: &Lab) -> Result<()> {
    let logs = NODES.map(|node| steps::log_length(lab, node));
    let began = state::since_epoch();
    let mut writers = super::writing(lab)?;
    cut_everything(lab, true)?;
    let both = sh::wait_for("both to try fencing", Duration::from_secs(180), Duration::from_millis(100), || {
        NODES.iter().zip(logs).all(|(node, from)| knocks(lab, *node, from, began)).then_some(())
    });
    let quiet = both.and_then(|()| steps::nothing_forced(lab, logs));
    let before = steps::power_cuts(lab);
    cut_everything(lab, false)?;
    quiet?;
    // A try may still wait for its delay, although the nodes are connected again.
    steps::nobody_is_wanted_dead(lab)?;
    super::ends_well(lab, &mut writers)?;
    let cuts = steps::power_cuts(lab) - before;
    println!("   {cuts} of the nodes fenced");
    if cuts <= 1 { Ok(()) } else { Err(format!("{cuts} power cuts, where both nodes were well").into()) }
}

/// Disconnects the hosts from each other and from both BMCs if `on` is true. Otherwise reconnects all of them.
pub(super) fn cut_everything(lab: &Lab, on: bool) -> Result<()> {
    net::set_partition(lab, on)?;
    NODES.into_iter().try_for_each(|node| bmc::set_mode(lab, node, if on { "unreachable" } else { "ok" }))
}

/// Returns whether the fence agent of `node` is in the middle of a try to fence its peer, after the device's delay at
/// the fencer.
fn knocks(lab: &Lab, node: Node, from: usize, began: Duration) -> bool {
    let log = steps::said(lab, node, from);
    let last = log.lines().rfind(|line| line.contains("pacemaker-fenced") && line.contains("'reboot' "));
    let Some((stamp, text)) = last.and_then(|line| line.split_once(' ')) else { return false };
    let delay = text.contains("Delaying").then(|| text.trim().rsplit_once(" for ")?.1.strip_suffix('s')?.parse().ok());
    let Some(delay) = delay.flatten().map(Duration::from_secs) else { return false };
    let age = state::since_epoch().saturating_sub(began).saturating_sub(state::since_stamp(stamp, began));
    age.checked_sub(delay).is_some_and(|since| KNOCKING.iter().any(|range| range.contains(&since.as_secs())))
}
