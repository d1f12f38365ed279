//! The command is killed after each of its steps, and typed again.

use std::time::Duration;

use super::super::setup::typed::Typed;
use super::world::{self, World};
use crate::cluster::up::Wish;
use crate::host::node::Second;
use crate::host::state::Lab;
use crate::sh::{self, Result};

const GOES_ON: &str = "tandem member replace --yes";
/// The lines that `tandem member replace` prints for its steps before it needs the new machine.
const LEAVES: [&str; 7] = [
    "tandem: check: a snapshot",
    "tandem: leave: node2 is in standby",
    "tandem: out: the cluster is stopped",
    "tandem: forget: pcs has removed node2",
    "tandem: forget: node2 is forgotten",
    "tandem: fence device: node3 has",
    "tandem: map: node_ip_map",
];
/// The lines that `tandem member replace` prints for its steps with the new machine. The new node's agent joins by
/// itself, and may be done before the command observes that. Then the command is killed in its last step, which
/// verifies.
const COMES: [&str; 3] = [
    "tandem: add: node3 is in the cluster",
    "tandem: join: ",
    "tandem: verify: waits until either node could continue alone",
];

pub fn after_each_step(lab: &Lab, wish: Wish) -> Result<()> {
    world::run(lab, wish, "member_replaced_killed", |world| {
        world.bmc_of_node3()?;
        let mut line = format!("tandem member replace node2 {} --yes", World::as_node3());
        let mut done = 0;
        while done < LEAVES.len() {
            done = killed_after(world.begin(&line)?, &LEAVES, done)?;
            GOES_ON.clone_into(&mut line);
        }
        world.swap(Second::Node3)?;
        let mut command = world.begin(GOES_ON)?;
        let there = world.begin_join(&mut command)?;
        killed_after(command, &["tandem: prepare: node3 has"], 0)?;
        there.done()?.must_be(0)?;
        let mut done = 0;
        while done + 1 < COMES.len() {
            done = killed_after(world.begin(GOES_ON)?, &COMES, done)?;
        }
        let last = world.begin(GOES_ON)?.done()?;
        println!("   {}", last.said.trim().replace('\n', "\n   "));
        last.must_be(0)?;
        world.ends_well(Some("node2"))
    })
}

/// Kills the command once it has printed one of `words` after the first `done` ones. Returns the number of steps that
/// are complete, which may be more than `done + 1`.
pub(super) fn killed_after(mut command: Typed, words: &[&str], done: usize) -> Result<usize> {
    let reached = |said: &str| words[done..].iter().rposition(|word| said.contains(word)).map(|at| done + at + 1);
    let what = format!("the command to say '{}'", words[done]);
    let found = sh::wait_for(&what, Duration::from_secs(240), Duration::from_millis(20), || reached(&command.said()))
        .map_err(|error| format!("{error}: {}", command.said()))?;
    let ran = command.kill()?;
    let over = reached(&command.said()).unwrap_or(found);
    println!("   {} after '{}'", if ran { "killed" } else { "over" }, words[over - 1]);
    Ok(over)
}
