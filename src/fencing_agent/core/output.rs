//! The outputs of the core: the requests to its shell.

use std::time::Duration;

use super::input::Name;

/// A request of the core to its shell. The shell performs the requests in the order in which it gets them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Output {
    /// Seals `payload` and sends it to the member `to` on one network.
    Send {
        to: Name,
        network: usize,
        payload: Vec<u8>,
    },
    /// Opens the watchdog and feeds it once, in the feeding thread. The shell responds with `Opened` or `NotOpened`. If the deadline of
    /// `FeedUntil` has passed, the thread opens nothing and responds with `NotOpened`.
    Arm,
    /// Sets the deadline of the feeding thread, which feeds the watchdog while the time since boot is below it. It is also sent while no
    /// watchdog is open. It replaces the earlier deadline, even by an earlier time. Zero means never, and `Duration::MAX` means forever.
    FeedUntil(Duration),
    /// Writes `V` to the watchdog, which disarms it, and closes it.
    Disarm,
    /// Sends a change of the member list to local clients. For the whole list, a client calls `GetAll`, which the shell answers with those
    /// of [`super::Snapshot::members`] that are present.
    Publish(Change),
    Log(Line),
    /// Writes to disk why the watchdog is not fed, before the machine resets; `None` removes the file. At the next start the shell logs
    /// `last boot ended unfed: REASON`.
    RememberUnfed(Option<String>),
    /// Reads this node's Node object from the API server by a linearizable read of at most 2 s. The response has the same `asked`.
    AskApi {
        asked: Duration,
    },
    /// Requests `Event::Wake` at this time at the latest, and replaces the earlier request. Each `handle` ends with this output, unless
    /// the agent has ended.
    WakeAt(Duration),
    /// Ends the process with exit code 0, after all earlier outputs.
    End,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChangeKind {
    Left,
    Join,
}

/// A change of the member list, for local clients. Times are durations since boot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) kind: ChangeKind,
    pub(crate) name: Name,
    pub(crate) at: Duration,
    /// The member that first reported this change.
    pub(crate) source: Name,
    /// The time at which the member was lost. In a join, it is the time of the member's last loss, or `None` if it was never lost.
    pub(crate) lost_at: Option<Duration>,
}

/// The level of a log line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Weight {
    Info,
    Warning,
    /// A warning that may be among the last lines before a reset. The journal is synced to disk after it.
    Synced,
}

/// A log line with its level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) weight: Weight,
    pub(crate) text: String,
}
