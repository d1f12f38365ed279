//! What must hold, by what the network really let through: nothing here rests on what an agent believes.

use std::time::Duration;

use super::machine::{Device, Machine, TIMEOUT};
use crate::fencing_agent::core::Timing;

/// Rounding, and the time of one event.
const SLACK: Duration = Duration::from_millis(2);
/// What a majority with a fault in its midst may be unfed for under loss: it has no member to spare.
const PATIENCE: Duration = Duration::from_secs(2);

/// The network as it is.
#[derive(Debug)]
pub(super) struct Judge {
    pub(super) members: usize,
    pub(super) timing: Timing,
    /// Since when no datagram passes between two machines, both ways.
    pub(super) cut: Vec<Vec<Option<Duration>>>,
    /// Since when a machine does not reach the API server.
    pub(super) no_api: Vec<Option<Duration>>,
    /// Since when no fault begins or ends.
    pub(super) settled: Duration,
    /// Machines on links that lose most of what is sent.
    pub(super) lossy: Option<usize>,
    /// The longest way there and back.
    pub(super) round_trip: Duration,
    pub(super) loss: u8,
}

impl Judge {
    fn quorum(&self) -> usize {
        self.members / 2 + 1
    }

    /// Returns when contact of two machines was possible at the latest.
    fn contact(&self, now: Duration, machines: &[Machine], one: usize, other: usize) -> Duration {
        let broken = [self.cut[one][other], machines[other].silent_since];
        broken.into_iter().flatten().min().unwrap_or(now)
    }

    /// Returns until when a machine may be fed at the latest.
    pub(super) fn bound(&self, now: Duration, machines: &[Machine], at: usize) -> Duration {
        let mut contacts: Vec<Duration> = (0..self.members)
            .map(|other| if other == at { now } else { self.contact(now, machines, at, other) })
            .collect();
        contacts.sort_unstable_by(|one, other| other.cmp(one));
        let by_quorum = contacts[self.quorum() - 1];
        let api = self.no_api[at].unwrap_or(now);
        let by_tie = if self.has_half() { contacts[self.members / 2 - 1].min(api) } else { Duration::ZERO };
        by_quorum.max(by_tie) + self.timing.window + SLACK
    }

    /// Judges a deadline that an agent gives.
    pub(super) fn deadline(&self, now: Duration, machines: &[Machine], at: usize) -> Result<(), String> {
        let (given, bound) = (machines[at].deadline, self.bound(now, machines, at));
        if given > bound.max(now) {
            return Err(format!("fed until {given:?}, although no contact lets it be fed beyond {bound:?}"));
        }
        Ok(())
    }

    /// Judges that a machine is fed now.
    pub(super) fn fed(&self, now: Duration, machines: &[Machine], at: usize) -> Result<(), String> {
        let bound = self.bound(now, machines, at);
        if now > bound { Err(format!("fed, {:?} after its time", now.saturating_sub(bound))) } else { Ok(()) }
    }

    /// Judges that `V` is written now.
    pub(super) fn disarmed(&self, now: Duration, machines: &[Machine], at: usize) -> Result<(), String> {
        if now > self.bound(now, machines, at) { Err("V is written without a quorum".to_owned()) } else { Ok(()) }
    }

    /// Notes a moment at which machines come, go, or are cut off.
    pub(super) fn settle(&mut self, now: Duration, machines: &mut [Machine]) {
        self.settled = now;
        for at in 0..self.members {
            let there = (0..self.members)
                .filter(|other| *other == at || (self.cut[at][*other].is_none() && machines[*other].answers()))
                .count();
            let is_half = self.has_half() && there == self.members / 2 && self.no_api[at].is_none();
            let is_there = machines[at].answers() && self.lossy.is_none() && (there >= self.quorum() || is_half);
            let since = machines[at].quorum_since.or(Some(now));
            machines[at].quorum_since = since.filter(|_| is_there);
        }
    }

    fn has_half(&self) -> bool {
        self.members >= 4 && self.members.is_multiple_of(2)
    }

    /// Returns whether as many members as are needed are there for a machine, without a gap for a while.
    fn has_quorum(&self, now: Duration, machines: &[Machine], at: usize) -> bool {
        let settles = self.timing.window + self.round_trip + Duration::from_secs(1) + self.spare(machines);
        machines[at].quorum_since.is_some_and(|since| since + settles < now)
    }

    /// Judges a machine at any moment: with a quorum it is fed, and without one it is reset.
    pub(super) fn machine(&self, now: Duration, machines: &[Machine], at: usize) -> Result<(), String> {
        let machine = &machines[at];
        let Device::Running { is_held, .. } = machine.device else { return Ok(()) };
        let late = self.spare(machines);
        if is_held && machine.deadline + late <= now && self.has_quorum(now, machines, at) {
            return Err("not fed, although a quorum is there".to_owned());
        }
        if self.bound(now, machines, at) + TIMEOUT + Duration::from_secs(2) < now {
            return Err("not reset".to_owned());
        }
        Ok(())
    }

    /// Returns for how long a quorum may be missed under loss: not at all while there are more members than it needs.
    fn spare(&self, machines: &[Machine]) -> Duration {
        let is_whole =
            self.loss == 0 || machines.iter().all(Machine::answers) && self.cut.iter().flatten().all(Option::is_none);
        if is_whole { Duration::ZERO } else { PATIENCE }
    }

    /// Judges that a machine is reset.
    pub(super) fn reset(&self, now: Duration, machines: &[Machine], at: usize) -> Result<(), String> {
        if self.has_quorum(now, machines, at) {
            return Err("reset, although a quorum is there".to_owned());
        }
        Ok(())
    }

    /// Judges that a machine declares another one lost.
    pub(super) fn left(&self, now: Duration, machines: &[Machine], at: usize, lost: usize) -> Result<(), String> {
        if self.lossy.is_some_and(|lossy| [at, lost].contains(&lossy)) {
            let since =
                machines[at].suspects.iter().find(|(name, _)| ***name == *name_of(lost)).map(|(_, since)| *since);
            let lasted = since.map_or(Duration::ZERO, |since| now.saturating_sub(since));
            let is_early = self.loss == 0 && self.lossy == Some(at) && lasted + SLACK < self.timing.suspicion.1;
            return if is_early {
                Err(format!("LEFT {} after {lasted:?}, which no other member has failed to reach", name_of(lost)))
            } else {
                Ok(())
            };
        }
        let settles = self.timing.suspicion.1 + self.timing.probe * 4 + Duration::from_secs(2);
        let is_there = self.cut[at][lost].is_none() && machines[lost].answers() && machines[at].answers();
        if self.loss <= 5 && is_there && self.settled + settles < now {
            return Err(format!("LEFT {}, which is there", name_of(lost)));
        }
        Ok(())
    }
}

/// Returns the name of a member by its number.
pub(super) fn name_of(at: usize) -> String {
    format!("node{}", at + 1)
}
