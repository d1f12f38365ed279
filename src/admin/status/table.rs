//! The status for people: the verdict, a table with a column for each node, and every problem with what to type.

use std::fmt::Write;

use comfy_table::{Table, presets};

use super::document::{Device, Node, PowerSeen, Role, Status, Time};
use crate::base::utc;
use crate::operate::health::words::{ago, millis, size, span};
use crate::operate::health::{Problem, Severity, Verdict};
use crate::os::output::{Colour, Painted};

const NOT_KNOWN: &str = "not known";
const DAY: u64 = 86_400;
/// The words at the beginning of a line that get a colour, so that verdicts and problems are visible from afar.
pub(super) const PAINTED: &Painted = &[
    ("redundant", Colour::Green),
    ("degraded", Colour::Yellow),
    ("down", Colour::Red),
    ("unknown", Colour::Red),
    ("critical", Colour::Red),
    ("warning", Colour::Yellow),
];

/// A row of the table: its name, and the function that returns its content for a node.
type Row = (&'static str, fn(&Status, &Node) -> String);

const ROWS: [Row; 17] = [
    ("machine", machine),
    ("power", power),
    ("quorum", quorum),
    ("token", token),
    ("etcd", role),
    ("term, index", position),
    ("database", database),
    ("alarms", alarms),
    ("fenced by", fence_devices),
    ("last fencing", last_fencing),
    ("certificates", certificates),
    ("free room", room),
    ("moved aside", moved_aside),
    ("tandem", |_, node| known(node.versions.tandem.as_ref())),
    ("etcd version", |_, node| known(node.versions.etcd.as_ref())),
    ("Pacemaker", |_, node| known(node.versions.pacemaker.as_ref())),
    ("collector", collector),
];

pub(super) fn text(status: &Status) -> String {
    let mut text = format!("{}\n", head(status));
    if !status.nodes.is_empty() {
        let _ = write!(text, "\n{}\n", table(status));
    }
    for problem in &status.problems {
        let severity = match problem.severity {
            Severity::Critical => "critical",
            Severity::Warning => "warning",
            Severity::Notice => "notice",
        };
        let _ = write!(text, "\n{severity:<9} {}", problem.text);
        if let Some(command) = &problem.command {
            let _ = write!(text, "\n          {command}");
        }
    }
    text.trim_end().to_owned()
}

/// Returns the line with the verdict, its meaning, and the time since which it holds.
pub(super) fn head(status: &Status) -> String {
    let told = |Time(since): Time| format!("since {} ({})", utc(since), span(status.at.0.saturating_sub(since)));
    let since = status.since.map(told);
    let with = |before: &str| since.as_ref().map(|since| format!("{before}{since}")).unwrap_or_default();
    match (status.verdict, status.voters) {
        (Verdict::Redundant, _) => format!("redundant: two voters{}", with(" ")),
        (Verdict::Degraded, Some(2)) => format!("degraded: two voters{}, and something needs you", with(" ")),
        (Verdict::Degraded, Some(_)) => {
            format!("degraded: writes are taken by one voter{}", with(", without a second one "))
        }
        (Verdict::Degraded, None) => "degraded: writes are taken, and something needs you".to_owned(),
        (Verdict::Down, Some(0 | 1)) => format!("down: no writes are taken{}", with("; no two voters ")),
        (Verdict::Down, _) => "down: no writes are taken".to_owned(),
        (Verdict::Unknown, _) => "unknown: what matters could not be asked".to_owned(),
    }
}

fn table(status: &Status) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    let names = status
        .nodes
        .iter()
        .map(|node| if node.name == status.here { format!("{} (here)", node.name) } else { node.name.clone() });
    table.set_header(std::iter::once(String::new()).chain(names));
    for (name, cell) in ROWS {
        let cells: Vec<String> = status.nodes.iter().map(|node| cell(status, node)).collect();
        // A row without content for either node is left out.
        if cells.iter().any(|cell| !cell.is_empty()) {
            table.add_row(std::iter::once(name.to_owned()).chain(cells));
        }
    }
    table.to_string().lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}

fn known(value: Option<&String>) -> String {
    value.map_or_else(|| NOT_KNOWN.to_owned(), Clone::clone)
}

/// Returns the state of a node in Pacemaker, in a word or two.
pub(super) fn machine(_: &Status, node: &Node) -> String {
    let Some(online) = node.online else { return NOT_KNOWN.to_owned() };
    let mut words = vec![if online { "online" } else { "offline" }];
    let flags = [
        (node.unclean, "UNCLEAN"),
        (node.pending, "pending"),
        (node.standby, "standby"),
        (node.maintenance, "maintenance"),
    ];
    words.extend(flags.into_iter().filter(|(is_so, _)| *is_so == Some(true)).map(|(_, word)| word));
    words.join(", ")
}

fn power(_: &Status, node: &Node) -> String {
    match node.power {
        Some(PowerSeen::On) => "its BMC says: On",
        Some(PowerSeen::Off) => "its BMC says: Off",
        Some(PowerSeen::Unknown) => "its BMC does not say",
        None => "",
    }
    .to_owned()
}

fn quorum(status: &Status, node: &Node) -> String {
    let overall = &status.cluster;
    let Some(quorum) = overall.quorum else { return NOT_KNOWN.to_owned() };
    if node.name != status.here && node.in_partition != Some(true) {
        return if node.in_partition.is_some() { "not in this partition" } else { NOT_KNOWN }.to_owned();
    }
    let votes = overall.votes.zip(overall.expected_votes);
    let votes = votes.map(|(votes, of)| format!(", {votes} of {of} votes")).unwrap_or_default();
    let waits = if overall.waits_for_peer == Some(true) { ", waits for its peer" } else { "" };
    format!("{}{votes}{waits}", if quorum { "yes" } else { "no" })
}

