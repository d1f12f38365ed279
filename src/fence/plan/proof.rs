//! The value of a reported Off, and the conditions under which it is a proof.

use std::time::Duration;

use super::history::{dislikes, run_of_off, said_otherwise, since_outage, tries};
use super::{Event, Moment, fits_off};
use crate::adapters::redfish::failure::{Failure, FailureKind};
use crate::adapters::redfish::quirks::PowerWord;

/// The time between two readings that prove a state. Some BMCs report Off for a moment while they start.
pub(super) const CONFIRM: Duration = Duration::from_secs(1);
/// The standard has `ForceOff` hold the power button for four seconds. A state that was Off before cannot show when that is over.
const HOLD: Duration = Duration::from_secs(5);
/// The number of refusals without a known reason after which they are accepted as final.
pub(super) const DISLIKES: usize = 3;
/// The number of identical refusals after which they count for a system that reports Off, if the service does not ask for a
/// retry.
const STANDING_REFUSALS: usize = 8;
/// The least time between the first and the last of these. A BMC that is starting accepts no resets, and may report Off for a
/// host that it does not know.
const STANDING: Duration = Duration::from_secs(30);
/// The number of unanswered questions after which a chassis counts as one without a power state.
const CHASSIS_QUESTIONS: usize = 3;

/// The value of a reported Off.
pub(super) enum Word {
    /// The next reading can confirm it.
    Good,
    /// A reading from this time on can confirm it.
    GoodFrom(Duration),
    /// The next reading can confirm it, unless the chassis reports On. No reset was accepted, but a system that is off would not
    /// accept one either.
    Unaccepted,
    /// No value yet, because no reset precedes it, or the answer of the reset was lost or postponed.
    Unproven,
    /// The reset was refused, and not because the system is off. The chassis may show more.
    Refused,
}

/// Returns whether Off was read twice, far enough apart, with only failed readings in between.
pub(super) fn proven_off(history: &[Moment]) -> bool {
    let run = run_of_off(history);
    match (run.first(), run.last()) {
        (Some(newest), Some(oldest)) => *newest >= *oldest + CONFIRM,
        _ => false,
    }
}

/// Returns the value of a reported Off.
///
/// A BMC that has just started may not know its host, and reports Off meanwhile. A BMC that has reported another state in this
/// run, and since it was last unreachable, knows its host. The others need a reset. It does no harm to a system that is off. A
/// refusal because the system is off is a second report of Off, which only the chassis may contradict.
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

/// Returns whether every reset was refused with `refusal` for long, while every reading was Off. Some BMCs refuse a reset of a
/// system that is off in this way. A survivor would wait forever for another answer.
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

/// Returns whether the two readings that prove Off have value.
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

/// Returns whether the chassis was just asked and does not report On.
pub(super) fn is_uncontradicted(history: &[Moment]) -> bool {
    matches!(history.last().map(|moment| &moment.event), Some(Event::Chassis { on: None }))
}

/// Returns whether the chassis has left every question unanswered, up to the limit. A chassis that reported On once is not
/// silent.
pub(super) fn is_silent_chassis(history: &[Moment]) -> bool {
    let answered = history.iter().any(|moment| matches!(moment.event, Event::Chassis { .. }));
    let unread = history.iter().filter(|moment| matches!(moment.event, Event::ChassisUnread(_))).count();
    !answered && unread >= CHASSIS_QUESTIONS
}

/// Returns the failure of a system that reports Off and refuses a reset, while its own chassis is on.
pub(super) fn contradicted(history: &[Moment], chassis: &str) -> Failure {
    let refusal = tries(history).last().and_then(|(_, event)| event.refusal().cloned());
    let refusal = refusal.unwrap_or_else(|| Failure::new(FailureKind::Refused, "the reset was refused"));
    Failure { text: format!("{refusal}; the system says Off, but its chassis {chassis} says On"), ..refusal }
}
