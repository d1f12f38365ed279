//! The inputs of the core: settings once, and then events.

use std::sync::Arc;
use std::time::Duration;

/// The name of a member. Copies share the text.
pub(crate) type Name = Arc<str>;

/// The number of a member's networks that must answer so that the member counts as reached: any one, or all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum NetworkRule {
    #[default]
    Any,
    All,
}

/// The consequence when this node loses the quorum (`on_quorum_loss`).
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

/// The tie-breaker that decides while exactly half of the listed members are reachable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum TieBreaker {
    /// The Kubernetes API. A node that reaches half of the members is fed while the API server answers its linearizable reads.
    Api,
    /// No tie-breaker. A node that reaches exactly half of the members is not fed.
    #[default]
    None,
}

/// The watchdog device, as far as it is known before it is opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Watchdog {
    /// Path of the watchdog device, for the log.
    pub(crate) device: String,
    /// The time-out that will be requested from the device. [`Event::Opened`] has the effective one.
    pub(crate) timeout: Duration,
    /// True if the device was running at the start because an earlier agent left it so. It is then fed from the first contact with a
    /// quorum.
    pub(crate) left_running: bool,
}

/// The timings that the operator has configured. Each one replaces its default, which depends on the number of members.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TimingOverrides {
    pub(crate) gossip: Option<Duration>,
    pub(crate) probe: Option<Duration>,
    /// The shortest and the longest duration of a suspicion.
    pub(crate) suspicion: Option<(Duration, Duration)>,
    pub(crate) window: Option<Duration>,
}

/// The agent's configuration. The shell has already refused combinations that do not fit together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Settings {
    pub(crate) node: Name,
    /// The number of this start of the agent, higher than that of every earlier start on this node. The shell keeps it on disk.
    pub(crate) number: u64,
    /// The names of the listed members, including this node, in any order.
    pub(crate) members: Vec<Name>,
    /// The number of networks of each member, at least 1. Networks are numbered from 0.
    pub(crate) networks: usize,
    pub(crate) network_rule: NetworkRule,
    pub(crate) on_quorum_loss: OnQuorumLoss,
    /// The number of members for a quorum, as the operator has configured it; `None` for more than half of the listed members.
    pub(crate) quorum: Option<usize>,
    pub(crate) tie_breaker: TieBreaker,
    /// The watchdog device. It is only used with [`OnQuorumLoss::Watchdog`].
    pub(crate) watchdog: Watchdog,
    pub(crate) timing: TimingOverrides,
    /// True if a worse health score of this node lengthens its probes (`timing.lifeguard`).
    pub(crate) lifeguard: bool,
    /// The factor of the mean deviation in the waiting time of a probe (`timing.adaptive_threshold`). A probe waits for the mean
    /// round-trip time plus this number of mean deviations.
    pub(crate) adaptive_threshold: u32,
}

/// An event for [`super::Agent::handle`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// The time of [`super::Output::WakeAt`] has come. A wake-up at another time does no harm. The first event after `Agent::new` is a
    /// `Wake`.
    Wake,
    /// A datagram arrived on the network `network`, and the shell has authenticated and decrypted it. The authentication proves the
    /// sender's name `from`.
    Received { from: Name, network: usize, payload: Vec<u8> },
    /// The names of the listed members, which may be unchanged.
    Listed(Vec<Name>),
    /// The present reasons for not using the watchdog: annotation, deleted Node, taint, or file. An empty list means none. Before the
    /// first event of this kind, the agent opens only a watchdog that was left running.
    Maintenance(Vec<String>),
    /// The watchdog was opened, as [`super::Output::Arm`] requested.
    Opened { identity: String, timeout: Duration, has_magic_close: bool },
    /// The watchdog could not be opened, as [`super::Output::Arm`] requested. The agent requests it again after a pause of 10 s, or 1 s
    /// if the watchdog was left running.
    NotOpened { why: String },
    /// The API server answered a linearizable read of this node's Node object. The output [`super::Output::AskApi`] with the same `asked`
    /// requested the read.
    ApiAnswered { asked: Duration },
    /// The API server did not answer the read that [`super::Output::AskApi`] with the same `asked` requested.
    ApiFailed { asked: Duration },
    /// The service manager or the operator requests that the agent end.
    Terminate,
}
