//! Reads and appends the file of events, one line for each cause. Pacemaker's alerts and the collector's observations are
//! turned into events in `crate::operate::events`, the agent's own decisions in [`own`]. `tandem events` reads them
//! ([`read`]).
//!
//! A file holds the events of its own node: what Pacemaker reports to that node, and what its agent did.

mod append;
mod details;
mod fields;
mod files;
pub mod own;
mod place;
pub mod read;
mod time;

use serde::{Deserialize, Serialize};

use crate::base::printable;

pub use append::{Error, Repeat, append, make_directory};
pub use details::Details;
pub use files::FILES;

/// The directory of the events. The package creates it. It is below Pacemaker's own directory, because the alert agents, which run as
/// Pacemaker's user, write there. That user's group may read there.
pub const DIRECTORY: &str = "/var/lib/pacemaker/tandem";
/// The longest message of an event in bytes. With this limit a line is shorter than 4096 bytes, which one write never splits.
const MESSAGE_LIMIT: usize = 1500;
/// The longest message of an event with details, in bytes.
const MESSAGE_BESIDE_DETAILS: usize = 500;
/// The longest cause of an event, in bytes.
const CAUSE_LIMIT: usize = 500;
/// The longest name of a node in an event, in bytes.
const NODE_LIMIT: usize = 255;
/// The greatest number of an event. Readers of JSON are exact only up to this number, so a line with a greater one is not read.
const HIGHEST: u64 = 1 << 53;
/// The number of events in a file after which a new file begins. The full file is kept until the new file is full, too. A recipient that
/// was down can therefore receive at least this many events.
pub const KEPT: u64 = 10_000;

/// The severity of an event, in the words of Kubernetes' events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Type {
    /// An event about a recovery, or for information only.
    Normal,
    /// An event that an operator may have to check. Each start, stop and fencing counts as such an event.
    Warning,
    /// An event about a change to an unhealthy state.
    Error,
}

impl Type {
    /// Returns the severity as a word, for a line that people read.
    pub fn word(self) -> &'static str {
        match self {
            Self::Normal => "Normal",
            Self::Warning => "Warning",
            Self::Error => "Error",
        }
    }
}

/// An event on a node, for operators and monitoring. Its reason is the one that OpenShift's etcd operator uses for the same event, if there
/// is one.
///
/// Reading an event cleans its texts and checks its other fields ([`fields`]), because other programs may write the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// The number of the event. Each node numbers its events in ascending order, when they are appended to its file.
    #[serde(default, deserialize_with = "fields::number")]
    pub number: u64,
    /// The time of the event in milliseconds since 1970. In the file it is a text as in RFC 3339.
    #[serde(with = "time")]
    pub time: u64,
    #[serde(rename = "type")]
    pub kind: Type,
    #[serde(deserialize_with = "fields::reason")]
    pub reason: String,
    /// The node that the event is about.
    #[serde(deserialize_with = "fields::node")]
    pub node: String,
    #[serde(deserialize_with = "fields::message")]
    pub message: String,
    /// The cause of the event. Two events with the same cause report the same fact.
    #[serde(deserialize_with = "fields::cause")]
    pub cause: String,
    /// The details of the event for programs: short texts by name.
    #[serde(default, skip_serializing_if = "Details::is_empty", deserialize_with = "details::details")]
    pub details: Details,
}

impl Event {
    /// Creates an event that has no number, because it is not appended yet.
    pub fn new(time: u64, kind: Type, reason: &str, node: &str, message: String, cause: String) -> Self {
        let (reason, node) = (reason.to_owned(), cut(node.to_owned(), NODE_LIMIT));
        let (message, cause) = (cut(message, MESSAGE_LIMIT), cut(cause, CAUSE_LIMIT));
        Self { number: 0, time, kind, reason, node, message, cause, details: Details::new() }
    }

    /// Adds details to the event. Omits details beyond the limits, and shortens the message to make room for details.
    #[must_use]
    pub fn with_details<'a>(self, details: impl IntoIterator<Item = (&'a str, String)>) -> Self {
        let details = details::bounded(details.into_iter().map(|(name, text)| (name.to_owned(), text)));
        Self { message: cut(self.message, MESSAGE_BESIDE_DETAILS), details, ..self }
    }

    /// Returns the event as a line that people read.
    pub fn line(&self) -> String {
        format!(
            "{}  {:<7}  {:<29}  {:<12}  {}",
            time::text(self.time),
            self.kind.word(),
            self.reason,
            self.node,
            self.message
        )
    }
}

