//! `fencing-agent status` and `metrics`, from the state that the agent writes. A stale state is of a dead agent.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io;
use std::path::Path;
use std::time::Duration;

use serde::Serialize;

use super::shell::state::{Datagrams, Member, State};
use crate::os::clock;

/// The greatest age of a valid state. If the state is older, the agent that wrote it counts as dead or hanging.
const STALE: Duration = Duration::from_secs(5);
/// The states of a member, in the order of their rows in the metrics.
const STATES: [&str; 5] = ["alive", "suspect", "lost", "left", "unseen"];

/// The reason why `fencing-agent status` fails.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unknown {
    #[error("fencing-agent does not run on this machine: 'systemctl start fencing-agent'")]
    NotRunning,
    #[error("the state of fencing-agent cannot be read ({0}): 'systemctl status fencing-agent'")]
    Unreadable(#[from] io::Error),
}

/// The status that `fencing-agent status` prints. The keys of its JSON are these fields.
#[derive(Debug, Serialize)]
pub(super) struct Status {
    format: u32,
    node: String,
    group: String,
    pid: u32,
    fed: bool,
    /// True if the watchdog is not fed although it should be.
    unfed: bool,
    armed: bool,
    deadline: Option<f64>,
    why: Option<String>,
    disarmed: Option<String>,
    device: Option<String>,
    identity: Option<String>,
    timeout: u64,
    on_quorum_loss: String,
    quorum: usize,
    reachable: usize,
    window: f64,
    score: u8,
    suspicions: u64,
    joins: u64,
    leaves: u64,
    datagrams: Vec<Datagrams>,
    dropped: BTreeMap<String, u64>,
    api_up: Option<bool>,
    watch_age: Option<f64>,
    members: Vec<Member>,
}

impl Status {
    pub(super) fn read(dir: &Path) -> Result<Self, Unknown> {
        let state = State::read(dir)?.ok_or(Unknown::NotRunning)?;
        let (age, now) = (state.age(), clock::boot_nanoseconds());
        Ok(Self::of(state, age, now))
    }

    fn of(state: State, age: Duration, now: u64) -> Self {
        let is_stale = (age > STALE).then(|| format!("the agent has written nothing for {} s", age.as_secs()));
        let has_watchdog = state.on_quorum_loss == "watchdog";
        let is_fed = state.fed && is_stale.is_none();
        // A device without the magic close is disarmed and fed. A dead agent no longer feeds it.
        let was_fed_or_armed = has_watchdog && (state.fed || state.disarmed.is_none());
        let is_unfed = !is_fed && (state.unfed.is_some() || (is_stale.is_some() && was_fed_or_armed));
        let why = is_stale.or(state.unfed);
        Self {
            format: 1,
            node: state.node,
            group: state.group,
            pid: state.pid,
            fed: is_fed,
            unfed: is_unfed,
            armed: state.armed,
            deadline: state.deadline.map(|until| seconds_between(now, until)),
            why: why.filter(|_| !is_fed),
            disarmed: state.disarmed.filter(|_| has_watchdog),
            device: state.device,
            identity: state.identity,
            timeout: state.timeout,
            on_quorum_loss: state.on_quorum_loss,
            quorum: state.quorum,
            reachable: state.reachable,
            window: state.window,
            score: state.score,
            suspicions: state.suspicions,
            joins: state.joins,
            leaves: state.leaves,
            datagrams: state.datagrams,
            dropped: state.dropped,
            api_up: state.api_up,
            watch_age: state.watch_age,
            members: state.members,
        }
    }

    /// Returns whether the watchdog is not fed although it should be.
    pub(super) fn is_unfed(&self) -> bool {
        self.unfed
    }

    pub(super) fn json(&self) -> io::Result<String> {
        Ok(serde_json::to_string_pretty(self)?)
    }

    /// Returns the status as text for the operator, without the last line break.
    pub(super) fn text(&self) -> String {
        let why = self.why.as_deref().unwrap_or_default();
        let mut text = match &self.disarmed {
            _ if self.unfed => format!("not fed: {why}"),
            Some(disarmed) => format!("not armed: {disarmed}"),
            None if self.fed => "fed".to_owned(),
            None => format!("no watchdog: on_quorum_loss is {}", self.on_quorum_loss),
        };
        if !self.unfed && !why.is_empty() {
            let _ = write!(text, "; {why}");
        }
        if let (Some(device), Some(identity)) = (&self.device, &self.identity) {
            let _ = write!(text, "\ndevice: {device} ({identity}), time-out {} s", self.timeout);
        }
        let _ = write!(
            text,
            "\nnode: {} of group {}\nreachable: {} of {}, quorum {}",
            self.node,
            self.group,
            self.reachable,
            self.members.len(),
            self.quorum
        );
        for Member { name, state, contacts, round_trip } in &self.members {
            let _ = write!(text, "\n  {name}: {state}");
            if *name == self.node {
                text.push_str(" (this node)");
                continue;
            }
            let newest = contacts.iter().flatten().copied().reduce(f64::min);
            let _ = match newest {
                Some(since) => write!(text, ", last answer {since:.1} s ago"),
                None => write!(text, ", no answer yet"),
            };
            if let Some(millis) = round_trip {
                let _ = write!(text, ", round trip {millis:.1} ms");
            }
        }
        text
    }

