//! The state for status and metrics.

use std::collections::BTreeMap;
use std::time::Duration;

use super::input::Name;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum MemberState {
    /// Reachable as far as the list knows. This node itself always is, unless `notify` has removed it.
    Alive,
    /// A probe failed, and the member has some time left to refute it.
    Suspect,
    /// Declared lost, or removed with the loss of the quorum.
    Lost,
    /// Left cleanly.
    Left,
    /// Listed, and not heard of since this agent started.
    Unseen,
}

impl MemberState {
    /// Returns whether local clients see the member in the list.
    pub(crate) fn is_present(self) -> bool {
        matches!(self, Self::Alive | Self::Suspect)
    }

    /// Returns the word for status and the label of the metric.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Alive => "alive",
            Self::Suspect => "suspect",
            Self::Lost => "lost",
            Self::Left => "left",
            Self::Unseen => "unseen",
        }
    }
}

/// A listed member. Times are since boot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MemberView {
    pub(crate) name: Name,
    pub(crate) state: MemberState,
    /// The time at which the newest answered challenge was sent, by network; `None` is never.
    pub(crate) contacts: Vec<Option<Duration>>,
    /// The mean round trip.
    pub(crate) round_trip: Option<Duration>,
    /// The time at which the member was last lost, if it ever was (`prevDisconnectTime`).
    pub(crate) lost_at: Option<Duration>,
}

/// The whole state, as of one time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Snapshot {
    /// All listed members by name, including this node.
    pub(crate) members: Vec<MemberView>,
    pub(crate) quorum: usize,
    /// The members with contact within the window, including this node.
    pub(crate) reachable: usize,
    pub(crate) window: Duration,
    /// Whether the device is open and in use.
    pub(crate) armed: bool,
    /// Whether the deadline is in the future.
    pub(crate) fed: bool,
    /// The time until which this node is fed without another answer.
    pub(crate) deadline: Option<Duration>,
    /// The reason why the device is not armed, in words for people.
    pub(crate) disarmed_because: Option<String>,
    /// The reason why this node is not fed although it should be.
    pub(crate) unfed_because: Option<String>,
    /// The health score, 0 to 7.
    pub(crate) score: u8,
    pub(crate) suspicions_total: u64,
    pub(crate) left_total: u64,
    pub(crate) join_total: u64,
    /// The datagrams that the core dropped, by reason.
    pub(crate) dropped_total: BTreeMap<&'static str, u64>,
    /// Whether the API server answered the last read; `None` if it was never asked.
    pub(crate) api_up: Option<bool>,
}
