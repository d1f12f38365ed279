//! Settings of etcd change, one member after the other, by `tandem upgrade --settings`. No write waits long, and
//! Pacemaker restarts nothing when the settings become those of both nodes.

use std::time::Duration;

use super::{image_changes, steps};
use crate::cluster;
use crate::cluster::etcd;
use crate::cluster::up::Wish;
use crate::host;
use crate::host::node::{NODES, Node};
use crate::host::state::Lab;
use crate::judge::check::must;
use crate::sh::Result;

const SLOWER: &str = "heartbeat-interval=200;election-timeout=2000";
const USUAL: &str = "heartbeat-interval=100;election-timeout=1000";
/// The limit for a writer's gap while both members are restarted one after the other.
const LONGEST_GAP: Duration = Duration::from_secs(1);
/// An agent parameter with an option that the agent accepts, and with which etcd exits at once.
const NO_OPTION: &str = "run_cmd_opts=--no-such-option";
/// The seconds for which `tandem upgrade` waits for an etcd that does not start.
const PATIENCE_S: &str = "60";

pub(super) fn run(lab: &Lab, _: Wish) -> Result<()> {
    let leader = etcd::wait_two_voters(lab, Duration::from_secs(60))?.leader;
    crate::cluster::redundant::wait(lab)?;
    refused(lab, leader)?;
    let mut writers = super::writing(lab)?;
    let upgrade = |settings: &str| format!("tandem upgrade --settings 'etcd_settings={settings}'");
    let before = NODES.map(|node| etcd::pid(lab, node));
    let (code, told) = host::typed(lab, leader, &format!("{} --dry-run", upgrade(SLOWER)))?;
    must("both restarts are planned", (code, told), |(code, told)| {
        *code == 0 && NODES.iter().all(|node| told.contains(&format!("restarts etcd on {node} with it")))
    })?;
    must("a plan restarts nothing", NODES.map(|node| etcd::pid(lab, node)), |after| *after == before)?;
    let (code, told) = host::typed(lab, leader, &format!("{} --yes", upgrade(SLOWER)))?;
    must("both have it", (code, told), |(code, told)| *code == 0 && told.contains("both members run with"))?;
    both_have(lab, leader, SLOWER)?;
    let (gap, _) = writers.longest_wait();
    println!("   another setting on both members: longest gap {:.2} s", gap.as_secs_f64());
    must("the writes went on", gap, |gap| *gap <= LONGEST_GAP)?;
    image_changes::cut_off(lab, leader, &format!("{} --yes", upgrade(USUAL)))?;
    host::must(lab, leader, &["sh", "-c", &upgrade(USUAL)])?;
    both_have(lab, leader, USUAL)?;
    let (slower, usual) = (format!("'etcd_settings={SLOWER}'"), format!("'etcd_settings={USUAL}'"));
    cannot_start(lab, &format!("{slower} {NO_OPTION}"), &format!("{usual} run_cmd_opts="))?;
    cannot_start(lab, "run_opts=--no-such-option", "run_opts=")?;
    let (gap, _) = writers.longest_wait();
    must("the writes went on, also where the command was killed, and where etcd did not start", gap, |gap| {
        *gap <= LONGEST_GAP
    })?;
    super::ends_well(lab, &mut writers)
}

/// Checks that `tandem upgrade --settings` refuses a parameter that it cannot change, an invalid value, and an unknown setting of etcd.
fn refused(lab: &Lab, on: Node) -> Result<()> {
    for (words, why) in [
        ("client_port=2479", "client_port is none of"),
        ("etcd_settings=heartbeat-interval=fast", "is not a whole number"),
        ("'etcd_settings=heartbeat-interval=1000;election-timeout=900'", "election-timeout=900 is less than 5 times"),
        ("etcd_settings=no-such-option=1", "etcd has no setting 'no-such-option'"),
        ("etcd_settings", "KEY=VALUE"),
    ] {
        let (code, told) = host::typed(lab, on, &format!("tandem upgrade --yes --settings {words}"))?;
        must(&format!("'{words}' is refused"), (code, told), |(code, told)| *code != 0 && told.contains(why))?;
    }
    Ok(())
}

/// Checks an upgrade to a setting that the agent accepts and with which etcd cannot start. The follower is then
/// without etcd, and the other node takes the writes. The command that `tandem upgrade` prints must restore the old
/// settings.
fn cannot_start(lab: &Lab, wrong: &str, before: &str) -> Result<()> {
    let leader = etcd::wait_two_voters(lab, Duration::from_secs(60))?.leader;
    let follower = leader.other();
    crate::cluster::redundant::wait(lab)?;
    let process = etcd::pid(lab, leader);
    let line = format!("tandem upgrade --settings {wrong} --yes --timeout {PATIENCE_S}");
    let (code, said) = host::typed(lab, leader, &line)?;
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    println!("   {said}");
    let waits = format!("waits until {follower} votes: its start failed");
    let back = format!("tandem upgrade --settings {before}");
    must("it ends, with the reason and the way back", (code, said), |(code, said)| {
        *code == 1 && said.contains(&waits) && said.ends_with(&format!("to go back: {back}"))
    })?;
    let (code, said) = host::typed(lab, leader, "tandem status")?;
    must("status has the failed start", (code, said), |(code, said)| {
        *code == 3 && said.contains("etcd does not start on")
    })?;
    let (code, said) = host::typed(lab, leader, &format!("timeout 180 {back}"))?;
    must("the way back ends with two voters", (code, said), |(code, _)| *code == 0)?;
    must(&format!("{leader} ran on"), etcd::pid(lab, leader), |after| *after == process)?;
    both_have(lab, leader, USUAL)
}

/// Checks that etcd on each node was started with `settings`, and that the CIB has them for both nodes. Nothing may
/// restart after the command.
fn both_have(lab: &Lab, on: Node, settings: &str) -> Result<()> {
    let before = NODES.map(|node| etcd::pid(lab, node));
    for node in NODES {
        let config = host::must(lab, node, &["sh", "-c", "cat /var/lib/etcd/config*"])?;
        for setting in settings.split(';') {
            let (name, value) = setting.split_once('=').unwrap_or_default();
            let line = format!("{name}: {value}");
            must(&format!("{node} has {line}"), config.replace('"', ""), |config| config.contains(&line))?;
        }
    }
    let cib = host::must(lab, on, &["cibadmin", "--query", "--scope", "resources"])?;
    must("no node has a set of its own", &cib, |cib| !cib.contains("tandem-settings"))?;
    must("the CIB has it", &cib, |cib| cib.contains(&format!("name=\"etcd_settings\" value=\"{settings}\"")))?;
    let constraints = host::must(lab, on, &["cibadmin", "--query", "--scope", "constraints"])?;
    must("no constraint is left", constraints, |constraints| !constraints.contains("tandem-upgrade"))?;
    std::thread::sleep(steps::THREE_MONITORS);
    let after = NODES.map(|node| etcd::pid(lab, node));
    must(&format!("{} is not restarted once more", cluster::ETCD), after, |after| *after == before).map(drop)
}
