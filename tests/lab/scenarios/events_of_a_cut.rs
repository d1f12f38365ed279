//! The events of the survivor of a power cut: exactly the expected ones, in order, once for all recipients. A recipient
//! that was down gets all of them later.

use std::time::Duration;

use serde_json::Value;

use super::steps;
use crate::cluster::etcd;
use crate::cluster::pcs;
use crate::cluster::redundant;
use crate::cluster::up::Wish;
use crate::host;
use crate::host::node::{NODES, Node};
use crate::host::power;
use crate::host::state::Lab;
use crate::judge::check::{eventually, must};
use crate::sh::Result;

const ID: &str = "tandem";
const PATH: &str = "path=/usr/libexec/tandem/alert";
/// The file of an event recipient that works from the beginning.
const UP: &str = "/var/log/tandem-events";
/// The file of an event recipient that fails at first, because the directory is missing.
const LATER: &str = "/var/log/later/tandem-events";

pub fn run(lab: &Lab, _: Wish) -> Result<()> {
    let victim = etcd::wait_two_voters(lab, Duration::from_secs(60))?.leader;
    let survivor = victim.other();
    pcs::run(lab, survivor, &["alert", "create", &format!("id={ID}"), PATH])?;
    for recipient in ["journal", &format!("file:{UP}"), &format!("file:{LATER}")] {
        pcs::run(lab, survivor, &["alert", "recipient", "add", ID, &format!("value={recipient}")])?;
    }
    let mut writers = super::writing(lab)?;
    redundant::wait(lab)?;
    let before = NODES.map(|node| told(lab, node).last().map_or(0, |last| last.number));
    println!("   cutting the power of {victim}, which leads etcd");
    steps::cut(lab, victim)?;
    let seen = |node: Node| -> Vec<Told> {
        let begin = before[NODES.iter().position(|one| *one == node).unwrap_or_default()];
        told(lab, node).into_iter().filter(|event| event.number > begin).collect()
    };
    eventually("the survivor tells of the cut", || names(&seen(survivor)), |names| names.len() >= 4)?;
    if !power::is_on(lab, victim) {
        power::on(lab, victim)?;
    }
    etcd::wait_two_voters(lab, Duration::from_secs(180))?;
    redundant::wait(lab)?;
    let expected: Vec<String> = [
        format!("Error PacemakerNodeOffline {victim}"),
        format!("Warning PacemakerFencingEvent {victim}"),
        format!("Error EtcdAlone {survivor}"),
        format!("Normal EtcdLeader {survivor}"),
        format!("Normal PacemakerNodeOnline {victim}"),
        format!("Normal EtcdRedundant {survivor}"),
    ]
    .into();
    eventually("the survivor tells exactly what happened", || names(&seen(survivor)), |names| *names == expected)?;
    // This also holds if the returned node was the first to delete the record of a sole voter.
    let again = || names(&seen(victim)).into_iter().filter(|name| name.contains("EtcdRedundant")).count();
    must("two voters are told of by the node that was alone, and by no other", again(), |count| *count == 0)?;
    are_brought(lab, survivor)?;
    pcs::run(lab, survivor, &["alert", "delete", ID])?;
    super::ends_well(lab, &mut writers)
}

/// Checks that `tandem events test` delivers the kept events to each recipient that works. A recipient that failed at
/// first must get them later.
fn are_brought(lab: &Lab, node: Node) -> Result<()> {
    let test = ["tandem", "events", "test"];
    let first = host::output(lab, node, &test)?;
    must("a recipient that is down is told of", first.text(), |text| {
        !first.ok && text.contains("1 of 3 recipients were not reached") && text.contains("No such file")
    })?;
    host::must(lab, node, &["mkdir", "/var/log/later"])?;
    host::must(lab, node, &test)?;
    let brought = [UP, LATER].map(|file| host::said(lab, node, &["cat", file]));
    must("both files hold the same", brought, |[up, later]| up == later && up.contains("PacemakerNodeOffline"))?;
    let journal = host::said(lab, node, &["cat", "/var/log/messages"]);
    must("the journal has it, too", journal.contains("PacemakerNodeOffline"), |has| *has)?;
    Ok(())
}

/// The fields of one of Tandem's events that this scenario checks.
#[derive(Debug)]
struct Told {
    number: u64,
    name: String,
    message: String,
}

/// Returns the events that `tandem events` lists on a node.
fn told(lab: &Lab, node: Node) -> Vec<Told> {
    let said = host::said(lab, node, &["tandem", "events", "--json", "--since", "1h"]);
    let document: Value = serde_json::from_str(&said).unwrap_or_default();
    let text = |event: &Value, key: &str| event[key].as_str().unwrap_or_default().to_owned();
    let told = |event: &Value| Told {
        number: event["number"].as_u64().unwrap_or_default(),
        name: format!("{} {} {}", text(event, "type"), text(event, "reason"), text(event, "node")),
        message: text(event, "message"),
    };
    document["events"].as_array().map(|events| events.iter().map(told).collect()).unwrap_or_default()
}

/// Returns type, reason and node of each event. Events of fence devices are left out, because Pacemaker chooses the
/// nodes where these devices run.
fn names(events: &[Told]) -> Vec<String> {
    events.iter().filter(|event| !event.message.contains("fence-")).map(|event| event.name.clone()).collect()
}
