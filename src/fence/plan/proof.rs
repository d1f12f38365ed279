//! The value of a reported Off, and the conditions under which it is a proof.

use std::time::Duration;

use super::history::{dislikes, run_of_off, said_otherwise, since_outage, tries};
use super::{Event, Moment, fits_off};
use crate::adapters::redfish::failure::{Failure, FailureKind};
use crate::adapters::redfish::quirks::PowerWord;

/// The least time between the two readings that prove Off. Some BMCs report Off for a moment while they start.
pub(super) const CONFIRM: Duration = Duration::from_secs(1);
/// The time after an accepted reset from which a reading of Off counts, if the system has only ever reported Off. By the
/// standard, `ForceOff` holds the power button for four seconds, and no reading shows when these are over.
const HOLD: Duration = Duration::from_secs(5);
/// The number of refused resets after which the agent takes a refusal as final, if the BMC names no known reason.
pub(super) const DISLIKES: usize = 3;
/// The number of identical refusals after which the agent takes the refusal of a reset as final. It applies if the system reports
/// Off and the BMC does not ask for a retry.
const STANDING_REFUSALS: usize = 8;
/// The least time from the first to the last of [`STANDING_REFUSALS`] refusals. It excludes a BMC that is starting: such a BMC
/// accepts no resets, and may report Off for a system that is on.
const STANDING: Duration = Duration::from_secs(30);
/// The number of unanswered requests after which the agent treats a chassis as one that has no power state.
const CHASSIS_QUESTIONS: usize = 3;

/// The value of a report of Off as evidence that the system is off.
pub(super) enum Word {
    /// A second report of Off proves that the system is off.
    Good,
    /// A second report of Off proves that the system is off if it comes at the time in the field or later.
    GoodFrom(Duration),
    /// A second report of Off proves that the system is off, unless the chassis reports On. The BMC did not accept the last reset,
    /// possibly because the system is off.
    Unaccepted,
    /// The report has no value as evidence. No reset precedes it, the BMC postponed the reset, or its answer to the reset was
    /// lost.
    Unproven,
    /// The BMC refused the reset, and the reason is not that the system is off. Only the chassis can show that the system is off.
    Refused,
}

/// Returns whether `history` has two readings of Off that are at least [`CONFIRM`] apart. Only failed readings, answers of the chassis, and
/// refusals because the system is off may be between them.
pub(super) fn proven_off(history: &[Moment]) -> bool {
    let run = run_of_off(history);
    match (run.first(), run.last()) {
        (Some(newest), Some(oldest)) => *newest >= *oldest + CONFIRM,
        _ => false,
    }
}

/// Returns the value of the last report of Off as evidence.
///
/// A BMC that has just started may report Off because it does not know the system's state yet. It certainly knows the state if it
/// has reported another state since it was last unreachable. If it has not, the agent needs a reset before a report of Off
/// counts. The reset does no harm to a system that is off. If the BMC refuses the reset because the system is off, the refusal
/// counts as evidence, unless the chassis reports On.
pub(super) fn word(history: &[Moment]) -> Word {
    let is_gone = history.iter().rev().find_map(|moment| match moment.event {
        Event::Read { is_there, .. } => Some(!is_there),
        _ => None,
    });
    if is_gone == Some(true) {
        return Word::Good;
    }
    let history = since_outage(history);
    let knows = said_otherwise(history);
    let Some((at, answer)) = tries(history).last() else { return Word::Unproven };
    let Some(failure) = answer.refusal() else { return if knows { Word::Good } else { Word::GoodFrom(at + HOLD) } };
    match failure.kind {
        _ if fits_off(failure) && (knows || failure.kind == FailureKind::WrongState) => Word::Unaccepted,
        FailureKind::Disliked | FailureKind::Precondition if dislikes(history) < DISLIKES => Word::Unproven,
        FailureKind::Busy { retry_after: None } if is_standing(history, failure) => Word::Refused,
        _ if failure.is_passing() => Word::Unproven,
        _ => Word::Refused,
    }
}

/// Returns whether the BMC has refused every reset with `refusal` for at least [`STANDING`], while every reading was Off. Some
/// BMCs never accept a reset of a system that is off, and without this rule the fencing of such a system would fail.
fn is_standing(history: &[Moment], refusal: &Failure) -> bool {
    let mut times = Vec::new();
    for moment in history.iter().rev() {
        match &moment.event {
            Event::Refused(failure) if failure == refusal => times.push(moment.at),
            Event::Read { power, .. } if power.is(PowerWord::Off) => {}
            Event::Chassis { .. } | Event::ChassisUnread(_) => {}
            _ => break,
        }
    }
    match (times.first(), times.last()) {
        (Some(newest), Some(oldest)) => times.len() >= STANDING_REFUSALS && *newest >= *oldest + STANDING,
        _ => false,
    }
}

/// Returns whether the last two readings of Off prove that the system is off.
pub(super) fn is_trusted(history: &[Moment]) -> bool {
    let newest = run_of_off(history).first().copied().unwrap_or_default();
    match word(history) {
        Word::Good => true,
        Word::GoodFrom(from) => newest >= from,
        Word::Unproven => false,
        Word::Unaccepted => is_uncontradicted(history) || is_silent_chassis(history),
        Word::Refused => is_uncontradicted(history),
    }
}

/// Returns whether the last event is an answer of the chassis that does not report On.
pub(super) fn is_uncontradicted(history: &[Moment]) -> bool {
    matches!(history.last().map(|moment| &moment.event), Some(Event::Chassis { on: None }))
}

/// Returns whether the chassis has left [`CHASSIS_QUESTIONS`] requests unanswered and has never answered one.
pub(super) fn is_silent_chassis(history: &[Moment]) -> bool {
    let answered = history.iter().any(|moment| matches!(moment.event, Event::Chassis { .. }));
    let unread = history.iter().filter(|moment| matches!(moment.event, Event::ChassisUnread(_))).count();
    !answered && unread >= CHASSIS_QUESTIONS
}

/// Returns the failure of a phase in which the system reports Off and the BMC refuses a reset, although the system's chassis
/// reports On.
pub(super) fn contradicted(history: &[Moment], chassis: &str) -> Failure {
    let refusal = tries(history).last().and_then(|(_, event)| event.refusal().cloned());
    let refusal = refusal.unwrap_or_else(|| Failure::new(FailureKind::Refused, "the reset was refused"));
    Failure { text: format!("{refusal}; the system says Off, but its chassis {chassis} says On"), ..refusal }
}
