//! A machine: its agent, the work of the agent's shell, and a watchdog.

use std::collections::BTreeMap;
use std::time::Duration;

use super::mutant::Mutant;
use crate::fencing_agent::core::{
    Agent, Name, NetworkRule, OnQuorumLoss, Settings, TieBreaker, TimingOverrides, Watchdog,
};

/// The time after which the watchdog device resets a machine if no agent feeds it.
pub(super) const TIMEOUT: Duration = Duration::from_secs(15);
/// The amount by which a machine's wall clock is ahead of the simulated time at the beginning of a run.
const WALL: Duration = Duration::from_secs(1_000);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Device {
    Closed,
    /// The device is armed, and resets the machine unless an agent feeds it. `fed` is the time of the last feeding. `is_held` is true
    /// if the running agent has opened the device and feeds it.
    Running {
        fed: Duration,
        is_held: bool,
    },
}

#[derive(Debug)]
pub(super) struct Machine {
    pub(super) agent: Option<Agent>,
    /// A number that rises with each start and end of an agent on this machine. An event with a lower number is for an earlier agent,
    /// and is dropped.
    pub(super) life: u32,
    /// The number of starts that the agent keeps on disk.
    pub(super) number: u64,
    pub(super) wakes_at: Duration,
    pub(super) is_frozen: bool,
    pub(super) device: Device,
    /// The time until which the feeding thread may feed the watchdog.
    pub(super) deadline: Duration,
    /// The time since which the machine does not answer, because it is off, frozen or without an agent; `None` if it answers.
    pub(super) silent_since: Option<Duration>,
    /// The time since which the machine has had a quorum without a gap; `None` if it has none.
    pub(super) quorum_since: Option<Duration>,
    /// The total time by which the machine's wall clock was set back.
    pub(super) set_back: Duration,
    /// The time at which this machine sent each of its challenges that is not yet answered, by the challenge's nonce.
    pub(super) sent: BTreeMap<u64, Duration>,
    /// The nonce of the newest challenge that this machine sent to each other machine, by the other machine's index.
    pub(super) newest: BTreeMap<usize, u64>,
    /// The time from the challenge to the answer that arrives now; 0 if no answer arrives.
    pub(super) under_way: Duration,
    /// Two numbers of bytes: all that the machine has sent, and those that it had sent when the current interval of ten seconds
    /// began.
    pub(super) bytes: (u64, u64),
    /// The time since which the agent suspects each member. It is recorded only during a fault in which the machine's links lose most
    /// datagrams.
    pub(super) suspects: BTreeMap<Name, Duration>,
}

impl Machine {
    pub(super) fn new() -> Self {
        Self {
            agent: None,
            life: 0,
            number: 0,
            wakes_at: Duration::ZERO,
            is_frozen: false,
            device: Device::Closed,
            deadline: Duration::ZERO,
            silent_since: Some(Duration::ZERO),
            quorum_since: None,
            set_back: Duration::ZERO,
            sent: BTreeMap::new(),
            newest: BTreeMap::new(),
            under_way: Duration::ZERO,
            bytes: (0, 0),
            suspects: BTreeMap::new(),
        }
    }

    /// Starts an agent as its service does. The agent gets the member list from disk and a number of starts that is higher by one, and
    /// learns whether the watchdog is already armed.
    pub(super) fn start(&mut self, now: Duration, me: &Name, members: &[Name], mutant: Mutant) {
        self.life += 1;
        self.number += u64::from(mutant != Mutant::NumberReused || self.number == 0);
        let left_running = self.device != Device::Closed;
        let has_list = mutant != Mutant::LastListIgnored || self.life == 1;
        let members = if has_list { members.to_vec() } else { vec![me.clone()] };
        self.deadline = Duration::ZERO;
        if left_running && mutant == Mutant::FedBeforeContact {
            self.device = Device::Running { fed: now, is_held: true };
            self.deadline = now + Duration::from_secs(3);
        }
        let settings = Settings {
            node: me.clone(),
            number: self.number,
            members,
            networks: 1,
            network_rule: NetworkRule::Any,
            on_quorum_loss: OnQuorumLoss::Watchdog,
            quorum: None,
            tie_breaker: TieBreaker::Api,
            watchdog: Watchdog { device: "/dev/watchdog".to_owned(), timeout: TIMEOUT, left_running },
            timing: TimingOverrides::default(),
            lifeguard: true,
            adaptive_threshold: 4,
        };
        self.agent = Some(Agent::new(self.clock(now, mutant), settings));
        self.silent_since = None;
        self.sent.clear();
        self.newest.clear();
        self.suspects.clear();
    }

    /// Ends the agent without a notice to the other members. If the watchdog device is armed, it stays armed.
    pub(super) fn kill(&mut self, now: Duration) {
        self.agent = None;
        self.is_frozen = false;
        self.life += 1;
        self.silent_since.get_or_insert(now);
        if let Device::Running { is_held, .. } = &mut self.device {
            *is_held = false;
        }
    }

    /// Returns the time that the machine's agent reads from its clock.
    pub(super) fn clock(&self, now: Duration, mutant: Mutant) -> Duration {
        if mutant == Mutant::WallClock { (now + WALL).saturating_sub(self.set_back) } else { now }
    }

    /// Returns the simulated time at which the agent's clock shows `agents`.
    pub(super) fn moment(&self, agents: Duration, mutant: Mutant) -> Duration {
        if mutant == Mutant::WallClock { (agents + self.set_back).saturating_sub(WALL) } else { agents }
    }

    /// Returns whether an agent runs on the machine, is not frozen, and so answers other machines.
    pub(super) fn answers(&self) -> bool {
        self.agent.is_some() && !self.is_frozen
    }
}
