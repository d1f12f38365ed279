//! `tandem status` about a BMC that could not fence its node: it refuses the password, hangs, is unreachable, belongs
//! to another machine, or reports Off for a running node. Meanwhile etcd takes writes, and no node is fenced.

use std::time::Duration;

use crate::cluster;
use crate::cluster::asked::{Answer, DEGRADED, REDUNDANT, answers, ask, row};
use crate::cluster::collector;
use crate::cluster::etcd;
use crate::cluster::up::Wish;
use crate::host;
use crate::host::bmc;
use crate::host::node::{NODES, Node};
use crate::host::state::Lab;
use crate::judge::check::{self, must};
use crate::scenarios::steps;
use crate::sh::Result;

/// The time-out until a fence device's failure is known. A monitor and a start of the device may take Pacemaker's
/// twenty seconds each, on either node.
const FOUND_OUT: Duration = Duration::from_secs(150);
/// The modes of a BMC in which it does not execute requests.
const FAILING: [&str; 3] = ["refuse", "hang", "unreachable"];
/// The modes of a BMC in which its reports must not be believed, each with the problem that `tandem status` reports.
const STRANGE: [(&str, &str); 2] = [("stranger", "bmc-other-machine"), ("says-off", "bmc-says-off")];

pub fn run(lab: &Lab, _: Wish) -> Result<()> {
    let leader = etcd::wait_two_voters(lab, Duration::from_secs(60))?.leader;
    crate::cluster::redundant::wait(lab)?;
    let boots = steps::boots(lab);
    let mut writers = crate::scenarios::writing(lab)?;
    for mode in FAILING {
        failing(lab, leader, mode)?;
        well_again(lab, leader.other())?;
    }
    for (mode, problem) in STRANGE {
        strange(lab, leader.other(), mode, problem)?;
        well_again(lab, leader.other())?;
    }
    collector::forget(lab)?;
    steps::nobody_was_fenced(lab, boots)?;
    crate::scenarios::ends_well(lab, &mut writers)
}

/// Makes Pacemaker run a monitor of the fence device of `node` at once.
fn monitored(lab: &Lab, node: Node) -> Result<()> {
    let device = cluster::fence_device(node);
    host::must(lab, node, &["crm_resource", "--refresh", "--resource", &device]).map(drop)
}

/// Checks that `tandem status` reports a fence device that fails in the BMC's mode `mode`. It must report the failure from then on, both
/// while Pacemaker tries to start the device and between these tries.
fn failing(lab: &Lab, leader: Node, mode: &str) -> Result<()> {
    const TRIES: usize = 60;
    let node = leader.other();
    bmc::set_mode(lab, node, mode)?;
    monitored(lab, node)?;
    let fails =
        |answer: &Result<Answer>| answer.as_ref().is_ok_and(|answer| answer.is(DEGRADED, Some("fence-device-failed")));
    check::within(FOUND_OUT, &format!("a BMC that does '{mode}' is told"), || ask(lab, leader), fails)??;
    for _ in 0..TRIES {
        let answer = answers(lab, leader, &format!("while the BMC does '{mode}'"))?;
        must("a device that failed is not well before it runs", answer, |answer| {
            answer.is(DEGRADED, Some("fence-device-failed"))
        })?;
        std::thread::sleep(Duration::from_millis(250));
    }
    Ok(())
}

/// Checks that `tandem status` reports `problem` for a BMC in the mode `mode`, although Pacemaker considers its fence
/// device healthy.
fn strange(lab: &Lab, node: Node, mode: &str, problem: &str) -> Result<()> {
    bmc::set_mode(lab, node, mode)?;
    monitored(lab, node)?;
    let told = || {
        collector::collect(lab)?;
        ask(lab, node)
    };
    check::eventually(&format!("a BMC that does '{mode}' is told"), told, |answer| {
        answer.as_ref().is_ok_and(|answer| answer.is(DEGRADED, Some(problem)))
    })??;
    NODES.into_iter().try_for_each(|on| row(lab, on, DEGRADED, Some(problem), &[]))
}

fn well_again(lab: &Lab, node: Node) -> Result<()> {
    bmc::set_mode(lab, node, "ok")?;
    monitored(lab, node)?;
    let clean = cluster::wait_clean(lab)?;
    must("Pacemaker has nothing to complain of", clean, Vec::is_empty)?;
    let told = || {
        collector::collect(lab)?;
        ask(lab, node)
    };
    check::eventually("and neither has the status", told, |answer| {
        answer.as_ref().is_ok_and(|answer| answer.is(REDUNDANT, None))
    })??;
    NODES.into_iter().try_for_each(|on| row(lab, on, REDUNDANT, None, &[]))
}