    /// Returns the status as metrics in Prometheus' text format, without the last line break.
    pub(super) fn metrics(&self) -> String {
        let mut page = Page::default();
        let states = STATES.map(|state| {
            let count = self.members.iter().filter(|member| member.state == state).count();
            (format!("{{state=\"{state}\"}}"), number(count))
        });
        page.add("members", "gauge", "Listed members by state.", states);
        page.one("quorum", "gauge", "Members that have to be reachable.", number(self.quorum));
        page.one(
            "reachable",
            "gauge",
            "Members that answered within the window, this node among them.",
            number(self.reachable),
        );
        // Without a watchdog nothing should be fed, so there is nothing to alert about.
        if self.on_quorum_loss == "watchdog" {
            page.one("armed", "gauge", "Whether the watchdog is open.", f64::from(u8::from(self.armed)));
            page.one("fed", "gauge", "Whether the watchdog is fed.", f64::from(u8::from(self.fed)));
            let unfed = f64::from(u8::from(self.unfed));
            page.one("unfed", "gauge", "Whether the watchdog is not fed although it should be.", unfed);
        }
        if let Some(deadline) = self.deadline {
            page.one("deadline_seconds", "gauge", "Seconds until feeding ends without another answer.", deadline);
        }
        page.one("health_score", "gauge", "This node's health score: 0 is healthy, 7 is slow.", f64::from(self.score));
        page.one("suspicions_total", "counter", "Suspicions of other members.", count(self.suspicions));
        let events = [("JOIN", self.joins), ("LEFT", self.leaves)];
        let events = events.map(|(kind, total)| (format!("{{type=\"{kind}\"}}"), count(total)));
        page.add("events_total", "counter", "Changes of the list.", events);
        let datagrams = self.datagrams.iter().map(|Datagrams { direction, network, count: total }| {
            (format!("{{direction=\"{direction}\",network=\"{network}\"}}"), count(*total))
        });
        page.add("datagrams_total", "counter", "Datagrams that were sent and received.", datagrams);
        let dropped = self.dropped.iter().map(|(reason, total)| (format!("{{reason=\"{reason}\"}}"), count(*total)));
        page.add("dropped_total", "counter", "Datagrams that were dropped.", dropped);
        if let Some(is_up) = self.api_up {
            page.one("api_up", "gauge", "Whether the API server answered last.", f64::from(u8::from(is_up)));
        }
        if let Some(age) = self.watch_age {
            page.one("watch_age_seconds", "gauge", "Since the watch of the own Node showed anything.", age);
        }
        page.0
    }
}

/// Metrics in Prometheus' text format, without the last line break.
#[derive(Default)]
struct Page(String);

impl Page {
    fn add(&mut self, name: &str, kind: &str, help: &str, rows: impl IntoIterator<Item = (String, f64)>) {
        let line_break = if self.0.is_empty() { "" } else { "\n" };
        let name = format!("tandem_fencing_agent_{name}");
        let _ = write!(self.0, "{line_break}# HELP {name} {help}\n# TYPE {name} {kind}");
        for (labels, value) in rows {
            let _ = write!(self.0, "\n{name}{labels} {value}");
        }
    }

    fn one(&mut self, name: &str, kind: &str, help: &str, value: f64) {
        self.add(name, kind, help, [(String::new(), value)]);
    }
}

fn number(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

#[expect(clippy::cast_precision_loss, reason = "a metric is a number of 53 bits")]
fn count(total: u64) -> f64 {
    total as f64
}

/// Returns the seconds from `now` to `then`. The result is negative if `then` is earlier than `now`. Both times are nanoseconds since
/// boot.
fn seconds_between(now: u64, then: u64) -> f64 {
    let ahead = Duration::from_nanos(then.saturating_sub(now)).as_secs_f64();
    ahead - Duration::from_nanos(now.saturating_sub(then)).as_secs_f64()
}

#[cfg(test)]
mod tests;
