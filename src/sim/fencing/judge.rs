//! The invariants, judged by the datagrams that really got through. None of them rests on an agent's own state.

use std::time::Duration;

use super::machine::{Device, Machine, TIMEOUT};
use crate::fencing_agent::core::Timing;

/// The tolerance of a check of times. It covers rounding, and the duration of one event.
const SLACK: Duration = Duration::from_millis(2);
/// The time for which a machine may remain unfed under loss although a bare majority of the members answers. In a bare majority, one
/// lost answer is enough to lose the quorum.
const PATIENCE: Duration = Duration::from_secs(2);

/// The real state of the simulated network, by which the agents' outputs are judged.
#[derive(Debug)]
pub(super) struct Judge {
    pub(super) members: usize,
    pub(super) timing: Timing,
    /// The time since which two machines cannot exchange datagrams, for each pair of machines; `None` if they can.
    pub(super) cut: Vec<Vec<Option<Duration>>>,
    /// The time since which each machine cannot reach the API server; `None` if it can.
    pub(super) no_api: Vec<Option<Duration>>,
    /// The last time at which a fault began or ended, or at which a machine started or stopped to answer.
    pub(super) settled: Duration,
    /// The index of the machine that loses most datagrams; `None` if the current fault is of another kind.
    pub(super) lossy: Option<usize>,
    /// The longest round trip that the network's delay allows.
    pub(super) round_trip: Duration,
    pub(super) loss: u8,
}

impl Judge {
    fn quorum(&self) -> usize {
        self.members / 2 + 1
    }

    /// Returns the last time at which the machines `one` and `other` could reach each other. It is `now` if they still can.
    fn contact(&self, now: Duration, machines: &[Machine], one: usize, other: usize) -> Duration {
        let broken = [self.cut[one][other], machines[other].silent_since];
        broken.into_iter().flatten().min().unwrap_or(now)
    }

    /// Returns the time up to which the watchdog of machine `at` may be fed.
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

    /// Asserts that the agent of machine `at` has set no later deadline for the feeding of its watchdog than [`Self::bound`] allows.
    pub(super) fn deadline(&self, now: Duration, machines: &[Machine], at: usize) -> Result<(), String> {
        let (given, bound) = (machines[at].deadline, self.bound(now, machines, at));
        if given > bound.max(now) {
            return Err(format!("fed until {given:?}, although no contact lets it be fed beyond {bound:?}"));
        }
        Ok(())
    }

    /// Asserts that the watchdog of machine `at` may be fed now.
    pub(super) fn fed(&self, now: Duration, machines: &[Machine], at: usize) -> Result<(), String> {
        let bound = self.bound(now, machines, at);
        if now > bound { Err(format!("fed, {:?} after its time", now.saturating_sub(bound))) } else { Ok(()) }
    }

    /// Asserts that the agent of machine `at` may disarm its watchdog now, by writing `V`.
    pub(super) fn disarmed(&self, now: Duration, machines: &[Machine], at: usize) -> Result<(), String> {
        if now > self.bound(now, machines, at) { Err("V is written without a quorum".to_owned()) } else { Ok(()) }
    }

    /// Records that machines were started, stopped or cut off. Also records since when each machine has a quorum.
    pub(super) fn settle(&mut self, now: Duration, machines: &mut [Machine]) {
        self.settled = now;
        for at in 0..self.members {
            let there = self.reachable(machines, at);
            let is_half = self.has_half() && there == self.members / 2 && self.no_api[at].is_none();
            let is_there = machines[at].answers() && self.lossy.is_none() && (there >= self.quorum() || is_half);
            let since = machines[at].quorum_since.or(Some(now));
            machines[at].quorum_since = since.filter(|_| is_there);
        }
    }

    /// Returns the number of members that machine `at` can reach, itself included.
    fn reachable(&self, machines: &[Machine], at: usize) -> usize {
        (0..self.members)
            .filter(|other| *other == at || (self.cut[at][*other].is_none() && machines[*other].answers()))
            .count()
    }

