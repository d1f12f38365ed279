//! The state for status and metrics.

use std::collections::BTreeMap;
use std::time::Duration;

use super::input::Name;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum MemberState {
    /// Reachable, according to the list of members. This node itself is always alive, unless `on_quorum_loss` `notify` has removed it from
    /// the list.
    Alive,
    /// Suspected, because a probe failed. The member still has time to refute the suspicion.
    Suspect,
    /// Declared lost, or removed because this node lost the quorum.
    Lost,
    /// Left by a leave message, which an agent sends when it is stopped.
    Left,
    /// Listed, but not heard of since this agent started.
    Unseen,
}

impl MemberState {
    /// Returns whether local clients get the member in their list.
    pub(crate) fn is_present(self) -> bool {
        matches!(self, Self::Alive | Self::Suspect)
    }

    /// Returns the name of the state, for `status` and as the label of a metric.
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

/// A listed member with its state. Times are durations since boot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MemberView {
    pub(crate) name: Name,
    pub(crate) state: MemberState,
    /// The time at which the newest answered challenge was sent, for each network; `None` if none was answered.
    pub(crate) contacts: Vec<Option<Duration>>,
    /// The mean round-trip time; `None` before the first answer.
    pub(crate) round_trip: Option<Duration>,
    /// The time at which the member was last lost (`prevDisconnectTime`); `None` if it never was.
    pub(crate) lost_at: Option<Duration>,
}

/// The state of the agent at one time, for `status` and metrics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Snapshot {
    /// All listed members, including this node, sorted by name.
    pub(crate) members: Vec<MemberView>,
    pub(crate) quorum: usize,
    /// The number of members that answered a challenge of the last window (`timing.window`), including this node.
    pub(crate) reachable: usize,
    pub(crate) window: Duration,
    /// True if the watchdog is open and used.
    pub(crate) armed: bool,
    /// True if the deadline for feeding is in the future.
    pub(crate) fed: bool,
    /// The time until which this node is fed if no other member answers; `None` without a quorum.
    pub(crate) deadline: Option<Duration>,
    /// The reason why the watchdog is not armed, in words; `None` if it is armed.
    pub(crate) disarmed_because: Option<String>,
    /// The reason why a watchdog is not fed that is armed, or that an earlier agent left running; `None` if there is none.
    pub(crate) unfed_because: Option<String>,
    /// The health score of this node, from 0 (healthy) to 7.
    pub(crate) score: u8,
    pub(crate) suspicions_total: u64,
    pub(crate) left_total: u64,
    pub(crate) join_total: u64,
    /// The number of received datagrams that the core dropped, by reason.
    pub(crate) dropped_total: BTreeMap<&'static str, u64>,
    /// True if the API server answered the last read; `None` if there was no read.
    pub(crate) api_up: Option<bool>,
}
