//! The state as status and metrics show it.

use std::collections::BTreeMap;
use std::time::Duration;

use super::input::Name;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum MemberState {
    /// Reachable, as far as the list knows. This node itself is, unless `notify` has dropped it.
    Alive,
    /// A probe failed; the member has some time left to refute it.
    Suspect,
    /// Declared lost, or dropped with the quorum.
    Lost,
    /// Left in order.
    Left,
    /// Listed and not heard of since this agent started.
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
    /// When the newest answered challenge was sent, by network; `None` is never.
    pub(crate) contacts: Vec<Option<Duration>>,
    /// The mean round trip.
    pub(crate) round_trip: Option<Duration>,
    /// When the member was lost last, if it ever was (`prevDisconnectTime`).
    pub(crate) lost_at: Option<Duration>,
}

/// The whole state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Snapshot {
    /// All listed members by name, this node among them.
    pub(crate) members: Vec<MemberView>,
    pub(crate) quorum: usize,
    /// Members with contact within the window, this node among them.
    pub(crate) reachable: usize,
    pub(crate) window: Duration,
    /// Whether the device is open and in use.
    pub(crate) armed: bool,
    /// Whether the deadline lies ahead.
    pub(crate) fed: bool,
    /// Until when this node is fed without another answer.
    pub(crate) deadline: Option<Duration>,
    /// Why the device is not armed, in words for people, if it is not.
    pub(crate) disarmed_because: Option<String>,
    /// Why this node is not fed, if it should be.
    pub(crate) unfed_because: Option<String>,
    /// The health score, 0 to 7.
    pub(crate) score: u8,
    pub(crate) suspicions_total: u64,
    pub(crate) left_total: u64,
    pub(crate) join_total: u64,
    /// Datagrams that the core dropped, by reason.
    pub(crate) dropped_total: BTreeMap<&'static str, u64>,
    /// Whether the API server answered the last read; `None` is never asked.
    pub(crate) api_up: Option<bool>,
}
