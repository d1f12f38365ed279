//! One host has the shell agent, the other one Tandem under the same name. When either is stopped or loses power, the
//! other one continues; the lost one returns, and nothing is lost. After both lost power, Tandem forces nothing,
//! because it cannot know what the other agent will do. If that leads to no recovery, it gives the reason, and Tandem
//! on both hosts recovers.

use std::time::Duration;

use super::steps;
use super::takeover::{ONE_MONITOR, hand_over};
use crate::cluster::etcd;
use crate::cluster::up::Wish;
use crate::host;
use crate::host::node::{NODES, Node};
use crate::host::power;
use crate::host::state::Lab;
use crate::load::writer::Writers;
use crate::programs::shell_agent::{self, Agent};
use crate::sh::{self, Result};

const SHELL: Node = Node::One;
const TANDEM: Node = Node::Two;
const LIMIT: Duration = Duration::from_secs(240);

pub fn run(lab: &Lab, _: Wish) -> Result<()> {
    hand_over(lab, &[TANDEM], Agent::Tandem)?;
    settle();
    lab.set("boot-delay", "2")?;
    for stopped in [SHELL, TANDEM] {
        println!("   {stopped} is stopped in good order");
        let mut writers = super::writing(lab)?;
        steps::standby(lab, stopped, true)?;
        steps::wait_alone(lab, stopped.other())?;
        steps::wait_write(&writers, LIMIT)?;
        steps::standby(lab, stopped, false)?;
        etcd::wait_two_voters(lab, LIMIT)?;
        super::ends_well(lab, &mut writers)?;
        settle();
    }
    for victim in [SHELL, TANDEM] {
        println!("   {victim} loses power");
        let mut writers = super::writing(lab)?;
        lose_power(lab, &writers, victim)?;
        super::ends_well(lab, &mut writers)?;
        settle();
    }
    println!("   both lose power");
    both_lose_power(lab)
}

/// Waits for two monitors of each agent, which run every 30 s. In the first monitor after its member has returned, the shell agent reads
/// the member's new id. Tandem needs two monitors if the shell agent promoted its member. The first one publishes that Tandem's node may
/// run standalone, and later ones rely on the published value.
fn settle() {
    std::thread::sleep(ONE_MONITOR * 2);
}

fn lose_power(lab: &Lab, writers: &Writers, victim: Node) -> Result<()> {
    power::cut(lab, victim)?;
    let cut_at = writers.now();
    sh::wait_for("an acknowledged write after the power cut", LIMIT, Duration::from_millis(50), || {
        writers.first_after(cut_at)
    })?;
    etcd::wait_two_voters(lab, LIMIT).map(drop)
}

fn both_lose_power(lab: &Lab) -> Result<()> {
    let forced = |lab: &Lab| {
        std::fs::read_to_string(lab.messages(TANDEM)).unwrap_or_default().matches("and forcing a new cluster").count()
    };
    let before = forced(lab);
    let mut writers = super::writing(lab)?;
    for node in NODES {
        power::cut(lab, node)?;
    }
    lab.set("boot-delay", "0")?;
    std::thread::sleep(Duration::from_secs(2));
    for node in NODES {
        power::on(lab, node)?;
    }
    let back = etcd::wait_two_voters(lab, Duration::from_secs(120));
    // Tandem cannot protect data that the shell agent's own forced start discards.
    writers.stop()?;
    if forced(lab) > before {
        return Err("Tandem forced a new cluster beside an agent that it knows nothing of".into());
    }
    if back.is_err() {
        explains_itself(lab)?;
        println!("   Tandem refuses and says why; it takes the other host as well");
        shell_agent::put(lab, SHELL, Agent::Tandem)?;
        host::must(lab, TANDEM, &["crm_resource", "--cleanup", "--resource", "etcd"])?;
        etcd::wait_two_voters(lab, LIMIT)?;
    }
    super::clean(lab)
}

fn explains_itself(lab: &Lab) -> Result<()> {
    let log = std::fs::read_to_string(lab.messages(TANDEM)).unwrap_or_default();
    let words = "has not said what data it holds";
    if log.contains(words) { Ok(()) } else { Err(format!("Tandem does not say '{words}'").into()) }
}
