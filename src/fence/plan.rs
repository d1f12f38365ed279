//! The next step of an action: a pure function of its goal, of its events so far, and of the time.
//!
//! All rules that make a fencing reliable are here. Off is reached when the system reports Off in two readings at least a second
//! apart, without another state between them, and after a reset. Some BMCs report Off for a host that they do not know, so even a
//! system that is already Off gets a reset. If no reset was accepted, the plan also asks the system's chassis, and a chassis that
//! reports On contradicts. An accepted reset alone proves nothing. A reset with a lost answer may have worked, so the next step
//! is always a reading. A reset that is not idempotent is never posted twice.

mod history;
mod pause;
mod proof;

use std::time::Duration;

pub use self::history::{came_back, said_otherwise, since_reset};
use self::history::{
    dislikes, first_of_run, last_reading, may_have_worked, may_not_know_its_host, may_yet_work, posted, refusals,
    run_of_off, since_outage, story, tries, type_index, was_away, was_reset,
};
use self::pause::{FIRST_POLL, FIRST_RETRY, after_refusal, poll_pause, refusal_pause, retry_pause};
use self::proof::{
    CONFIRM, DISLIKES, Word, contradicted, is_silent_chassis, is_trusted, is_uncontradicted, proven_off, word,
};
use crate::adapters::redfish::failure::{Failure, FailureKind};
use crate::adapters::redfish::quirks::PowerWord;
use crate::adapters::redfish::resource::Power;

/// The goal of a phase, which is a part of an action. A reboot has two phases: Off and On.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Goal {
    /// The goal of an action that only reads the power state.
    Know,
    Off,
    On,
    /// The goal of one reset by which the BMC switches the system off and on again. The agent needs evidence that this happened.
    Cycle,
}

/// An event in a phase (a part of an action): the result of a request to the BMC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The result of reading the system: its power state, and the time of its last reset if the BMC reports one. `is_there` is
    /// false for a system that is certainly missing at the BMC and is configured to count as off.
    Read { power: Power, last_reset: Option<String>, is_there: bool },
    /// The agent could not read the system.
    Unread(Failure),
    /// The BMC accepted a reset.
    Posted,
    /// The BMC refused a reset, or the BMC's answer to it was lost.
    Refused(Failure),
    /// The BMC's task for an accepted reset has failed. The reset will have no further effect.
    Undone(Failure),
    /// The chassis of the system answered. The field is the path of a chassis that reports On; `None` if none does.
    Chassis { on: Option<String> },
    /// The chassis of the system did not answer.
    ChassisUnread(Failure),
}

impl Event {
    /// Returns the reason why a reset failed, or may have failed; `None` for any other event.
    pub fn refusal(&self) -> Option<&Failure> {
        match self {
            Self::Refused(failure) | Self::Undone(failure) => Some(failure),
            _ => None,
        }
    }
}

/// An event with its time, counted from the start of the phase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moment {
    pub at: Duration,
    pub event: Event,
}

/// The limits of a phase of an action: its time limits, its pauses and the greatest number of resets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The time limit of the whole phase, which is a part of an action.
    pub end: Duration,
    /// The time for which the agent retries its requests if the BMC has never given a useful answer.
    pub patience: Duration,
    /// The time limit from the first accepted reset to the goal; `None` if there is no limit other than `end`.
    pub after_post: Option<Duration>,
    /// The time after which the agent posts the next reset, if an accepted reset had no effect.
    pub repost: Duration,
    /// The greatest number of resets that the BMC may accept in one phase (a part of an action).
    pub attempts: u32,
    /// The pause after every accepted reset, before the agent reads the power state.
    pub power_wait: Duration,
    /// The longest pause between two readings of the power state.
    pub poll: Duration,
    /// The time before the first reset, in which the agent only reads. A system that is in a power cycle can power on in this
    /// time.
    pub grace: Duration,
    /// True if the attempt may end without a reset because the BMC was unreachable. In that case the fencer repeats it after a
    /// delay that differs between the nodes. False if an earlier attempt has recently ended in this way.
    pub may_give_way: bool,
}

