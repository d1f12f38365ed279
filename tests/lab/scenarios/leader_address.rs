//! An address and a program follow the leader, by the commands in `docs/operate/address.md`. The lab asks both hosts
//! for the address ten times a second: it is never on both, and soon moves to the leader after each change.

use std::time::{Duration, Instant};

use super::address::{LOST, arrives, blocks, holders, survives_a_cut, survives_a_partition, watched};
use super::steps;
use super::table::{Scenario, scenario};
use crate::cluster::etcd;
use crate::cluster::pcs;
use crate::cluster::up::Wish;
use crate::host;
use crate::host::node::Node;
use crate::host::state::Lab;
use crate::judge::check::{must, within};
use crate::judge::figures;
use crate::load::writer::Writers;
use crate::sh::{self, Result};

const PAGE: &str = include_str!("../../../docs/operate/address.md");
/// The address in the commands of the guide, which the lab replaces with [`ADDRESS`].
const OF_THE_PAGE: &str = "192.0.2.10";
const ADDRESS: &str = "10.99.0.50";
/// The time-out until the floating address is on the leader's node. It counts from a hand-over or a kill.
const FOLLOWS: Duration = Duration::from_secs(10);

pub(super) const SCENARIOS: &[Scenario] = &[scenario(
    "leader_address",
    "an address and a program follow the leader: a hand-over, a kill, a power cut, a partition",
    run,
)
.nightly()];

fn run(lab: &Lab, _: Wish) -> Result<()> {
    let leader = etcd::wait_two_voters(lab, Duration::from_secs(60))?.leader;
    for block in blocks(PAGE).filter(|block| block.contains("etcd-address") || block.contains("create app ")) {
        let commands = block.replace(OF_THE_PAGE, ADDRESS);
        host::must(lab, Node::One, &["bash", "-e", "-c", &commands])?;
    }
    arrives(lab, ADDRESS, "at first", leader, FOLLOWS)?;
    let mut writers = super::writing(lab)?;
    let watched = watched(lab, ADDRESS, || follows(lab, &writers))?;
    println!("   {} looks at both hosts: on both {} times", watched.looks, watched.on_both);
    must("the address is never on both hosts", watched.on_both, |times| *times == 0)?;
    for resource in ["etcd-address", "app"] {
        pcs::run(lab, Node::One, &["resource", "delete", resource])?;
    }
    super::ends_well(lab, &mut writers)
}

fn follows(lab: &Lab, writers: &Writers) -> Result<()> {
    let voters = || etcd::wait_two_voters(lab, Duration::from_secs(180));
    let leader = voters()?.leader;
    etcd::move_leader(lab, leader, leader.other())?;
    arrives(lab, ADDRESS, "after a hand-over", leader.other(), FOLLOWS)?;
    let runs_app = || host::said(lab, Node::One, &["crm_resource", "--locate", "--resource", "app"]);
    let place = format!(": {}", leader.other());
    within(FOLLOWS, "the program follows", runs_app, |shown| shown.contains(&place))?;

    let victim = voters()?.leader;
    let killed = Instant::now();
    etcd::kill(lab, victim)?;
    steps::wait_write(writers, LOST)?;
    arrives_after_a_kill(lab, killed)?;

    let victim = voters()?.leader;
    survives_a_cut(lab, writers, ADDRESS, victim)?;
    survives_a_partition(lab, writers, ADDRESS)
}

/// Waits until the floating address is on the leader's node and on no other host, and checks how long that took since `killed`.
/// Either node may be elected after the kill.
fn arrives_after_a_kill(lab: &Lab, killed: Instant) -> Result<()> {
    let look = || (etcd::two_voters(lab).ok().map(|voters| voters.leader), holders(lab, ADDRESS));
    let is_there = |(leader, on): &(Option<Node>, Vec<Node>)| leader.is_some_and(|leader| on[..] == [leader]);
    within(FOLLOWS, "the address is on the leader's node after a kill", look, is_there)?;
    let took = killed.elapsed();
    figures::print(format!("after a kill: the address is on the leader's node after {:.1} s", took.as_secs_f64()));
    must("the address follows a kill in time", took, |took| *took <= sh::patience(FOLLOWS)).map(drop)
}
