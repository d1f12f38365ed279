//! What an action does next: a pure function of its goal, of what was seen and done so far, and of the time.
//!
//! The rules that keep fencing honest are all here. Off is reached when the system says Off in two readings at least a
//! second apart with nothing else between them, and a reset went before: some BMCs say Off for whatever they do not know,
//! so what is Off already gets one, too. Where no reset was accepted, the plan asks the system's chassis as well, and one that
//! reports On contradicts. A reset that was accepted proves nothing. A reset whose answer was lost may have worked: the next step
//! is always to read. Nothing is posted twice that is not idempotent.

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

/// What has to be reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Goal {
    /// To know the power state.
    Know,
    Off,
    On,
    /// A reset in one go, and evidence that it happened.
    Cycle,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The system said its power state, and when it was reset last if it knows; or it is certainly not there, and that
    /// counts as a state.
    Read { power: Power, last_reset: Option<String>, is_there: bool },
    /// It could not be read.
    Unread(Failure),
    /// A reset was accepted.
    Posted,
    /// A reset was not accepted, or its answer did not arrive.
    Refused(Failure),
    /// The task of an accepted reset has failed: that reset does nothing any more.
    Undone(Failure),
    /// The chassis was asked: the one that says On, if there is one.
    Chassis { on: Option<String> },
    /// The chassis did not answer.
    ChassisUnread(Failure),
}

impl Event {
    /// Returns why a reset came to nothing, or may have.
    pub fn refusal(&self) -> Option<&Failure> {
        match self {
            Self::Refused(failure) | Self::Undone(failure) => Some(failure),
            _ => None,
        }
    }
}

/// An event with its time since the phase began.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moment {
    pub at: Duration,
    pub event: Event,
}

/// The bounds of a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// All of it.
    pub end: Duration,
    /// How long to knock where nothing useful was ever heard.
    pub patience: Duration,
    /// From the first accepted reset to the goal.
    pub after_post: Option<Duration>,
    /// Between an accepted reset without effect and the next one.
    pub repost: Duration,
    /// Accepted resets at most.
    pub attempts: u32,
    /// After every accepted reset, before the first look.
    pub power_wait: Duration,
    /// Between two looks at most.
    pub poll: Duration,
    /// Before the first reset: a system in the middle of a power cycle comes back by itself.
    pub grace: Duration,
    /// Whether whoever asked asks again, after a delay that is different on each node: the fencer does. A try after one
    /// that gave way goes on.
    pub may_give_way: bool,
}

/// A phase of an action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    pub goal: Goal,
    /// Reset types that lead there, best first.
    pub types: Vec<String>,
    pub limits: Limits,
}

/// What comes next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FenceStep {
    /// Read the power state, not before this time.
    Read {
        not_before: Duration,
    },
    /// Post this reset type now.
    Post {
        reset_type: String,
    },
    /// Ask what the system is built into whether that is on.
    AskChassis,
    Done(Reached),
    /// End without having done anything: whoever asked asks again, and a delay lies between.
    GiveWay,
    /// Give up; the text says why.
    Fail(Failure),
}

/// How the goal was reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reached {
    /// Nothing had to be done.
    Already,
    /// By what was posted.
    ByUs,
    /// The power state that was asked for.
    State(Power),
}

/// After "not in this state": a system that has just been switched needs a moment.
const STATE_RETRY: Duration = Duration::from_secs(2);
impl Plan {
    /// The next step after `history` at `now`, both since the phase began.
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
            // Its last reading was Off: the next one is the proof, or none.
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