/// The reasons of events: one word for each kind of event.
pub mod reason {
    /// The reason of an event: Pacemaker fenced a node, or failed to.
    pub const FENCING: &str = "PacemakerFencingEvent";
    pub const FAILED_ACTION: &str = "PacemakerFailedResourceAction";
    pub const NODE_OFFLINE: &str = "PacemakerNodeOffline";
    pub const NODE_ONLINE: &str = "PacemakerNodeOnline";
    /// The reason of an event: a node is in standby or maintenance, is shutting down, or has bad health.
    pub const NODE_UNHEALTHY: &str = "PacemakerNodeUnhealthy";
    pub const NODE_HEALTHY: &str = "PacemakerNodeHealthy";
    pub const RESOURCE_STARTED: &str = "PacemakerResourceStarted";
    pub const RESOURCE_STOPPED: &str = "PacemakerResourceStopped";
    pub const RESOURCE_UNHEALTHY: &str = "PacemakerResourceUnhealthy";
    pub const IN_MAINTENANCE: &str = "PacemakerClusterInMaintenance";
    pub const OUT_OF_MAINTENANCE: &str = "PacemakerClusterInService";
    pub const STATUS_STALE: &str = "PacemakerStatusStale";
    pub const HEALTHY: &str = "PacemakerHealthy";
    /// The reason of an event: a node runs etcd standalone.
    pub const ALONE: &str = "EtcdAlone";
    /// The reason of an event: a node that booted without its peer is the sole voter, and serves.
    pub const LONE_BOOT: &str = "EtcdLoneBoot";
    /// The reason of an event: etcd has two voters again.
    pub const REDUNDANT: &str = "EtcdRedundant";
    /// The reason of an event: the etcd of a node has become the leader.
    pub const LEADER: &str = "EtcdLeader";
    pub const REFUSED: &str = "EtcdRefused";
    pub const ALARM: &str = "EtcdAlarm";
    pub const ALARM_GONE: &str = "EtcdAlarmGone";
    pub const HISTORIES_SPLIT: &str = "EtcdHistoriesSplit";
    /// The reason of an event: an operator gave up writes that the other node may have acknowledged.
    pub const GIVEN_UP: &str = "EtcdWritesGivenUp";
    /// The reason of an event: a node gave up its data for the other node's data. It stores the given-up data, because some writes may be
    /// only there.
    pub const HISTORY_GIVEN_UP: &str = "EtcdHistoryGivenUp";
    /// The reason of an event: a voter's Machine is being deleted, and another machine of the control plane has no etcd member yet.
    pub const REPLACEMENT_DUE: &str = "MemberReplacementDue";
    /// The reason of an event: another program has removed the agent's deletion hook from a voter's Machine three times. The agent no
    /// longer restores the hook.
    pub const HOOK_GIVEN_UP: &str = "MachineHookGivenUp";
    pub const CERTIFICATE: &str = "CertificateEnds";
    /// The reason of an event: a fence device and the OpenShift Secret of its node have different values.
    pub const SECRET_DIFFERS: &str = "FencingSecretDiffers";
    /// The reason of an event: the oldest events were dropped before a recipient received them, because the recipient was down for a long
    /// time.
    pub const LOST: &str = "TandemEventsLost";
    /// The reason of an event that the operator has sent by `tandem events test`.
    pub const TEST: &str = "TandemTest";

    pub const ALL: &[&str] = &[
        FENCING,
        FAILED_ACTION,
        NODE_OFFLINE,
        NODE_ONLINE,
        NODE_UNHEALTHY,
        NODE_HEALTHY,
        RESOURCE_STARTED,
        RESOURCE_STOPPED,
        RESOURCE_UNHEALTHY,
        IN_MAINTENANCE,
        OUT_OF_MAINTENANCE,
        STATUS_STALE,
        HEALTHY,
        ALONE,
        LONE_BOOT,
        REDUNDANT,
        LEADER,
        REFUSED,
        ALARM,
        ALARM_GONE,
        HISTORIES_SPLIT,
        GIVEN_UP,
        HISTORY_GIVEN_UP,
        REPLACEMENT_DUE,
        HOOK_GIVEN_UP,
        CERTIFICATE,
        SECRET_DIFFERS,
        LOST,
        TEST,
    ];
}

/// Returns `text` as one line of at most `limit` bytes.
pub fn cut(mut text: String, limit: usize) -> String {
    if text.len() > limit {
        let end = (0..=limit).rev().find(|at| text.is_char_boundary(*at)).unwrap_or_default();
        text.truncate(end);
    }
    printable::one_line(&text).into_owned()
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod limits {
    use super::*;

    #[test]
    fn the_longest_event_fits_into_one_write() {
        let long = |letter: &str| letter.repeat(10_000);
        let event = Event::new(u64::MAX / 2, Type::Warning, reason::FAILED_ACTION, "node1", long("\""), long("\u{1}"));
        let line = serde_json::to_string(&Event { time: 1, number: u64::MAX, ..event }).unwrap();
        assert!(line.len() < 4096, "{}", line.len());
        let names: Vec<String> = (0..20).map(|number| format!("name_{number}")).collect();
        let details = names.iter().map(|name| (name.as_str(), "\"".repeat(120)));
        let event = Event::new(1, Type::Warning, reason::FAILED_ACTION, &long("\""), long("\""), long("\""));
        let event = event.with_details(details.chain([("Not a word", "x".to_owned())]));
        assert!(event.details.len() > 3 && !event.details.contains_key("Not a word"), "{:?}", event.details);
        let line = serde_json::to_string(&Event { number: HIGHEST, ..event }).unwrap();
        assert!(line.len() < 4096, "{}", line.len());
        assert_eq!(cut("ä\nb".repeat(3), 5), "ä b");
    }
}
