//! Two commands at once, of which one is refused. Also a replacement that is cancelled, before and after the old node
//! is forgotten.

use std::time::Duration;

use super::super::setup::typed::{self, Done, HERE, THERE, Typed};
use super::killed;
use super::world::{self, World};
use crate::cluster::etcd;
use crate::cluster::redundant;
use crate::cluster::up::Wish;
use crate::host;
use crate::host::node::{Node, Second};
use crate::host::state::Lab;
use crate::sh::Result;

const ABORT: &str = "tandem member replace --abort --yes";

pub fn run(lab: &Lab, wish: Wish) -> Result<()> {
    world::run(lab, wish, "member_aborted", |world| {
        world.bmc_of_node3()?;
        let replace = format!("tandem member replace node2 {} --yes", World::as_node3());
        two_at_once(world, &replace)?;
        as_before(world)?;

        let command = world.begin(&replace)?;
        killed::killed_after(command, &["tandem: leave: node2 is in standby"], 0)?;
        taken_back(world, HERE, "pcs node unstandby node2")?;
        as_before(world)?;

        let command = world.begin(&replace)?;
        killed::killed_after(command, &["tandem: map: node_ip_map"], 0)?;
        let done = taken_back(world, HERE, "node2 is forgotten, which cannot be taken back")?;
        if !done.said.contains("pcs stonith delete fence-node3") {
            return Err(format!("node3 keeps its fence device: {}", done.said).into());
        }
        // This is the command that it printed.
        world.swap(Second::Node2)?;
        let command = world.begin(&format!("tandem member add node2=10.99.0.2 {} --yes", World::fence(2)))?;
        world.join(command)?;
        etcd::wait_two_voters(lab, Duration::from_secs(60))?;
        world.ends_well(None)
    })
}

/// Runs `tandem member replace` for each node on the other one at the same moment. One command gets the lock, and the
/// other one must be refused and change nothing.
fn two_at_once(world: &World<'_>, replace: &str) -> Result<()> {
    let here = world.begin(replace)?;
    let there = Typed::begin(world.lab, THERE, "tandem member replace node1 --yes")?;
    let mut commands = [(HERE, here), (THERE, there)];
    let ended = |(_, command): &mut (Node, Typed)| command.ended();
    let loser = crate::sh::wait_for(
        "one of two commands to be refused",
        Duration::from_secs(120),
        Duration::from_millis(20),
        || commands.iter_mut().position(ended),
    )?;
    let [first, second] = commands;
    let ((winner, mut command), (_, refused)) = if loser == 0 { (second, first) } else { (first, second) };
    command.kill()?;
    println!("   {winner}'s command has the lock; the other one said: {}", refused.said().trim().replace('\n', "; "));
    let refused = refused.done()?;
    refused.must_be(3)?;
    if !refused.said.contains("under way") {
        return Err(format!("it was refused for another reason: {}", refused.said).into());
    }
    taken_back(world, winner, "")?;
    Ok(())
}

fn taken_back(world: &World<'_>, node: Node, words: &str) -> Result<Done> {
    let done = typed::typed(world.lab, node, ABORT)?;
    println!("   {}", done.said.trim().replace('\n', "\n   "));
    done.must_be(0)?;
    if done.said.contains(words) { Ok(done) } else { Err(format!("it did not say '{words}'").into()) }
}

/// Checks that the pair is as before the change: either node of two voters may be lost, and the CIB has no trace of
/// the change.
fn as_before(world: &World<'_>) -> Result<()> {
    etcd::wait_two_voters(world.lab, Duration::from_secs(120))?;
    redundant::wait(world.lab)?;
    let cib = host::must(world.lab, HERE, &["cibadmin", "--query", "--scope", "configuration"])?;
    match ["node3", "etcd_member_change"].into_iter().find(|word| cib.contains(word)) {
        Some(word) => Err(format!("the CIB has {word} still").into()),
        None => Ok(()),
    }
}
