//! Pacemaker ends on a node in maintenance, as for an update, and etcd runs on. Its machine has left the cluster in good
//! order, and that says nothing of its etcd: the other node may not run standalone for that. And when Pacemaker comes
//! back in the same boot, alone, what etcd was before it ended proves nothing any more: the other node may have gone on
//! since.

use std::time::Duration;

use super::steps::{self, THREE_MONITORS};
use crate::check::{eventually, must};
use crate::cluster;
use crate::etcd;
use crate::host;
use crate::net;
use crate::node::Node;
use crate::pacemaker;
use crate::pcs;
use crate::sh::Result;
use crate::state::Lab;
use crate::up::{self, Wish};
use crate::writer::Writers;

const STAYS: Node = Node::One;
/// Where the work is done.
const SERVICED: Node = Node::Two;

/// The cable is pulled while Pacemaker is away: nobody has confirmed that the other etcd is gone.
pub fn cable_is_pulled(lab: &Lab, _: Wish) -> Result<()> {
    let mut writers = super::writing(lab)?;
    let booted = steps::boots(lab);
    let logs = crate::node::NODES.map(|node| steps::log_length(lab, node));
    let cut_at = ends_and_cable_is_pulled(lab, &writers)?;
    std::thread::sleep(THREE_MONITORS);
    let wrote = steps::who_wrote(&writers, cut_at);
    let forced = steps::nothing_forced(lab, logs);
    net::set_partition(lab, false)?;
    must("no node takes writes beside an etcd that may run", wrote, Vec::is_empty)?;
    forced?;
    pacemaker::begin(lab, SERVICED)?;
    pcs::run(lab, STAYS, &["node", "unmaintenance", SERVICED.name()])?;
    super::ends_well(lab, &mut writers)?;
    steps::nobody_was_fenced(lab, booted)
}

/// The other node runs standalone, by an operator's confirmation if not by itself, takes writes, and dies. Pacemaker
/// comes back alone.
pub fn comes_back_alone(lab: &Lab, wish: Wish) -> Result<()> {
    let mut writers = super::writing(lab)?;
    let cut_at = ends_and_cable_is_pulled(lab, &writers)?;
    // As `pcs stonith confirm` does it, which asks: not to be asked is --force to pcs 0.11, and --yes to 0.12.
    host::must(lab, STAYS, &["stonith_admin", "--confirm", SERVICED.name()])?;
    lab.event(&format!("the operator confirms that {SERVICED} is off, which it is not"));
    eventually("the other node takes writes alone", || steps::who_wrote(&writers, cut_at), |wrote| *wrote == [STAYS])?;
    std::thread::sleep(Duration::from_secs(1));
    // Fencing is to switch nothing on.
    lab.set("boot-delay", "3600")?;
    steps::cut(lab, STAYS)?;
    let died_at = writers.now();
    pacemaker::begin(lab, SERVICED)?;
    steps::grant_quorum(lab, SERVICED)?;
    wait_fenced(lab)?;
    pcs::run(lab, SERVICED, &["node", "unmaintenance", SERVICED.name()])?;
    lab.event("the maintenance is over");
    let served = stays_silent(lab, &writers, died_at);
    net::set_partition(lab, false)?;
    served?;
    steps::on(lab, STAYS, wish.boot_delay)?;
    end_maintenance_again(lab)?;
    super::ends_well(lab, &mut writers)
}

/// Of two CIBs that meet one counts, and in the dead node's the maintenance goes on.
fn end_maintenance_again(lab: &Lab) -> Result<()> {
    up::wait_online(lab)?;
    if cluster::attribute(lab, SERVICED, "forever", "maintenance").is_none() {
        return Ok(());
    }
    pcs::run(lab, STAYS, &["node", "unmaintenance", SERVICED.name()])
}

/// Answers when.
fn ends_and_cable_is_pulled(lab: &Lab, writers: &Writers) -> Result<Duration> {
    pcs::run(lab, STAYS, &["node", "maintenance", SERVICED.name()])?;
    let pid = etcd::pid(lab, SERVICED);
    pacemaker::end(lab, SERVICED)?;
    must("etcd runs on without Pacemaker", etcd::pid(lab, SERVICED), |now| now.is_some() && *now == pid)?;
    net::set_partition(lab, true)?;
    let cut_at = writers.now();
    steps::wait_peer_gone(lab, STAYS)?;
    Ok(cut_at)
}

fn wait_fenced(lab: &Lab) -> Result<()> {
    let history = || host::said(lab, SERVICED, &["stonith_admin", "--history", STAYS.name()]);
    let words = format!("of {STAYS} successful");
    eventually("the dead node is fenced", history, |said| said.contains(&words)).map(drop)
}

/// The node whose Pacemaker came back takes no write: one that the dead node acknowledged is not in its data.
fn stays_silent(lab: &Lab, writers: &Writers, since: Duration) -> Result<()> {
    std::thread::sleep(THREE_MONITORS);
    let wrote = steps::who_wrote(writers, since);
    let serves = etcd::view(lab, SERVICED).is_ok_and(|view| view.reads);
    must("who lacks an acknowledged write does not serve", (wrote, serves), |(wrote, serves)| {
        wrote.is_empty() && !serves
    })
    .map(drop)
}