/// A phase (a part of an action, such as switching off): its goal, and its limits. [`Plan::next`] returns each step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    pub goal: Goal,
    /// The Redfish reset types that reach the goal, best first.
    pub types: Vec<String>,
    pub limits: Limits,
}

/// The next step in a phase, which is a part of an action such as switching off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FenceStep {
    /// Read the power state, at the time `not_before` or later. It counts from the start of the phase.
    Read {
        not_before: Duration,
    },
    /// Post a reset now, of the type `reset_type`.
    Post {
        reset_type: String,
    },
    /// Query whether the system's chassis reports On.
    AskChassis,
    Done(Reached),
    /// End the attempt without a reset. The fencer makes a new attempt after a delay.
    GiveWay,
    /// End the attempt with the failure in the field.
    Fail(Failure),
}

/// The way in which a phase (a part of an action) has reached its goal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reached {
    /// The system was in the wanted power state before the action, as far as the agent knows.
    Already,
    /// A reset that this agent posted has changed the power state.
    ByUs,
    /// The goal was to read the power state. The field is the state that was read.
    State(Power),
}

/// The pause after the BMC has refused a reset because the system is "not in this state". A system that was just switched needs
/// some time before it accepts a reset.
const STATE_RETRY: Duration = Duration::from_secs(2);
impl Plan {
    /// Returns the next step of the phase after the events in `history`. `now` and the times of the events count from the start of the
    /// phase.
    pub fn next(&self, history: &[Moment], now: Duration) -> FenceStep {
        let Some(last) = history.last() else { return FenceStep::Read { not_before: Duration::ZERO } };
        if let Some(reached) = self.reached(history) {
            return FenceStep::Done(reached);
        }
        if let Some(failure) = self.hopeless(history, now) {
            return FenceStep::Fail(failure);
        }
        match &last.event {
            Event::Unread(failure) | Event::ChassisUnread(failure) => {
                FenceStep::Read { not_before: last.at + retry_pause(history, failure) }
            }
            Event::Posted => FenceStep::Read { not_before: last.at + self.limits.power_wait.max(FIRST_POLL) },
            // The last reading was Off, so the next one either proves it or does not.
            Event::Refused(failure) if failure.kind == FailureKind::WrongState && !run_of_off(history).is_empty() => {
                FenceStep::Read { not_before: (first_of_run(history) + CONFIRM).max(last.at) }
            }
            Event::Refused(failure) | Event::Undone(failure) => {
                FenceStep::Read { not_before: last.at + after_refusal(failure) }
            }
            Event::Read { power, .. } if power.is(PowerWord::Off) && self.goal == Goal::Off => {
                self.after_off(history, now)
            }
            Event::Read { power, .. } => self.after_reading(history, now, power),
            Event::Chassis { on: Some(path) } => self.after_contradiction(history, now, path),
            Event::Chassis { on: None } => FenceStep::Read { not_before: now + poll_pause(history, self.limits.poll) },
        }
    }

    /// Returns how the phase (a part of an action) has reached its goal; `None` until the goal is reached and proven.
    fn reached(&self, history: &[Moment]) -> Option<Reached> {
        let last = last_reading(history)?;
        let ours = || posted(history).next().is_some() || may_have_worked(history);
        let by_whom = || if ours() { Reached::ByUs } else { Reached::Already };
        let is_last = match history.last().map(|moment| &moment.event) {
            Some(Event::Read { .. } | Event::Chassis { .. }) => true,
            Some(Event::ChassisUnread(_)) => is_silent_chassis(history),
            _ => false,
        };
        match self.goal {
            _ if !is_last => None,
            Goal::Know => matches!(last, Power::Known(..)).then(|| Reached::State(last.clone())),
            Goal::Off if !proven_off(history) || !is_trusted(history) => None,
            // A system that has never reported another state was off already, as far as is known.
            Goal::Off => Some(if said_otherwise(history) { by_whom() } else { Reached::Already }),
            Goal::On => last.is(PowerWord::On).then(by_whom),
            // The system is off, so Off must be proven as always.
            Goal::Cycle if proven_off(history) && (may_not_know_its_host(history) || !ours()) => Some(Reached::Already),
            Goal::Cycle if proven_off(history) => {
                let is_trusted = may_yet_work(history) || is_uncontradicted(history) || is_silent_chassis(history);
                is_trusted.then_some(Reached::ByUs)
            }
            Goal::Cycle => (last.is(PowerWord::On) && was_reset(history)).then_some(Reached::ByUs),
        }
    }