/// Returns Corosync's token time-out, only in the column of the node that the status was asked on. The other node has the same.
fn token(status: &Status, node: &Node) -> String {
    let overall = &status.cluster;
    match overall.token_millis.zip(overall.lost_after_millis) {
        Some((token, lost_after)) if node.name == status.here => {
            format!("{} (lost after {})", millis(token), millis(lost_after))
        }
        _ => String::new(),
    }
}

/// Returns the role of a node's etcd, and whether the node is the configured primary.
pub(super) fn role(status: &Status, node: &Node) -> String {
    let is_primary = status.cluster.primary.as_ref() == Some(&node.name);
    format!("{}{}", role_of_any(node), if is_primary { ", the primary" } else { "" })
}

fn role_of_any(node: &Node) -> String {
    let etcd = &node.etcd;
    match (etcd.role, etcd.lag) {
        (Some(Role::Learner), Some(lag)) => format!("learner, {lag} entries behind"),
        (Some(Role::Voter), _) if etcd.leader.is_none() => "voter, without a leader".to_owned(),
        (Some(role), _) => role.to_string(),
        (None, _) => NOT_KNOWN.to_owned(),
    }
}

fn position(_: &Status, node: &Node) -> String {
    let place = node.etcd.term.zip(node.etcd.index);
    place.map(|(term, index)| format!("{term}, {index}")).unwrap_or_default()
}

fn database(_: &Status, node: &Node) -> String {
    let Some(bytes) = node.etcd.db_bytes else { return String::new() };
    match node.etcd.quota_bytes.filter(|quota| *quota > 0) {
        Some(quota) => format!("{} of {} ({} %)", size(bytes), size(quota), bytes.saturating_mul(100) / quota),
        None => format!("{}, quota not known", size(bytes)),
    }
}

fn alarms(_: &Status, node: &Node) -> String {
    match node.etcd.alarms.as_deref() {
        Some([]) => "none".to_owned(),
        Some(alarms) => alarms.join(", "),
        None => String::new(),
    }
}

fn fence_devices(status: &Status, node: &Node) -> String {
    let Some(devices) = &node.fence_devices else { return NOT_KNOWN.to_owned() };
    if devices.is_empty() {
        return "nothing".to_owned();
    }
    devices.iter().map(|device| self::device(status.at, device)).collect::<Vec<_>>().join("\n")
}

fn device(Time(now): Time, device: &Device) -> String {
    let state = match (device.healthy, &device.runs_on) {
        (Some(true), Some(node)) => format!("runs on {node}"),
        (Some(false), Some(node)) => format!("FAILED on {node}"),
        (Some(_), None) => "stopped".to_owned(),
        (None, _) => NOT_KNOWN.to_owned(),
    };
    let mut text = format!("{}: {state}", device.id);
    if let Some((Time(at), took)) = device.checked.zip(device.check_millis) {
        let _ = write!(text, "\nchecked {} in {}", ago(now, at), millis(took));
    }
    if device.failure.is_some() {
        let login = device.last_login.map_or_else(|| "never".to_owned(), |Time(at)| ago(now, at));
        let _ = write!(text, ", last login {login}");
    }
    text
}

fn last_fencing(status: &Status, node: &Node) -> String {
    let Some(last) = &node.last_fencing else { return String::new() };
    let when = last.completed.map(|Time(at)| format!(", {}", ago(status.at.0, at))).unwrap_or_default();
    format!("{}: {}{when}", last.action, last.result)
}

/// Returns the time until the first of a node's certificates expires, with the name of its file.
fn certificates(status: &Status, node: &Node) -> String {
    let first = node.certificates.iter().flatten().min_by_key(|one| one.ends);
    let file = first.and_then(|first| first.file.rsplit('/').next());
    // If the files are unknown, the certificate that etcd shows is still known.
    let Some(Time(ends)) = first.map(|first| first.ends).or(node.etcd.certificate_ends) else {
        return NOT_KNOWN.to_owned();
    };
    let what = file.unwrap_or("etcd's");
    match ends.checked_sub(status.at.0) {
        Some(left) => format!("{} days ({what})", left / DAY),
        None => format!("ended ({what})"),
    }
}

fn room(_: &Status, node: &Node) -> String {
    let sizes = node.free_bytes.zip(node.size_bytes);
    sizes.map(|(free, whole)| format!("{} of {}", size(free), size(whole))).unwrap_or_default()
}

fn moved_aside(_: &Status, node: &Node) -> String {
    let moved = node.moved_aside.as_deref().unwrap_or_default();
    let bytes = moved.iter().fold(0_u64, |sum, one| sum.saturating_add(one.bytes));
    if moved.is_empty() { String::new() } else { format!("{} in {}", size(bytes), moved.len()) }
}

fn collector(status: &Status, node: &Node) -> String {
    let is_asked = |problem: &Problem| problem.id == "collector-missing" && problem.node.as_ref() == Some(&node.name);
    match node.collected {
        Some(Time(at)) => ago(status.at.0, at),
        None if status.problems.iter().any(is_asked) => "publishes nothing".to_owned(),
        None => NOT_KNOWN.to_owned(),
    }
}
