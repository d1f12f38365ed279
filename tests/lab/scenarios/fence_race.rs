//! Both devices race, and none has a delay. The hosts lose each other repeatedly, at random moments of a writing
//! cluster, in both directions or in one, with BMCs that answer late. Exactly one node survives each partition.

use std::time::Duration;

use super::all_returns_at_once::cut_everything;
use super::steps;
use super::table::{Scenario, scenario};
use crate::cluster;
use crate::cluster::etcd;
use crate::cluster::redundant;
use crate::cluster::up::Wish;
use crate::host;
use crate::host::bmc::{self, sessions};
use crate::host::net;
use crate::host::node::{NODES, Node};
use crate::host::power;
use crate::host::state::{self, Lab};
use crate::load::writer::Writers;
use crate::random::Random;
use crate::sh::{self, Result};

/// The number of partitions in the scenario `fence_race`.
const FEW: u64 = 3;
const MANY: u64 = 100;
const SWITCHES: u64 = 20;
/// The time-out from the network cut until a node is fenced. It covers the token, and the longest race with BMCs that
/// take three seconds for each response.
const DECIDED: Duration = Duration::from_secs(150);
/// The longest time for which the network stays cut after a node's reset, to show that the other node is not reset as
/// well.
const SETTLES: Duration = Duration::from_secs(20);
/// The longest delay of a BMC's response that the scenario draws.
const LATEST: Duration = Duration::from_secs(3);
/// The longest outage of a switch that carries both networks. It covers two tries of Pacemaker's fencer.
const OUTAGE: Duration = Duration::from_secs(60);

pub(super) const SCENARIOS: &[Scenario] = &[
    scenario(
        "fence_race",
        "the hosts lose each other three times, and the fence agents race: each time one is left",
        few,
    )
    .nightly(),
    scenario("fence_race_hundred", "the same a hundred times", many).nightly(),
    scenario(
        "fence_race_one_switch",
        "one switch carries all and restarts twenty times: one is fenced at most",
        one_switch,
    )
    .nightly(),
];

fn few(lab: &Lab, _: Wish) -> Result<()> {
    racing(lab, |lab, chance, writers| (0..FEW).try_for_each(|round| partition(lab, chance, writers, round)))
}

fn many(lab: &Lab, _: Wish) -> Result<()> {
    racing(lab, |lab, chance, writers| (0..MANY).try_for_each(|round| partition(lab, chance, writers, round)))
}

fn one_switch(lab: &Lab, _: Wish) -> Result<()> {
    racing(lab, |lab, chance, _| (0..SWITCHES).try_for_each(|round| switch_restarts(lab, chance, round)))
}

fn racing(lab: &Lab, rounds: fn(&Lab, &mut Random, &Writers) -> Result<()>) -> Result<()> {
    cluster::set_race(lab, true)?;
    let mut writers = super::writing(lab)?;
    let done = rounds(lab, &mut steps::chance()?, &writers);
    for node in NODES {
        bmc::set_late(lab, node, Duration::ZERO)?;
        sessions::set_taken(lab, node, true)?;
        // The BMCs are restored even after a failure, so that the logs show the consequence.
        bmc::set_mode(lab, node, "ok")?;
    }
    net::set_partition(lab, false)?;
    done?;
    super::ends_well(lab, &mut writers)?;
    cluster::set_race(lab, false)
}

/// The direction in which packets between the hosts are lost.
#[derive(Clone, Copy, Debug)]
enum Cut {
    Both,
    /// The node receives no packets of its peer. The peer still receives the node's packets.
    Deaf(Node),
}

fn partition(lab: &Lab, chance: &mut Random, writers: &Writers, round: u64) -> Result<()> {
    let cut = [Cut::Both, Cut::Deaf(Node::One), Cut::Deaf(Node::Two)][usize::try_from(round % 3)?];
    let late = NODES.map(|_| if chance.below(2) == 0 { Duration::ZERO } else { chance.up_to(LATEST) });
    // One BMC in ten offers no list of sessions.
    let without = (chance.below(10) == 0).then(|| NODES[usize::from(chance.below(2) == 1)]);
    for (node, late) in NODES.into_iter().zip(late) {
        bmc::set_late(lab, node, late)?;
        sessions::set_taken(lab, node, without != Some(node))?;
    }
    // A node that has voted for less than a second has not announced that, and refuses as a survivor.
    redundant::wait(lab)?;
    std::thread::sleep(chance.up_to(LATEST));
    let (before, began) = (steps::power_cuts(lab), state::since_epoch());
    set_cut(lab, cut, true)?;
    let survivor = sh::wait_for("one node to be reset", DECIDED, Duration::from_millis(50), || {
        (steps::power_cuts(lab) > before).then(|| NODES.into_iter().find(|node| is_well(lab, *node))).flatten()
    })?;
    let seconds = state::since_epoch().saturating_sub(began).as_secs_f64();
    let reset_at = writers.now();
    let first = steps::wait_write(writers, DECIDED)?;
    if first != survivor {
        return Err(format!("{survivor} is left, but {first} took the first write").into());
    }
    let waited = writers.now().saturating_sub(reset_at);
    std::thread::sleep(chance.up_to(SETTLES));
    set_cut(lab, cut, false)?;
    steps::nobody_is_wanted_dead(lab)?;
    etcd::wait_two_voters(lab, Duration::from_secs(180))?;
    let cuts = steps::power_cuts(lab) - before;
    println!(
        "   {}: {cut:?}, BMCs {} and {} ms late, {without:?} without sessions: {} reset after {seconds:.1} s, write {:.1} s later",
        round + 1,
        late[0].as_millis(),
        late[1].as_millis(),
        survivor.other(),
        waited.as_secs_f64(),
    );
    if cuts == 1 { Ok(()) } else { Err(format!("{cuts} resets in one partition").into()) }
}

fn is_well(lab: &Lab, node: Node) -> bool {
    power::is_on(lab, node) && host::running(lab, node).is_some() && etcd::pid(lab, node).is_some()
}

fn set_cut(lab: &Lab, cut: Cut, on: bool) -> Result<()> {
    let deaf = match cut {
        Cut::Both => return net::set_partition(lab, on),
        Cut::Deaf(node) => node,
    };
    lab.event(&format!("{deaf} hears {}: {}", deaf.other(), if on { "nothing" } else { "again" }));
    let verb = if on { "--insert" } else { "--delete" };
    let rule = ["iptables", verb, "INPUT", "--source", &deaf.other().ip(), "--jump", "DROP"];
    let done = host::must(lab, deaf, &rule);
    // A reset removes the rule.
    if on { done.map(drop) } else { Ok(()) }
}

/// Restarts a switch that carries all networks. The hosts lose each other and both BMCs, and get all of them back at
/// the same moment.
fn switch_restarts(lab: &Lab, chance: &mut Random, round: u64) -> Result<()> {
    let before = steps::power_cuts(lab);
    let outage = Duration::from_secs(3) + chance.up_to(OUTAGE);
    cut_everything(lab, true)?;
    std::thread::sleep(outage);
    cut_everything(lab, false)?;
    steps::nobody_is_wanted_dead(lab)?;
    etcd::wait_two_voters(lab, Duration::from_secs(240))?;
    let cuts = steps::power_cuts(lab) - before;
    println!("   {}: away for {:.1} s, {cuts} reset", round + 1, outage.as_secs_f64());
    if cuts <= 1 { Ok(()) } else { Err(format!("{cuts} resets, where both nodes were well").into()) }
}