    /// Returns the reason why the phase (a part of an action) can no longer succeed; `None` if it can.
    fn hopeless(&self, history: &[Moment], now: Duration) -> Option<Failure> {
        let last = history.last()?;
        let heard = last_reading(history).is_some();
        match &last.event {
            Event::Read { power: Power::Unclear(why), .. } if self.goal == Goal::Know => {
                return Some(Failure::new(
                    FailureKind::Garbled,
                    format!("the system does not say whether it is on: {why}"),
                ));
            }
            Event::Unread(failure) if !may_pass(failure, heard) => return Some(failure.clone()),
            Event::Unread(failure) if !heard && now >= self.limits.patience && !is_busy(failure) => {
                return Some(failure.clone());
            }
            _ => {}
        }
        if now < self.end(history) {
            return None;
        }
        Some(self.out_of_time(history))
    }

    /// Returns the time at which this phase of the action must end, counted from the start of the phase.
    fn end(&self, history: &[Moment]) -> Duration {
        let first = posted(history).next();
        match (first, self.limits.after_post) {
            (Some(first), Some(limit)) => self.limits.end.min(first + self.limits.power_wait + limit),
            _ => self.limits.end,
        }
    }

    /// Returns the next step after a reading of Off that does not prove the system off.
    fn after_off(&self, history: &[Moment], now: Duration) -> FenceStep {
        let confirmed = first_of_run(history) + CONFIRM;
        match word(history) {
            Word::Unproven if tries(history).next().is_none() && self.gives_way(history) => FenceStep::GiveWay,
            Word::Unproven => match tries(since_outage(history)).last() {
                Some((at, Event::Refused(failure) | Event::Undone(failure))) => {
                    self.after_refused(history, now, at, failure)
                }
                _ => self.post(history),
            },
            Word::Unaccepted | Word::Refused if proven_off(history) => FenceStep::AskChassis,
            Word::GoodFrom(from) => FenceStep::Read { not_before: confirmed.max(from) },
            Word::Good | Word::Unaccepted | Word::Refused => FenceStep::Read { not_before: confirmed },
        }
    }

    /// Returns the next step if the system reports Off and the chassis at `path` reports On, after the BMC did not accept the
    /// last reset.
    fn after_contradiction(&self, history: &[Moment], now: Duration, path: &str) -> FenceStep {
        let refused = tries(history).last().and_then(|(at, event)| Some((at, event.refusal()?)));
        match refused {
            // An earlier accepted reset may still take effect, or the chassis is late.
            Some(_) if may_yet_work(history) => FenceStep::Read { not_before: now + self.limits.poll.max(FIRST_POLL) },
            // An accepted reset is better evidence than either report.
            Some((at, failure)) if fits_off(failure) && refusals(history).count() < DISLIKES => {
                self.after_refused(history, now, at, failure)
            }
            _ => FenceStep::Fail(contradicted(history, path)),
        }
    }

    fn after_reading(&self, history: &[Moment], now: Duration, power: &Power) -> FenceStep {
        let later = FenceStep::Read { not_before: now + poll_pause(history, self.limits.poll) };
        // One of two readings exists, and the second is needed.
        if power.is(PowerWord::Off) && self.goal == Goal::Cycle {
            if proven_off(history) {
                return FenceStep::AskChassis;
            }
            return FenceStep::Read { not_before: first_of_run(history) + CONFIRM };
        }
        let waits = match self.goal {
            Goal::Know => return later,
            // A shutdown that another program has begun may never end. So the plan waits for one only after its own reset.
            Goal::Off => power.is(PowerWord::Falling) && posted(history).next().is_some(),
            Goal::On => power.is(PowerWord::Falling) || power.is(PowerWord::Rising),
            Goal::Cycle => posted(history).next().is_some() || may_have_worked(history),
        };
        match tries(history).last() {
            None if self.gives_way(history) => FenceStep::GiveWay,
            None if waits || now < self.limits.grace => later,
            None => self.post(history),
            Some(_) if waits && self.goal == Goal::On => later,
            Some((at, Event::Refused(failure) | Event::Undone(failure))) => {
                self.after_refused(history, now, at, failure)
            }
            Some(_) if waits && self.goal == Goal::Cycle => later,
            Some((at, _)) if now >= at + self.limits.repost => match posted(history).count() {
                count if count >= self.limits.attempts as usize => FenceStep::Fail(self.out_of_time(history)),
                _ => self.post(history),
            },
            Some(_) => later,
        }
    }