    fn has_half(&self) -> bool {
        self.members >= 4 && self.members.is_multiple_of(2)
    }

    /// Returns whether a machine has reached a quorum of the members without interruption, and long enough that its agent must know
    /// of the quorum.
    fn has_quorum(&self, now: Duration, machines: &[Machine], at: usize) -> bool {
        let settles = self.timing.window + self.round_trip + Duration::from_secs(1) + self.spare(machines, at);
        machines[at].quorum_since.is_some_and(|since| since + settles < now)
    }

    /// Asserts that machine `at` is fed if it has long had a quorum, and has been reset if it has long had none. This must hold at any
    /// moment.
    pub(super) fn machine(&self, now: Duration, machines: &[Machine], at: usize) -> Result<(), String> {
        let machine = &machines[at];
        let Device::Running { is_held, .. } = machine.device else { return Ok(()) };
        let late = self.spare(machines, at);
        if is_held && machine.deadline + late <= now && self.has_quorum(now, machines, at) {
            return Err("not fed, although a quorum is there".to_owned());
        }
        if self.bound(now, machines, at) + TIMEOUT + Duration::from_secs(2) < now {
            return Err("not reset".to_owned());
        }
        Ok(())
    }

    /// Returns the time for which lost datagrams may hide a quorum from machine `at`. It is 0 if no datagrams are lost, or if the machine
    /// can reach more members than a quorum needs.
    fn spare(&self, machines: &[Machine], at: usize) -> Duration {
        if self.loss == 0 || self.reachable(machines, at) > self.quorum() { Duration::ZERO } else { PATIENCE }
    }

    /// Asserts that the watchdog may reset machine `at`, because the machine has no quorum.
    pub(super) fn reset(&self, now: Duration, machines: &[Machine], at: usize) -> Result<(), String> {
        if self.has_quorum(now, machines, at) {
            return Err("reset, although a quorum is there".to_owned());
        }
        Ok(())
    }

    /// Asserts that machine `at` may declare machine `lost` as lost.
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

/// Returns the name of the member with the index `at`.
pub(super) fn name_of(at: usize) -> String {
    format!("node{}", at + 1)
}

#[cfg(test)]
mod tests {
    use super::super::mutant::Mutant;
    use super::*;
    use crate::fencing_agent::core::{Name, TimingOverrides};

    #[test]
    fn under_loss_a_bare_majority_alone_may_be_unfed() {
        const MEMBERS: usize = 5;
        let names: Vec<Name> = (0..MEMBERS).map(|at| Name::from(name_of(at))).collect();
        let mut machines: Vec<Machine> = (0..MEMBERS).map(|_| Machine::new()).collect();
        for (machine, name) in machines.iter_mut().zip(&names) {
            machine.start(Duration::ZERO, name, &names, Mutant::None);
        }
        let mut judge = Judge {
            members: MEMBERS,
            timing: Timing::of(MEMBERS, &TimingOverrides::default()),
            cut: vec![vec![None; MEMBERS]; MEMBERS],
            no_api: vec![None; MEMBERS],
            settled: Duration::ZERO,
            lossy: None,
            round_trip: Duration::ZERO,
            loss: 20,
        };
        assert_eq!(judge.spare(&machines, 0), Duration::ZERO);
        machines[4].kill(Duration::ZERO);
        assert_eq!(judge.spare(&machines, 0), Duration::ZERO, "a member is to spare");
        judge.cut[0][3] = Some(Duration::ZERO);
        assert_eq!(judge.spare(&machines, 0), PATIENCE);
        assert_eq!(judge.spare(&machines, 1), Duration::ZERO, "another machine's links do not count");
        judge.loss = 0;
        assert_eq!(judge.spare(&machines, 0), Duration::ZERO);
    }
}
