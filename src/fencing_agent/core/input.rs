//! What the core is given: settings once, and then events.

use std::sync::Arc;
use std::time::Duration;

/// The name of a member; cheap to copy.
pub(crate) type Name = Arc<str>;

/// Which networks have to answer so that a member counts as reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum NetworkRule {
    #[default]
    Any,
    All,
}

/// What follows when this node reaches no quorum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum OnQuorumLoss {
    /// The watchdog is not fed, so that the machine resets.
    #[default]
    Watchdog,
    /// No watchdog: local clients learn that this node and all that it cannot reach have left.
    Notify,
    /// No watchdog: log and metrics alone.
    Wait,
}

/// What decides when exactly half of the listed members are reachable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum TieBreaker {
    /// A linearizable read of the Kubernetes API.
    Api,
    /// Nothing: no half is fed.
    #[default]
    None,
}

/// The watchdog device, as far as the shell knows it before it is opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Watchdog {
    /// The path, for the log.
    pub(crate) device: String,
    /// The time-out that will be asked for. [`Event::Opened`] has the one that counts.
    pub(crate) timeout: Duration,
    /// Whether the device was found running at the start: an earlier agent left it so. It is fed at the first contact with a quorum.
    pub(crate) left_running: bool,
}

/// Timings that the operator has set. Each one replaces the value that follows from the number of members.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TimingOverrides {
    pub(crate) gossip: Option<Duration>,
    pub(crate) probe: Option<Duration>,
    /// The lower and the upper time of a suspicion.
    pub(crate) suspicion: Option<(Duration, Duration)>,
    pub(crate) window: Option<Duration>,
}

/// What the agent was configured with. The shell has refused what does not fit together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Settings {
    pub(crate) node: Name,
    /// The number of this start, higher than that of every earlier start of this node; the shell keeps it on disk.
    pub(crate) number: u64,
    /// The listed members, this node among them, in any order.
    pub(crate) members: Vec<Name>,
    /// How many networks each member has; a network's index is below it. At least 1.
    pub(crate) networks: usize,
    pub(crate) network_rule: NetworkRule,
    pub(crate) on_quorum_loss: OnQuorumLoss,
    /// The quorum that the operator has set; otherwise more than half of the listed members.
    pub(crate) quorum: Option<usize>,
    pub(crate) tie_breaker: TieBreaker,
    /// Used with [`OnQuorumLoss::Watchdog`] alone.
    pub(crate) watchdog: Watchdog,
    pub(crate) timing: TimingOverrides,
    /// Whether the health score stretches probes (`timing.lifeguard`).
    pub(crate) lifeguard: bool,
    /// How many deviations of the round trip a probe waits on top of it (`timing.adaptive_threshold`).
    pub(crate) adaptive_threshold: u32,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// The time that [`super::Output::WakeAt`] named has come, or any other moment: it does no harm. The first event after
    /// `Agent::new` is this one.
    Wake,
    /// A datagram, after the shell has opened its seal: `from` is the name that the seal proves. It came on `network`.
    Received { from: Name, network: usize, payload: Vec<u8> },
    /// The list of members is now this one. It may be the same as before.
    Listed(Vec<Name>),
    /// All reasons to be disarmed, as they are now: annotation, deleted Node, taint, file. Empty: none.
    /// The first one means that the shell has looked for them. Until then the agent arms no device that was not running at the start.
    Maintenance(Vec<String>),
    /// The device is open, after [`super::Output::Arm`].
    Opened { identity: String, timeout: Duration, has_magic_close: bool },
    /// The device could not be opened, after [`super::Output::Arm`]. The core asks again 10 s later.
    NotOpened { why: String },
    /// The API server answered a linearizable read of the own Node that was asked for with this `asked`.
    ApiAnswered { asked: Duration },
    /// It did not.
    ApiFailed { asked: Duration },
    /// The service manager or the operator asks for the end.
    Terminate,
}
