//! What the core asks its shell for.

use std::time::Duration;

use super::input::Name;

/// What the shell does, in this order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Output {
    /// Seals `payload` and sends it to a member on one network.
    Send {
        to: Name,
        network: usize,
        payload: Vec<u8>,
    },
    /// Opens the device and feeds it once, in the feeding thread; answered with `Opened` or `NotOpened`. Where the deadline has passed
    /// meanwhile, the thread opens nothing and answers `NotOpened`.
    Arm,
    /// The feeding thread feeds while the time since boot is below this. Also sent while no device is open. It replaces the
    /// earlier deadline, and may lie before it or in the past: zero is never, `Duration::MAX` is for ever.
    FeedUntil(Duration),
    /// Writes `V` and closes the device.
    Disarm,
    /// Sends local clients an event. The shell's list for `GetAll` is [`super::Snapshot::members`] without those that are gone.
    Publish(Change),
    Log(Line),
    /// Writes to disk why the machine is not fed, before it resets; `None` removes it. At the next start the shell logs
    /// `last boot ended unfed: REASON`.
    RememberUnfed(Option<String>),
    /// Reads the own Node from the API server, linearizably; answered with this `asked`. No read takes longer than 2 s.
    AskApi {
        asked: Duration,
    },
    /// Hands in `Event::Wake` at this time at the latest. It replaces the earlier one. Each `handle` ends with one, unless the agent
    /// has ended.
    WakeAt(Duration),
    /// The process ends with exit code 0, after all outputs before this one.
    End,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChangeKind {
    Left,
    Join,
}

/// A change of the list, for local clients. Times are since boot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) kind: ChangeKind,
    pub(crate) name: Name,
    pub(crate) at: Duration,
    /// The member that reported it first.
    pub(crate) source: Name,
    /// When the member was lost: now, or with a join when it was lost before, if it ever was.
    pub(crate) lost_at: Option<Duration>,
}

/// How a line is logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Weight {
    Info,
    Warning,
    /// It may be among the last lines before a reset, so that the journal is synced behind it.
    Synced,
}

/// A line of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) weight: Weight,
    pub(crate) text: String,
}