    /// What was reached, if it is reached and proven.
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
            // What never said anything else was off already, as far as anybody knows.
            Goal::Off => Some(if said_otherwise(history) { by_whom() } else { Reached::Already }),
            Goal::On => last.is(PowerWord::On).then(by_whom),
            // Then that it is off is to be proven as always.
            Goal::Cycle if proven_off(history) && (may_not_know_its_host(history) || !ours()) => Some(Reached::Already),
            Goal::Cycle if proven_off(history) => {
                let is_trusted = may_yet_work(history) || is_uncontradicted(history) || is_silent_chassis(history);
                is_trusted.then_some(Reached::ByUs)
            }
            Goal::Cycle => (last.is(PowerWord::On) && was_reset(history)).then_some(Reached::ByUs),
        }
    }

    /// Why going on is pointless, if it is.
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

    /// When this phase is over.
    fn end(&self, history: &[Moment]) -> Duration {
        let first = posted(history).next();
        match (first, self.limits.after_post) {
            (Some(first), Some(limit)) => self.limits.end.min(first + self.limits.power_wait + limit),
            _ => self.limits.end,
        }
    }

    /// Off is said: what makes it a proof.
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

    /// Answers a chassis `path` that reports On, where the system reports Off and has not accepted the last reset.
    fn after_contradiction(&self, history: &[Moment], now: Duration, path: &str) -> FenceStep {
        let refused = tries(history).last().and_then(|(at, event)| Some((at, event.refusal()?)));
        match refused {
            // The one that was accepted may still work, or the chassis is late.
            Some(_) if may_yet_work(history) => FenceStep::Read { not_before: now + self.limits.poll.max(FIRST_POLL) },
            // A reset that is accepted is worth more than either word.
            Some((at, failure)) if fits_off(failure) && refusals(history).count() < DISLIKES => {
                self.after_refused(history, now, at, failure)
            }
            _ => FenceStep::Fail(contradicted(history, path)),
        }
    }

    fn after_reading(&self, history: &[Moment], now: Duration, power: &Power) -> FenceStep {
        let later = FenceStep::Read { not_before: now + poll_pause(history, self.limits.poll) };
        // Half proven: the second reading.
        if power.is(PowerWord::Off) && self.goal == Goal::Cycle {
            if proven_off(history) {
                return FenceStep::AskChassis;
            }
            return FenceStep::Read { not_before: first_of_run(history) + CONFIRM };
        }
        let waits = match self.goal {
            Goal::Know => return later,
            // A shutdown that somebody else began may never end, so it is waited for only after our own reset.
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

    /// An outage that ends for us at this moment may end for the other node as well, in the middle of a try to fence us.
    /// The delays that keep two nodes from fencing each other lie before the tries, so this one must not go on: with
    /// the next one they count again.
    fn gives_way(&self, history: &[Moment]) -> bool {
        self.limits.may_give_way && matches!(self.goal, Goal::Off | Goal::Cycle) && history.iter().any(was_away)
    }

    fn after_refused(&self, history: &[Moment], now: Duration, at: Duration, failure: &Failure) -> FenceStep {
        let pause = match &failure.kind {
            FailureKind::ValueRefused if type_index(history) < self.types.len() => Duration::ZERO,
            FailureKind::WrongState => STATE_RETRY,
            FailureKind::Disliked | FailureKind::Precondition if dislikes(history) < DISLIKES => STATE_RETRY,
            // The answer was lost: what may not be done twice is only watched from now on.
            FailureKind::Interrupted | FailureKind::Silent | FailureKind::Garbled if self.goal == Goal::Cycle => {
                return FenceStep::Read { not_before: now + poll_pause(history, self.limits.poll) };
            }
            FailureKind::Interrupted | FailureKind::Silent | FailureKind::Garbled | FailureKind::Unreachable => {
                FIRST_RETRY
            }
            FailureKind::Busy { retry_after } => retry_after.unwrap_or(FIRST_RETRY).max(refusal_pause(history)),
            // One that was accepted before may still work.
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

/// Returns whether a system that is off may have answered a reset so: its answer was lost, or it is in that state already.
fn fits_off(failure: &Failure) -> bool {
    matches!(
        failure.kind,
        FailureKind::WrongState | FailureKind::Interrupted | FailureKind::Silent | FailureKind::Garbled
    )
}

fn is_busy(failure: &Failure) -> bool {
    matches!(failure.kind, FailureKind::Busy { .. })
}

/// Whether a failed reading is worth another: a service that has answered before may lose a resource for a moment.
fn may_pass(failure: &Failure, heard: bool) -> bool {
    failure.is_passing() || (heard && matches!(failure.kind, FailureKind::Missing | FailureKind::Disliked))
}

#[cfg(test)]
mod tests;
