//! One node after the other gets a newer version of the program while etcd serves. In between, the two versions run
//! together, read what the other one publishes, and each runs standalone if the other node is away.
//!
//! `TANDEM_OLD` names the older program. Without it, both are the same. Then the scenario only shows the procedure, and
//! the samples in `tests/data/fixtures/formats` show the formats.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::steps;
use crate::cluster::asked;
use crate::cluster::collector;
use crate::cluster::etcd;
use crate::cluster::up::Wish;
use crate::host;
use crate::host::node::{NODES, Node};
use crate::host::power;
use crate::host::state::Lab;
use crate::judge::check::{eventually, must};
use crate::judge::decisions;
use crate::programs;
use crate::programs::faulty;
use crate::sh::Result;

const LIMIT: Duration = Duration::from_secs(240);
/// The name of the scenario that upgrades without a gap for writers.
const UPGRADE: &str = "upgrade_by_may_stop";
/// The limit for a writer's gap while a node that may be stopped is stopped and comes back.
const LONGEST_GAP: Duration = Duration::from_millis(500);

pub fn run(lab: &Lab, _: Wish) -> Result<()> {
    let newer = programs::tested();
    let older = std::env::var_os("TANDEM_OLD").map_or_else(|| newer.clone(), PathBuf::from);
    println!("   both nodes have the older version: {}", older.display());
    for node in NODES {
        replace(lab, node, &older)?;
    }
    // From here on, each node publishes and stores only data of the older version.
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

/// Upgrades as an operator does: each node once `tandem status --may-stop` permits it, without a gap for writers.
/// While one node is away, the other one must not be stopped. While the nodes run two versions, `tandem status` and
/// the metrics on both show that. The older program is a build of the lab's that differs only in its version.
pub fn as_it_may_be_stopped(lab: &Lab, _: Wish) -> Result<()> {
    let (older, newer) = (faulty::build()?, programs::tested());
    decisions::replay(lab, UPGRADE)?;
    NODES.into_iter().try_for_each(|node| programs::put(lab, node, &older))?;
    std::thread::sleep(steps::THREE_MONITORS);
    NODES.into_iter().try_for_each(|node| decisions::forget(lab, node))?;
    let leader = etcd::wait_two_voters(lab, LIMIT)?.leader;
    let mut writers = super::writing(lab)?;
    show_two_versions(lab, false)?;
    for node in [leader.other(), leader] {
        let stays = node.other();
        host::must(lab, stays, &["tandem", "status", "--wait-for", "redundant", "--timeout", "4m"])?;
        // A voter that has just returned publishes a moment later that it may run standalone.
        let asked = || host::typed(lab, stays, &format!("tandem status --may-stop {node}"));
        eventually(&format!("{node} may be stopped"), asked, |done| matches!(done, Ok((0, _))))??;
        steps::standby(lab, node, true)?;
        steps::wait_alone(lab, stays)?;
        steps::wait_stopped(lab, &[node])?;
        let asked = host::typed(lab, stays, &format!("tandem status --may-stop {stays}"))?;
        must("the voter that is left may not be stopped", asked, |(code, _)| *code == 3)?;
        // No action of the agent runs on the stopped node, so there is none to wait for.
        decisions::replay(lab, UPGRADE)?;
        programs::put(lab, node, &newer)?;
        decisions::forget(lab, node)?;
        show_two_versions(lab, node != leader)?;
        steps::standby(lab, node, false)?;
    }
    host::must(lab, leader, &["tandem", "status", "--wait-for", "redundant", "--timeout", "4m"])?;
    collector::forget(lab)?;
    let (gap, _) = writers.longest_wait();
    must("nobody who writes has waited", gap, |gap| *gap <= LONGEST_GAP)?;
    super::ends_well(lab, &mut writers)
}

/// Checks whether `tandem status` and the metrics on both nodes name two versions, after the collector has run on
/// both.
fn show_two_versions(lab: &Lab, wanted: bool) -> Result<()> {
    collector::collect(lab)?;
    for node in NODES {
        let answer = asked::ask(lab, node)?;
        must(&format!("status on {node} tells of two versions: {wanted}"), answer, |answer| {
            answer.names("tandem-versions") == wanted
        })?;
        let metrics = host::must(lab, node, &["tandem", "metrics"])?;
        let is_ours = |line: &&str| line.starts_with("tandem_version_info{") && line.contains("component=\"tandem\"");
        let version = |line: &str| Some(line.split_once("version=\"")?.1.split_once('"')?.0.to_owned());
        let mut versions: Vec<String> = metrics.lines().filter(is_ours).filter_map(version).collect();
        must(&format!("the metrics of {node} have both nodes"), versions.len(), |count| *count == NODES.len())?;
        versions.sort();
        versions.dedup();
        must(&format!("the metrics of {node} have two versions: {wanted}"), versions, |versions| {
            (versions.len() == 2) == wanted
        })?;
    }
    Ok(())
}

/// Replaces a node's program with `with`. The old program first replays the decisions that it recorded. An action of
/// the old program may end later, so decisions recorded in the next seconds are dropped.
fn replace(lab: &Lab, node: Node, with: &Path) -> Result<()> {
    decisions::replay(lab, "rolling_upgrade")?;
    programs::put(lab, node, with)?;
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