    /// Returns whether this attempt must end without a reset, because the BMC was unreachable.
    ///
    /// When such an outage ends, the other node may be about to fence this node. The fencer delays each attempt so that two nodes
    /// do not fence each other, but this attempt's delay ended before the outage did. The next attempt has a new delay.
    fn gives_way(&self, history: &[Moment]) -> bool {
        self.limits.may_give_way && matches!(self.goal, Goal::Off | Goal::Cycle) && history.iter().any(was_away)
    }

    fn after_refused(&self, history: &[Moment], now: Duration, at: Duration, failure: &Failure) -> FenceStep {
        let pause = match &failure.kind {
            FailureKind::ValueRefused if type_index(history) < self.types.len() => Duration::ZERO,
            FailureKind::WrongState => STATE_RETRY,
            FailureKind::Disliked | FailureKind::Precondition if dislikes(history) < DISLIKES => STATE_RETRY,
            // The answer was lost. A reset that must not be repeated is only observed from now on.
            FailureKind::Interrupted | FailureKind::Silent | FailureKind::Garbled if self.goal == Goal::Cycle => {
                return FenceStep::Read { not_before: now + poll_pause(history, self.limits.poll) };
            }
            FailureKind::Interrupted | FailureKind::Silent | FailureKind::Garbled | FailureKind::Unreachable => {
                FIRST_RETRY
            }
            FailureKind::Busy { retry_after } => retry_after.unwrap_or(FIRST_RETRY).max(refusal_pause(history)),
            // An earlier accepted reset may still take effect.
            _ if may_yet_work(history) => {
                return FenceStep::Read { not_before: now + poll_pause(history, self.limits.poll) };
            }
            _ => return FenceStep::Fail(failure.clone()),
        };
        if now >= at + pause { self.post(history) } else { FenceStep::Read { not_before: at + pause } }
    }

    fn post(&self, history: &[Moment]) -> FenceStep {
        match self.types.get(type_index(history)) {
            Some(reset_type) => FenceStep::Post { reset_type: reset_type.clone() },
            None => FenceStep::Fail(Failure::new(FailureKind::ValueRefused, "the BMC accepts none of the reset types")),
        }
    }

    fn out_of_time(&self, history: &[Moment]) -> Failure {
        let wanted = match self.goal {
            Goal::Know => "to read the power state",
            Goal::Off => "to power OFF",
            Goal::On => "to power ON",
            Goal::Cycle => "for evidence of the reset",
        };
        Failure::new(FailureKind::Silent, format!("Timed out waiting {wanted}: {}", story(history)))
    }
}

/// Returns whether a reset may have failed with `failure` because the system is off. That is possible if the BMC refused the
/// reset as "not in this state", and also if the BMC's answer was lost.
fn fits_off(failure: &Failure) -> bool {
    matches!(
        failure.kind,
        FailureKind::WrongState | FailureKind::Interrupted | FailureKind::Silent | FailureKind::Garbled
    )
}

fn is_busy(failure: &Failure) -> bool {
    matches!(failure.kind, FailureKind::Busy { .. })
}

/// Returns whether the agent should repeat a reading that failed with `failure`. `heard` is true if the BMC has answered before,
/// because a working BMC may lose a resource for a moment.
fn may_pass(failure: &Failure, heard: bool) -> bool {
    failure.is_passing() || (heard && matches!(failure.kind, FailureKind::Missing | FailureKind::Disliked))
}

#[cfg(test)]
mod tests;
