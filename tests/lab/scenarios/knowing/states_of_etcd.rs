//! `tandem status` about states of etcd and of its node that take time to occur. They are a learner, a disabled
//! resource, a start that fails, a node that is lost and not confirmed off, and a fenced node.

use std::time::{Duration, Instant};

use crate::cluster;
use crate::cluster::asked::{self, Answer, DEGRADED, DOWN, REDUNDANT, ask, row, says};
use crate::cluster::etcd;
use crate::cluster::pcs;
use crate::cluster::up::Wish;
use crate::host;
use crate::host::bmc;
use crate::host::node::{NODES, Node};
use crate::host::state::Lab;
use crate::judge::check::eventually;
use crate::scenarios::{podman_broken, steps};
use crate::sh::Result;

/// The number of joins in which the scenario tries to observe a learner. A learner with a small database votes after
/// a second or two.
const TRIES: usize = 4;

pub fn run(lab: &Lab, wish: Wish) -> Result<()> {
    let leader = etcd::wait_two_voters(lab, Duration::from_secs(60))?.leader;
    let follower = leader.other();
    crate::cluster::redundant::wait(lab)?;
    let mut writers = crate::scenarios::writing(lab)?;
    disabled(lab, leader)?;
    let leader = etcd::wait_two_voters(lab, Duration::from_secs(120))?.leader;
    learner(lab, leader, leader.other())?;
    start_fails(lab, follower.other(), follower)?;
    lost_and_fenced(lab, follower.other(), follower, wish)?;
    etcd::wait_two_voters(lab, Duration::from_secs(180))?;
    cluster::wait_clean(lab)?;
    crate::cluster::redundant::wait(lab)?;
    NODES.into_iter().try_for_each(|node| row(lab, node, REDUNDANT, None, &[]))?;
    crate::scenarios::ends_well(lab, &mut writers)
}

fn disabled(lab: &Lab, leader: Node) -> Result<()> {
    pcs::run(lab, leader, &["resource", "disable", cluster::ETCD_CLONE])?;
    steps::wait_stopped(lab, &NODES)?;
    let mut not_true: Vec<String> = NODES.into_iter().flat_map(asked::etcd_stopped).collect();
    not_true.extend(NODES.map(|node| format!("{node}/Etcd Enabled=Disabled")));
    not_true.sort();
    not_true.dedup();
    let told = NODES.into_iter().try_for_each(|node| row(lab, node, DOWN, Some("resource-disabled"), &not_true));
    pcs::run(lab, leader, &["resource", "enable", cluster::ETCD_CLONE])?;
    told
}

/// Checks that `tandem status` reports a learner while a node joins.
fn learner(lab: &Lab, leader: Node, joins: Node) -> Result<()> {
    let is_told = |answer: &Answer| {
        let named = answer.names("learner-catches-up") || answer.names("learner-lags");
        named && answer.is(DEGRADED, None)
    };
    for _ in 0..TRIES {
        crate::cluster::redundant::wait(lab)?;
        steps::standby(lab, joins, true)?;
        steps::wait_alone(lab, leader)?;
        steps::wait_stopped(lab, &[joins])?;
        steps::standby(lab, joins, false)?;
        let began = Instant::now();
        while etcd::two_voters(lab).is_err() && began.elapsed() < Duration::from_secs(120) {
            let answer = ask(lab, leader)?;
            if is_told(&answer) {
                println!("   a learner is told: {answer:?}");
                return etcd::wait_two_voters(lab, Duration::from_secs(120)).map(drop);
            }
        }
    }
    Err(format!("in {TRIES} joins of {joins} no learner was told").into())
}

/// Checks that `tandem status` reports a failed start on a node without an OCI runtime, which cannot start
/// containers.
fn start_fails(lab: &Lab, stays: Node, fails: Node) -> Result<()> {
    crate::cluster::redundant::wait(lab)?;
    steps::standby(lab, fails, true)?;
    steps::wait_alone(lab, stays)?;
    steps::wait_stopped(lab, &[fails])?;
    podman_broken::without_runtime(lab, fails, || {
        steps::standby(lab, fails, false)?;
        NODES.into_iter().try_for_each(|node| says(lab, node, DEGRADED, Some("start-failed")))
    })?;
    etcd::wait_two_voters(lab, Duration::from_secs(180))?;
    cluster::wait_clean(lab)?;
    pcs::run(lab, stays, &["resource", "cleanup", cluster::ETCD])?;
    crate::cluster::redundant::wait(lab)
}

/// Cuts the power of a node with a BMC that refuses at first, and later works. Checks what `tandem status` reports
/// before and after the node is confirmed off.
fn lost_and_fenced(lab: &Lab, stays: Node, lost: Node, wish: Wish) -> Result<()> {
    // The delay is long enough to observe the state before the machine is back.
    lab.set("boot-delay", "15")?;
    bmc::set_mode(lab, lost, "refuse")?;
    steps::cut(lab, lost)?;
    let unclean = || ask(lab, stays);
    let told = eventually("a node that is lost and not confirmed off is told", unclean, |answer| {
        answer.as_ref().is_ok_and(|answer| answer.is(DOWN, Some("node-unclean")))
    });
    bmc::set_mode(lab, lost, "ok")?;
    println!("   {:?}", told??);
    host::must(lab, stays, &["stonith_admin", "--confirm", lost.name()])?;
    lab.event(&format!("an operator confirms that {lost} is off"));
    let fenced = [asked::etcd_stopped(lost), vec![format!("{lost} Online=Offline")]].concat();
    row(lab, stays, DEGRADED, Some("node-offline"), &fenced)?;
    steps::on(lab, lost, wish.boot_delay)
}
