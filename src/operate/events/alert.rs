//! Turns Pacemaker's alerts into events. Pacemaker calls the alert agent once for each recipient, several at once, as
//! its own user. The agent appends one line and ends; the collector delivers it to the recipients.

use crate::adapters::ocf::alert::{Alert, Kind, Operation};
use crate::adapters::options::yes_no;
use crate::os::clock;
use crate::records::events::{Event, Repeat, Type, append, cut, reason};

/// Returns the event of a Pacemaker alert, or `None` if the alert is of no interest to an operator.
pub fn event(alert: &Alert) -> Option<Event> {
    let told = match &alert.kind {
        Kind::Node => node(alert),
        Kind::Fencing { action, done } => Some(fencing(alert, action, *done)),
        Kind::Resource(operation) => resource(alert, operation),
        Kind::Attribute { name, value } => attribute(alert, name, value),
        Kind::Other => None,
    }?;
    let (kind, reason, message) = told;
    // An alert without a time has just happened.
    let time = if alert.time == 0 { clock::wall_millis() } else { alert.time };
    Some(Event::new(time, kind, reason, &alert.node, message, cause(alert)))
}

/// Returns a text that identifies the cause of an alert. It is equal in the alerts that Pacemaker sends for one cause to several
/// recipients.
fn cause(alert: &Alert) -> String {
    let what = match &alert.kind {
        Kind::Node | Kind::Other => format!("node {}", alert.description),
        Kind::Fencing { .. } => format!("fencing {}", alert.description),
        Kind::Resource(operation) => {
            format!("{} {} {} {}", operation.resource, operation.task, operation.interval, operation.rc)
        }
        Kind::Attribute { name, value } => format!("{name}={value}"),
    };
    format!("{} {} {what}", alert.stamp, alert.node)
}

/// End of a message about a failure. Pacemaker gives an alert agent only a word such as "error". The agent's user has no right to read
/// the reason.
const HAS_THE_REASON: &str = "'tandem status' has the reason";

type Told = (Type, &'static str, String);

fn node(alert: &Alert) -> Option<Told> {
    let name = &alert.node;
    match alert.description.as_str() {
        "lost" => Some((Type::Error, reason::NODE_OFFLINE, format!("{name} is lost: it left the cluster"))),
        "member" => Some((Type::Normal, reason::NODE_ONLINE, format!("{name} is a member of the cluster"))),
        _ => None,
    }
}

fn fencing(alert: &Alert, action: &str, done: bool) -> Told {
    let words = &alert.description;
    let node = &alert.node;
    match (done, action) {
        (true, "on") => (Type::Warning, reason::FENCING, format!("{node} was switched on: {words}")),
        (true, _) => (Type::Warning, reason::FENCING, format!("{node} was fenced: {words}")),
        (false, _) => (Type::Error, reason::FENCING, format!("{node} could not be fenced: {words}; {HAS_THE_REASON}")),
    }
}

/// Returns the event of an operation on a resource. Returns `None` for cancelled and pending operations,
/// notifications, and expected results of probes.
fn resource(alert: &Alert, operation: &Operation) -> Option<Told> {
    const CANCELLED: i32 = 1;
    const UNDER_WAY: i32 = -1;
    /// OCF's return codes for the expected results of a probe: running, stopped, promoted.
    const FOUND: [i32; 3] = [0, 7, 8];
    let Operation { resource, task, interval, rc, target, status } = operation;
    let is_probe = task == "monitor" && *interval == 0;
    let is_over = ![CANCELLED, UNDER_WAY].contains(status);
    if !is_over || is_probe && FOUND.contains(rc) || task == "notify" && rc == target {
        return None;
    }
    let node = &alert.node;
    if rc != target {
        let words = &alert.description;
        let message = format!("{task} of {resource} on {node} failed: {words} ({rc}); {HAS_THE_REASON}");
        return Some((Type::Error, reason::FAILED_ACTION, message));
    }
    let (reason, words) = match task.as_str() {
        "start" => (reason::RESOURCE_STARTED, "started"),
        "stop" => (reason::RESOURCE_STOPPED, "stopped"),
        "promote" => (reason::RESOURCE_STARTED, "promoted"),
        "demote" => (reason::RESOURCE_STOPPED, "demoted"),
        _ => return None,
    };
    Some((Type::Warning, reason, format!("{resource} was {words} on {node}")))
}

/// Returns the event of a node attribute that was changed. Returns `None` for a failure count, because the alert of
/// the failed operation has reported it. Returns `None` for etcd's attributes, because the etcd agent reports them.
fn attribute(alert: &Alert, name: &str, value: &str) -> Option<Told> {
    let node = &alert.node;
    let is_set = !value.is_empty() && yes_no::of_pacemaker(value) != Some(false);
    let words = match name {
        "standby" if is_set => "is in standby",
        "standby" => "is not in standby any more",
        "maintenance" if is_set => "is in maintenance",
        "maintenance" => "is not in maintenance any more",
        "shutdown" if is_set => "shuts down",
        "#node-health" | "#health" if value == "red" => "is in bad health",
        _ if name.starts_with("#health-") && value == "red" => "is in bad health",
        _ => return None,
    };
    let told = if words.ends_with("any more") {
        (Type::Normal, reason::NODE_HEALTHY)
    } else {
        (Type::Error, reason::NODE_UNHEALTHY)
    };
    Some((told.0, told.1, cut(format!("{node} {words} ({name}={value})"), 200)))
}

/// Appends the event of `alert` to the events of this node. Drops repeats within 5 s of an alert without a time, because Pacemaker
/// runs the alert agent once for each recipient.
pub fn tell(directory: &std::path::Path, alert: &Alert) -> Result<(), crate::records::events::Error> {
    const AT_ONCE: Repeat<'static> = Repeat::Until { ends: &[], within: 5000 };
    let repeat = if alert.time == 0 { AT_ONCE } else { Repeat::Never };
    event(alert).map_or(Ok(()), |event| append(directory, event, repeat).map(drop))
}

#[cfg(test)]
mod tests;
