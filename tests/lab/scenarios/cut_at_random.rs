//! Power is cut at a random moment of an action. Every prefix of an action must leave a state from which the next one
//! continues.

use std::time::Duration;

use super::needs::Needs;
use super::steps;
use super::table::{Scenario, scenario};
use crate::cluster::up::Wish;
use crate::host::node::{NODES, Node};
use crate::host::state::Lab;
use crate::random::Random;
use crate::sh::Result;

/// The seconds from the power button to the boot of a host. Only the fence agent presses the button.
const BOOT_DELAY: u64 = 3;

pub(super) const SCENARIOS: &[Scenario] = &[
    scenario("cut_during_start", "power is cut at a random moment of a start", start).nightly(),
    scenario("cut_during_stop", "power is cut at a random moment of a stop", stop).nightly(),
    scenario("cut_during_promote", "power is cut at a random moment of a promotion, on either side of it", promote)
        .needs(Needs::Promotable)
        .nightly(),
];

fn start(lab: &Lab, wish: Wish) -> Result<()> {
    let mut chance = steps::chance()?;
    let mut writers = super::writing(lab)?;
    let node = away(lab, &mut chance)?;
    steps::standby(lab, node, false)?;
    cut_after(lab, node, chance.up_to(Duration::from_secs(4)))?;
    super::ends_well(lab, &mut writers)?;
    lab.set("boot-delay", &wish.boot_delay.to_string())
}

fn stop(lab: &Lab, wish: Wish) -> Result<()> {
    let mut chance = steps::chance()?;
    let mut writers = super::writing(lab)?;
    let node = NODES[usize::from(chance.below(2) == 1)];
    lab.set("boot-delay", &BOOT_DELAY.to_string())?;
    steps::standby(lab, node, true)?;
    cut_after(lab, node, chance.up_to(Duration::from_millis(1500)))?;
    steps::standby(lab, node, false)?;
    super::ends_well(lab, &mut writers)?;
    lab.set("boot-delay", &wish.boot_delay.to_string())
}

fn promote(lab: &Lab, wish: Wish) -> Result<()> {
    let mut chance = steps::chance()?;
    let mut writers = super::writing(lab)?;
    let node = away(lab, &mut chance)?;
    let log = steps::log_length(lab, node);
    steps::standby(lab, node, false)?;
    steps::wait_said(lab, node, log, "joining as a learner", Duration::from_secs(60))?;
    let victim = if chance.below(2) == 1 { node } else { node.other() };
    cut_after(lab, victim, chance.up_to(Duration::from_secs(3)))?;
    super::ends_well(lab, &mut writers)?;
    lab.set("boot-delay", &wish.boot_delay.to_string())
}

/// Puts a random node to standby, and waits until the other node is the only member. Returns the node on standby.
fn away(lab: &Lab, chance: &mut Random) -> Result<Node> {
    let node = NODES[usize::from(chance.below(2) == 1)];
    lab.set("boot-delay", &BOOT_DELAY.to_string())?;
    steps::standby(lab, node, true)?;
    steps::wait_alone(lab, node.other())?;
    Ok(node)
}

fn cut_after(lab: &Lab, node: Node, pause: Duration) -> Result<()> {
    println!("   {node} loses power after {:.2} s", pause.as_secs_f64());
    std::thread::sleep(pause);
    steps::cut(lab, node)
}
