//! The state of the agent, and what follows from an event.

use std::collections::BTreeMap;
use std::time::Duration;

use super::input::{Event, Settings};
use super::output::Output;
use super::snapshot::Snapshot;

/// The state of the agent.
#[derive(Debug)]
pub(crate) struct Agent {
    settings: Settings,
}

impl Agent {
    /// Returns an agent that has reached no member yet. `now` is the time since boot.
    pub(crate) fn new(_now: Duration, settings: Settings) -> Self {
        Self { settings }
    }

    /// Returns what follows from `event`. `random` gives numbers that no other node can guess: nonces are made of them.
    pub(crate) fn handle(&mut self, now: Duration, _event: Event, _random: &mut dyn FnMut() -> u64) -> Vec<Output> {
        vec![Output::WakeAt(now + Duration::from_millis(250))]
    }

    /// Returns the state as of `now`.
    pub(crate) fn snapshot(&self, _now: Duration) -> Snapshot {
        Snapshot {
            members: Vec::new(),
            quorum: self.settings.members.len() / 2 + 1,
            reachable: 1,
            window: Duration::from_secs(3),
            armed: false,
            fed: false,
            deadline: None,
            disarmed_because: None,
            unfed_because: None,
            score: 0,
            suspicions_total: 0,
            left_total: 0,
            join_total: 0,
            dropped_total: BTreeMap::new(),
            api_up: None,
        }
    }
}
