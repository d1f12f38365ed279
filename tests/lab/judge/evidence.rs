//! A short description of the lab when a scenario fails, because often only the end of a run's output is kept. For the
//! whole logs see [`crate::cluster::teardown::keep_logs`].

use std::fs;

use crate::cluster::etcd;
use crate::host;
use crate::host::bmc;
use crate::host::node::{NODES, Node};
use crate::host::power;
use crate::host::state::Lab;

/// The largest number of lines in the description of a failed lab.
const LINES: usize = 44;
/// The largest number of characters in a line of the description.
const WIDTH: usize = 220;
/// The number of recent actions of the lab and of the BMCs that the description shows.
const EVENTS: usize = 6;
const AGENT: usize = 5;
/// The time-out in seconds of a program that the lab runs on a host for the description. The program may be the very
/// one that hangs.
const PATIENCE: &str = "10";
/// The beginnings of the lines of `crm_mon` that the description leaves out, because they only structure the output.
const CRM_MON_FRAME: &[&str] = &["Status of pacemakerd", "Node List:", "* Resources:"];
/// The beginnings of the lines of `tandem explain` that the description shows.
const TELLING: &[&str] =
    &["own etcd", "container", "data dir", "this boot", "Pacemaker", "because", "if that lasts", "tandem:"];

/// Describes each host's power, BMC and etcd, and whether the hosts can reach each other.
pub fn standing(lab: &Lab) -> Vec<String> {
    let mut lines = Vec::new();
    for node in NODES {
        let power = if power::is_on(lab, node) { "on" } else { "off" };
        let runs = if host::running(lab, node).is_some() { "running" } else { "not running" };
        lines.push(format!("{node}: power {power}, {runs}; BMC {}: {}", node.bmc_ip(), bmc::mode(lab, node)));
        lines.push(format!("       etcd: {}", etcd::describe(lab, node)));
    }
    if lab.setting("partition").as_deref() == Some("on") {
        lines.push("the cluster network is cut between the hosts; 'cargo lab heal' mends it".to_owned());
    }
    lines
}

/// Describes the state of a lab in which a scenario has just failed.
pub fn of_failure(lab: &Lab) -> Vec<String> {
    let mut lines = standing(lab);
    lines.extend(last(events(lab), EVENTS));
    let mut shown = String::new();
    for node in NODES {
        lines.extend(last(words_of_the_agent(lab, node), AGENT));
        if host::running(lab, node).is_none() {
            continue;
        }
        lines.extend(explained(lab, node));
        let seen = crm_mon(lab, node);
        let text = seen.join("\n");
        if text == shown {
            lines.push(format!("{node} crm_mon: as above"));
        } else {
            lines.extend(seen.into_iter().map(|line| format!("{node} crm_mon: {line}")));
        }
        shown = text;
    }
    if lines.len() > LINES {
        let more = lines.len() - (LINES - 1);
        lines.truncate(LINES - 1);
        lines.push(format!("... and {more} lines more"));
    }
    lines.iter().map(|line| cut(line)).collect()
}

/// Returns the actions of the lab and the power requests to the BMCs, sorted by time.
fn events(lab: &Lab) -> Vec<String> {
    let read = |path| fs::read_to_string(path).unwrap_or_default();
    let mut lines: Vec<String> = read(lab.events()).lines().map(str::to_owned).collect();
    lines.extend(read(lab.bmc_log()).lines().filter(|line| line.contains(": POST ")).map(str::to_owned));
    lines.sort();
    lines
}

/// Returns the lines of the etcd agent in the host's syslog, which is readable even if the host is off.
fn words_of_the_agent(lab: &Lab, node: Node) -> Vec<String> {
    let log = fs::read(lab.messages(node)).unwrap_or_default();
    let log = String::from_utf8_lossy(&log);
    let is_its_own = |line: &&str| line.contains("podman-etcd(") && !line.contains("pacemaker-");
    log.lines().filter(is_its_own).map(str::to_owned).collect()
}

fn explained(lab: &Lab, node: Node) -> Vec<String> {
    let said = host::said(lab, node, &["timeout", PATIENCE, "tandem", "explain"]);
    let lines = said.lines().map(str::trim).filter(|line| TELLING.iter().any(|word| line.starts_with(word)));
    lines.map(|line| format!("{node} explain: {line}")).collect()
}

fn crm_mon(lab: &Lab, node: Node) -> Vec<String> {
    let words = ["timeout", PATIENCE, "crm_mon", "-1", "--exclude=summary", "--group-by-node"];
    let said = host::said(lab, node, &words);
    let says_nothing = |line: &&str| CRM_MON_FRAME.iter().any(|word| line.trim().starts_with(word));
    said.lines().filter(|line| !line.trim().is_empty() && !says_nothing(line)).map(str::to_owned).collect()
}

fn last(mut lines: Vec<String>, count: usize) -> Vec<String> {
    lines.split_off(lines.len().saturating_sub(count))
}

fn cut(line: &str) -> String {
    match line.char_indices().nth(WIDTH) {
        Some((end, _)) => format!("{}...", &line[..end]),
        None => line.to_owned(),
    }
}
