//! The outputs of the core: the requests to its shell.

use std::time::Duration;

use super::input::Name;

/// The actions of the shell, in this order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Output {
    /// Seals `payload` and sends it to a member on one network.
    Send {
        to: Name,
        network: usize,
        payload: Vec<u8>,
    },
    /// Opens the device and feeds it once, in the feeding thread. The answer is `Opened` or `NotOpened`. If the deadline has
    /// passed meanwhile, the thread opens nothing and answers `NotOpened`.
    Arm,
    /// Sets the deadline of the feeding thread, which feeds while the time since boot is below it. Also sent while no device is
    /// open. It replaces the earlier deadline, and may be before it or in the past: zero is never, and `Duration::MAX` is
    /// forever.
    FeedUntil(Duration),
    /// Writes `V` and closes the device.
    Disarm,
    /// Sends an event to local clients. The shell's list for `GetAll` is [`super::Snapshot::members`] without the absent ones.
    Publish(Change),
    Log(Line),
    /// Writes to disk the reason why the machine is not fed, before it resets; `None` removes it. At the next start the shell
    /// logs `last boot ended unfed: REASON`.
    RememberUnfed(Option<String>),
    /// Reads the own Node from the API server by a linearizable read. The answer has this `asked`. No read takes longer than 2 s.
    AskApi {
        asked: Duration,
    },
    /// Requests `Event::Wake` at this time at the latest, in place of the earlier one. Each `handle` ends with this output,
    /// unless the agent has ended.
    WakeAt(Duration),
    /// Ends the process with exit code 0, after all outputs before this one.
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
    /// The member that first reported the change.
    pub(crate) source: Name,
    /// The time at which the member was lost: now, or for a join the time of an earlier loss, if there was one.
    pub(crate) lost_at: Option<Duration>,
}

/// The level of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Weight {
    Info,
    Warning,
    /// A warning that may be among the last lines before a reset. The journal is synced after it.
    Synced,
}

/// A line of the log, with its level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) weight: Weight,
    pub(crate) text: String,
}
