//! Pacemaker ends on a node in maintenance, as for an update, and etcd keeps running. Its machine has left the cluster
//! in good order, which is no proof about its etcd: the other node must not run standalone because of that. Then
//! Pacemaker returns in the same boot, without its peer. The earlier state of etcd is no proof any more, because the
//! other node may have run standalone since.

use std::time::Duration;

use super::steps::{self, THREE_MONITORS};
use crate::cluster;
use crate::cluster::etcd;
use crate::cluster::pacemaker;
use crate::cluster::pcs;
use crate::cluster::up::{self, Wish};
use crate::host;
use crate::host::net;
use crate::host::node::Node;
use crate::host::state::Lab;
use crate::judge::check::{eventually, must};
use crate::load::writer::Writers;
use crate::sh::Result;

const STAYS: Node = Node::One;
/// The node on which Pacemaker ends while the node is in maintenance.
const SERVICED: Node = Node::Two;

/// Parts the nodes while Pacemaker has ended on the serviced node and its etcd runs. The other node must not take
/// writes, because that etcd is not confirmed stopped.
pub fn cable_is_pulled(lab: &Lab, _: Wish) -> Result<()> {
    let mut writers = super::writing(lab)?;
    let booted = steps::boots(lab);
    let logs = crate::host::node::NODES.map(|node| steps::log_length(lab, node));
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

/// Makes the node that is not serviced run standalone by an operator's false confirmation, lets it take writes, and
/// cuts its power. Then Pacemaker returns on the serviced node without its peer. The serviced node must not serve.
pub fn comes_back_alone(lab: &Lab, wish: Wish) -> Result<()> {
    let mut writers = super::writing(lab)?;
    let cut_at = ends_and_cable_is_pulled(lab, &writers)?;
    // This is the effect of `pcs stonith confirm`, which asks. The option that avoids the question is `--force` for pcs
    // 0.11, and `--yes` for 0.12.
    host::must(lab, STAYS, &["stonith_admin", "--confirm", SERVICED.name()])?;
    lab.event(&format!("the operator confirms that {SERVICED} is off, which it is not"));
    eventually("the other node takes writes alone", || steps::who_wrote(&writers, cut_at), |wrote| *wrote == [STAYS])?;
    std::thread::sleep(Duration::from_secs(1));
    // The fence agent must not bring a host back.
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

/// Ends the maintenance a second time if it is back. The CIB of the node that lost power still contains it, and may win when the CIBs of
/// both nodes meet.
fn end_maintenance_again(lab: &Lab) -> Result<()> {
    up::wait_online(lab)?;
    if cluster::attribute(lab, SERVICED, "forever", "maintenance").is_none() {
        return Ok(());
    }
    pcs::run(lab, STAYS, &["node", "unmaintenance", SERVICED.name()])
}

/// Ends Pacemaker on the serviced node and parts the nodes. Returns the time of the partition, since the writers
/// began.
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

/// Checks that the node on which Pacemaker returned takes no write and does not serve. Its data lacks writes that the
/// dead node acknowledged.
fn stays_silent(lab: &Lab, writers: &Writers, since: Duration) -> Result<()> {
    std::thread::sleep(THREE_MONITORS);
    let wrote = steps::who_wrote(writers, since);
    let serves = etcd::view(lab, SERVICED).is_ok_and(|view| view.reads);
    must("who lacks an acknowledged write does not serve", (wrote, serves), |(wrote, serves)| {
        wrote.is_empty() && !serves
    })
    .map(drop)
}
