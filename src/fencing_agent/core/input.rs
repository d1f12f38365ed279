//! The inputs of the core: settings once, and then events.

use std::sync::Arc;
use std::time::Duration;

/// The name of a member; cheap to copy.
pub(crate) type Name = Arc<str>;

/// The networks that must answer for a member to count as reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum NetworkRule {
    #[default]
    Any,
    All,
}

/// The consequence when this node reaches no quorum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum OnQuorumLoss {
    /// The watchdog is not fed, so the machine resets.
    #[default]
    Watchdog,
    /// No watchdog is used. Local clients see this node and all members that it cannot reach as having left.
    Notify,
    /// No watchdog is used. The loss only appears in log and metrics.
    Wait,
}

/// The source that decides when exactly half of the listed members are reachable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum TieBreaker {
    /// A linearizable read of the Kubernetes API.
    Api,
    /// No source, so no half is fed.
    #[default]
    None,
}

/// The watchdog device, as far as the shell knows it before the opening.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Watchdog {
    /// The path, for the log.
    pub(crate) device: String,
    /// The time-out that will be requested. [`Event::Opened`] has the effective one.
    pub(crate) timeout: Duration,
    /// Whether the device was found running at the start, because an earlier agent left it so. It is fed at the first contact
    /// with a quorum.
    pub(crate) left_running: bool,
}

/// The timings that the operator has set. Each one replaces the value for the number of members.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TimingOverrides {
    pub(crate) gossip: Option<Duration>,
    pub(crate) probe: Option<Duration>,
    /// The lower and the upper time of a suspicion.
    pub(crate) suspicion: Option<(Duration, Duration)>,
    pub(crate) window: Option<Duration>,
}

/// The agent's configuration. The shell has refused settings that do not fit together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Settings {
    pub(crate) node: Name,
    /// The number of this start, higher than that of every earlier start of this node. The shell keeps it on disk.
    pub(crate) number: u64,
    /// The listed members, this node among them, in any order.
    pub(crate) members: Vec<Name>,
    /// The number of networks of each member, at least 1. A network's index is below it.
    pub(crate) networks: usize,
    pub(crate) network_rule: NetworkRule,
    pub(crate) on_quorum_loss: OnQuorumLoss,
    /// The quorum that the operator has set; otherwise more than half of the listed members.
    pub(crate) quorum: Option<usize>,
    pub(crate) tie_breaker: TieBreaker,
    /// The watchdog, used only with [`OnQuorumLoss::Watchdog`].
    pub(crate) watchdog: Watchdog,
    pub(crate) timing: TimingOverrides,
    /// Whether the health score stretches probes (`timing.lifeguard`).
    pub(crate) lifeguard: bool,
    /// The number of the round trip's deviations that a probe waits in addition (`timing.adaptive_threshold`).
    pub(crate) adaptive_threshold: u32,
}

/// An input of the core.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// The time of [`super::Output::WakeAt`] has come. A wake-up at any other moment does no harm. This is the first event after
    /// `Agent::new`.
    Wake,
    /// A datagram arrived on `network`, and the shell has opened its seal. `from` is the name that the seal proves.
    Received { from: Name, network: usize, payload: Vec<u8> },
    /// The list of members is now this one. It may be unchanged.
    Listed(Vec<Name>),
    /// The present reasons to be disarmed: annotation, deleted Node, taint, file. An empty list means none. The first event shows
    /// that the shell has checked them. Until then the agent arms no device that was not running at the start.
    Maintenance(Vec<String>),
    /// The device is open, after [`super::Output::Arm`].
    Opened { identity: String, timeout: Duration, has_magic_close: bool },
    /// The device could not be opened, after [`super::Output::Arm`]. The core asks again 10 s later.
    NotOpened { why: String },
    /// The API server answered a linearizable read of the own Node that was asked for with this `asked`.
    ApiAnswered { asked: Duration },
    /// The API server did not answer it.
    ApiFailed { asked: Duration },
    /// The service manager or the operator asks for the end.
    Terminate,
}
