//! One node after the other gets a newer version of the program while etcd serves. In between the two versions run side by
//! side, read what the other one publishes, and each goes on without the other.
//!
//! `TANDEM_OLD` names the older program. Without it both are the same: that shows the procedure, and the samples in
//! `tests/fixtures/formats` show the formats.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::steps;
use crate::check::must;
use crate::decisions;
use crate::etcd;
use crate::host;
use crate::node::{NODES, Node};
use crate::power;
use crate::program;
use crate::sh::Result;
use crate::state::Lab;
use crate::up::Wish;

const LIMIT: Duration = Duration::from_secs(240);
/// Of a writer, while a node that may be stopped is stopped and comes back.
const LONGEST_GAP: Duration = Duration::from_millis(500);

pub fn run(lab: &Lab, _: Wish) -> Result<()> {
    let newer = program::tested();
    let older = std::env::var_os("TANDEM_OLD").map_or_else(|| newer.clone(), PathBuf::from);
    println!("   both nodes have the older version: {}", older.display());
    for node in NODES {
        replace(lab, node, &older)?;
    }
    // What each node publishes and keeps is the older version's own from here on.
    for node in NODES {
        leaves_and_returns(lab, node)?;
    }
    let leader = etcd::wait_two_voters(lab, LIMIT)?.leader;
    let follower = leader.other();
    lab.set("boot-delay", "2")?;

    println!("   {follower} is upgraded");
    let mut writers = super::writing(lab)?;
    replace(lab, follower, &newer)?;
    for victim in [leader, follower] {
        println!("   {victim} loses power beside the other version");
        power::cut(lab, victim)?;
        steps::wait_write(&writers, LIMIT)?;
        etcd::wait_two_voters(lab, LIMIT)?;
        std::thread::sleep(steps::THREE_MONITORS);
    }
    leaves_and_returns(lab, leader)?;
    println!("   {leader} is upgraded");
    replace(lab, leader, &newer)?;
    leaves_and_returns(lab, leader)?;
    super::ends_well(lab, &mut writers)
}

/// As an operator upgrades it: each node once it may be stopped, and nobody who writes waits. While one is away, the other may not be
/// stopped.
pub fn as_it_may_be_stopped(lab: &Lab, _: Wish) -> Result<()> {
    let program = program::tested();
    let leader = etcd::wait_two_voters(lab, LIMIT)?.leader;
    let mut writers = super::writing(lab)?;
    for node in [leader.other(), leader] {
        let stays = node.other();
        host::must(lab, stays, &["tandem", "status", "--wait-for", "redundant", "--timeout", "4m"])?;
        host::must(lab, stays, &["tandem", "status", "--may-stop", node.name()])?;
        steps::standby(lab, node, true)?;
        steps::wait_alone(lab, stays)?;
        steps::wait_stopped(lab, &[node])?;
        let asked = host::typed(lab, stays, &format!("tandem status --may-stop {stays}"))?;
        must("the voter that is left may not be stopped", asked, |(code, _)| *code == 3)?;
        replace(lab, node, &program)?;
        steps::standby(lab, node, false)?;
    }
    host::must(lab, leader, &["tandem", "status", "--wait-for", "redundant", "--timeout", "4m"])?;
    let (gap, _) = writers.longest_wait();
    must("nobody who writes has waited", gap, |gap| *gap <= LONGEST_GAP)?;
    super::ends_well(lab, &mut writers)
}

/// What was decided until now is decided again by the program that leaves. An action that it has begun by then may end
/// later, and is not the new one's.
fn replace(lab: &Lab, node: Node, with: &Path) -> Result<()> {
    decisions::replay(lab, "rolling_upgrade")?;
    program::put(lab, node, with)?;
    std::thread::sleep(steps::THREE_MONITORS);
    decisions::forget(lab, node)
}

fn leaves_and_returns(lab: &Lab, node: Node) -> Result<()> {
    steps::standby(lab, node, true)?;
    steps::wait_alone(lab, node.other())?;
    steps::wait_stopped(lab, &[node])?;
    steps::standby(lab, node, false)?;
    etcd::wait_two_voters(lab, LIMIT).map(drop)
}
