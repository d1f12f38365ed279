//! Two nodes lose each other while one of them is a learner. The voter holds the only complete data. With
//! `priority-fencing-delay`, Pacemaker lets the node with the promoted instance win, although the fence devices' own
//! delays favour the other one.

use std::time::{Duration, Instant};

use super::needs::Needs;
use super::steps;
use super::table::{Scenario, scenario};
use crate::cluster::etcd;
use crate::cluster::pcs;
use crate::cluster::redundant;
use crate::cluster::up::Wish;
use crate::cluster::{self, ETCD_CLONE};
use crate::host;
use crate::host::net;
use crate::host::node::Node;
use crate::host::state::Lab;
use crate::judge::check::{eventually, must};
use crate::judge::figures;
use crate::judge::story::{Story, StoryStep};
use crate::load::writer::Writers;
use crate::sh::{self, Result};

pub(super) const SCENARIOS: &[Scenario] = &[
    scenario(
        "learner_yields",
        "the hosts lose each other while one is a learner: its fence agent waits, and its voter survives",
        |lab, _| learner_yields(lab, 1),
    )
    .nightly(),
    scenario("learner_yields_ten", "the same ten times", |lab, _| learner_yields(lab, 10)).nightly(),
    scenario(
        "learner_waits_in_vain",
        "the machine of a learner's voter hangs: it is fenced once the learner's fence agent has waited",
        learner_waits_in_vain,
    )
    .nightly(),
    scenario(
        "voter_wins_the_race",
        "the hosts lose each other while one is a learner: its voter survives (priority-fencing-delay)",
        run,
    )
    .nightly()
    .needs(Needs::Promotable),
];

/// The node attribute that makes a node's fence agent wait, so that the other node wins the fencing race.
const FENCE_WAIT: &str = "etcd_fence_wait";
/// The longest time that a promotion takes once it has begun.
const UNDER_WAY: Duration = Duration::from_secs(1);
/// The node that joins as a learner. Without priorities it would win the fencing race, because the device that would
/// fence it has the longer delay.
const LEARNER: Node = Node::One;

fn run(lab: &Lab, _: Wish) -> Result<()> {
    let voter = LEARNER.other();
    pcs::run(lab, voter, &["property", "set", "priority-fencing-delay=10s"])?;
    pcs::run(lab, voter, &["resource", "meta", ETCD_CLONE, "priority=10"])?;
    let mut writers = super::writing(lab)?;
    eventually("the learner is held before it is promoted", || learner_is_held(lab), |held| matches!(held, Ok(true)))??;
    let raced = race(lab, &writers);
    // The network is repaired even after a failure, so that the logs show the consequence.
    net::set_partition(lab, false)?;
    raced?;
    super::ends_well(lab, &mut writers)?;
    pcs::run(lab, voter, &["property", "set", "priority-fencing-delay="])
}

/// Makes the node [`LEARNER`] join anew and freezes its etcd, so that it stays a learner. Returns false if it became
/// a voter before that, as may happen on a busy machine.
fn learner_is_held(lab: &Lab) -> Result<bool> {
    steps::standby(lab, LEARNER, true)?;
    steps::wait_alone(lab, LEARNER.other())?;
    steps::wait_stopped(lab, &[LEARNER])?;
    steps::standby(lab, LEARNER, false)?;
    sh::wait_for("a learner", Duration::from_secs(60), Duration::from_millis(10), || {
        etcd::view(lab, LEARNER).is_ok_and(|view| view.learner).then_some(())
    })?;
    let pid = etcd::pid(lab, LEARNER).ok_or("the learner's etcd is gone")?;
    host::must(lab, LEARNER, &["kill", "-STOP", &pid])?;
    lab.event(&format!("the learner on {LEARNER} got SIGSTOP"));
    // A promotion that was running has completed after this.
    std::thread::sleep(UNDER_WAY);
    let is_held = etcd::view(lab, LEARNER.other()).is_ok_and(|view| view.voters.len() == 1 && view.reads);
    if !is_held {
        host::must(lab, LEARNER, &["kill", "-CONT", &pid])?;
        etcd::wait_two_voters(lab, Duration::from_secs(120))?;
    }
    Ok(is_held)
}

/// Checks the fencing race of a plain clone without any priority, `count` times. The learner's fence agent must wait, so
/// that the learner is fenced.
fn learner_yields(lab: &Lab, count: u32) -> Result<()> {
    let mut writers = super::writing(lab)?;
    for round in 1..=count {
        one_learner_yields(lab, &writers)?;
        println!("   {round} of {count}: {LEARNER}, the learner, was fenced");
    }
    super::ends_well(lab, &mut writers)
}

/// Checks one fencing race between a learner and its voter, and waits until both vote again.
fn one_learner_yields(lab: &Lab, writers: &Writers) -> Result<()> {
    eventually("the learner is held before it is promoted", || learner_is_held(lab), |held| matches!(held, Ok(true)))??;
    let shown = || cluster::attribute(lab, LEARNER, "reboot", FENCE_WAIT);
    eventually("the learner shows how long its fence agent waits", shown, |shown| shown.as_deref() == Some("30"))?;
    let raced = race(lab, writers);
    net::set_partition(lab, false)?;
    raced?;
    steps::nobody_is_wanted_dead(lab)?;
    etcd::wait_two_voters(lab, Duration::from_secs(180))?;
    redundant::wait(lab)?;
    eventually("a voter shows no wait", shown, Option::is_none).map(drop)
}

/// Freezes the voter's machine. The learner's fence agent must wait, and then fence the voter.
fn learner_waits_in_vain(lab: &Lab, _: Wish) -> Result<()> {
    let voter = LEARNER.other();
    let mut writers = super::writing(lab)?;
    eventually("the learner is held before it is promoted", || learner_is_held(lab), |held| matches!(held, Ok(true)))??;
    let began = Instant::now();
    host::namespaces::hang(lab, voter)?;
    let cuts = steps::power_cuts(lab);
    let is_reset = || (steps::power_cuts(lab) > cuts).then_some(());
    sh::wait_for("the voter to be reset", Duration::from_secs(90), Duration::from_millis(100), is_reset)?;
    let waited = began.elapsed();
    figures::print(format!("{voter} was reset {:.1} s after it hung", waited.as_secs_f64()));
    must("the learner's agent has waited", waited, |waited| *waited >= Duration::from_secs(30))?;
    super::ends_well(lab, &mut writers)
}

fn race(lab: &Lab, writers: &Writers) -> Result<()> {
    let mut stories = [LEARNER, LEARNER.other()].map(|victim| (victim, Story::begin(lab, victim, false)));
    net::set_partition(lab, true)?;
    let fenced = sh::wait_for("one node to be fenced", Duration::from_secs(60), Duration::from_millis(100), || {
        for (_, story) in &mut stories {
            story.follow();
        }
        stories.iter().find(|(_, story)| story.steps.contains_key(&StoryStep::Fenced)).map(|(victim, _)| *victim)
    })?;
    if fenced != LEARNER {
        return Err(format!("{fenced} was fenced, which held the only whole data").into());
    }
    steps::wait_write(writers, Duration::from_secs(60)).map(drop)
}
