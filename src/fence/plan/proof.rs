//! What it is worth that a system says Off, and when it is a proof.

use std::time::Duration;

use super::history::{dislikes, run_of_off, said_otherwise, since_outage, tries};
use super::{Event, Moment, fits_off};
use crate::adapters::redfish::failure::{Failure, FailureKind};
use crate::adapters::redfish::quirks::PowerWord;

/// Two readings this far apart prove a state: some BMCs say Off for a moment while they start themselves.
pub(super) const CONFIRM: Duration = Duration::from_secs(1);
/// The standard has `ForceOff` hold the power button for four seconds. Where the state said Off before, it cannot tell
/// when that is over.
const HOLD: Duration = Duration::from_secs(5);
/// Refusals without a reason that we understand, before they are believed.
pub(super) const DISLIKES: usize = 3;
/// Refusals in the same words, of a service that does not ask for patience, before they count of a system that reports Off.
const STANDING_REFUSALS: usize = 8;
/// The least time between the first and the last of them: a BMC that starts takes no resets, and may report Off for a host that it does not know.
const STANDING: Duration = Duration::from_secs(30);
/// Questions to a chassis that does not answer, before it counts as one without a power state.
const CHASSIS_QUESTIONS: usize = 3;

/// What the word of a system that says Off is worth.
pub(super) enum Word {
    /// As much as its next reading confirms.
    Good,
    /// That, from this time on.
    GoodFrom(Duration),
    /// As much as its next reading confirms, unless its chassis reports On. No reset was accepted, and a system that is off
    /// would not accept it either.
    Unaccepted,
    /// Nothing yet: no reset went before, or its answer was lost, or put off.
    Unproven,
    /// It will not be reset, and not because it is off: the chassis may know more.
    Refused,
}

/// Off, said twice, far enough apart, and nothing but failed readings between.
pub(super) fn proven_off(history: &[Moment]) -> bool {
    let run = run_of_off(history);
    match (run.first(), run.last()) {
        (Some(newest), Some(oldest)) => *newest >= *oldest + CONFIRM,
        _ => false,
    }
}

/// What it is worth that the system says Off.
///
/// A BMC that has just started may not know its host, and say Off meanwhile. One that said anything else before, in this
/// run and since it was out of reach, knows. To the others a reset tells: what is off already is none the worse for it,
/// and a refusal because it is off is a second word for it, which only its chassis may contradict.
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

/// Returns whether every reset was refused in the words of `refusal` for long, while every reading was Off. Some BMCs refuse a reset of
/// what is off so. A survivor that waits for another answer waits for ever.
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

/// Whether the two readings that prove Off are also worth it.
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

/// Returns whether the chassis has left every question unanswered, as often as it is asked. One that reported On once is not silent.
pub(super) fn is_silent_chassis(history: &[Moment]) -> bool {
    let answered = history.iter().any(|moment| matches!(moment.event, Event::Chassis { .. }));
    let unread = history.iter().filter(|moment| matches!(moment.event, Event::ChassisUnread(_))).count();
    !answered && unread >= CHASSIS_QUESTIONS
}

/// A system that says Off and will not be reset, in a chassis of its own that is on.
pub(super) fn contradicted(history: &[Moment], chassis: &str) -> Failure {
    let refusal = tries(history).last().and_then(|(_, event)| event.refusal().cloned());
    let refusal = refusal.unwrap_or_else(|| Failure::new(FailureKind::Refused, "the reset was refused"));
    Failure { text: format!("{refusal}; the system says Off, but its chassis {chassis} says On"), ..refusal }
}
