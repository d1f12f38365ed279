//! Queries about the history of a phase.

use std::time::Duration;

use super::{Event, Moment};
use crate::adapters::redfish::failure::{Failure, FailureKind};
use crate::adapters::redfish::quirks::PowerWord;
use crate::adapters::redfish::resource::Power;

/// Returns whether the event shows that the BMC was unreachable.
pub(super) fn was_away(moment: &Moment) -> bool {
    matches!(&moment.event, Event::Unread(why) | Event::ChassisUnread(why) if why.kind == FailureKind::Unreachable)
}

/// Returns the events after the last event that shows an unreachable BMC.
pub(super) fn since_outage(history: &[Moment]) -> &[Moment] {
    let from = history.iter().rposition(was_away).map_or(0, |at| at + 1);
    history.get(from..).unwrap_or_default()
}

/// Returns whether the system has reported a power state other than Off in `history`.
pub fn said_otherwise(history: &[Moment]) -> bool {
    history.iter().any(|moment| match &moment.event {
        Event::Read { power: Power::Known(word, _), .. } => *word != PowerWord::Off,
        _ => false,
    })
}

/// Returns whether `history` shows the system off and later on again. A restore policy or another program may have powered it on.
pub fn came_back(history: &[Moment]) -> bool {
    let mut was_off = false;
    history.iter().any(|moment| match &moment.event {
        Event::Read { power, .. } if power.is(PowerWord::Off) => {
            was_off = true;
            false
        }
        Event::Read { power: Power::Known(..), .. } => was_off,
        _ => false,
    })
}

/// Returns the time from the first accepted reset to the last event; `None` if no reset was accepted. The time begins at the
/// event before the acceptance, because the agent sent the reset directly after it.
pub fn since_reset(history: &[Moment]) -> Option<Duration> {
    let posted = history.iter().position(|moment| moment.event == Event::Posted)?;
    let sent = posted.checked_sub(1).and_then(|before| history.get(before)).map_or(Duration::ZERO, |moment| moment.at);
    Some(history.last()?.at.saturating_sub(sent))
}

/// Returns the times of the last consecutive readings of Off, newest first. Failed readings, answers of the chassis, and refusals
/// because the system is off may be between them, because they change nothing.
pub(super) fn run_of_off(history: &[Moment]) -> Vec<Duration> {
    let mut run = Vec::new();
    for moment in history.iter().rev() {
        match &moment.event {
            Event::Read { power, .. } if power.is(PowerWord::Off) => run.push(moment.at),
            Event::Refused(failure) if failure.kind == FailureKind::WrongState => {}
            Event::Unread(_) | Event::Chassis { .. } | Event::ChassisUnread(_) => {}
            _ => break,
        }
    }
    run
}

pub(super) fn first_of_run(history: &[Moment]) -> Duration {
    run_of_off(history).last().copied().unwrap_or_default()
}

/// Returns whether the BMC was unreachable after the agent's first reset and has reported only Off since then. Such a BMC may
/// have restarted, and may not know its system's state yet.
pub(super) fn may_not_know_its_host(history: &[Moment]) -> bool {
    let since = since_outage(history);
    let was_away_after_it = tries(history).count() > tries(since).count();
    was_away_after_it && !said_otherwise(since)
}

/// Returns whether `history` shows that the system was reset after this agent's first attempt. It does if the BMC reports another
/// power state, or another time of the last reset.
///
/// After an outage of the BMC, its readings count only once it has reported On. Some BMCs report wrong states while they start.
pub(super) fn was_reset(history: &[Moment]) -> bool {
    let Some(at) = history.iter().position(is_try) else { return false };
    let (before, after) = history.split_at(at);
    let known = before.iter().rev().find_map(|moment| match &moment.event {
        Event::Read { last_reset, .. } => Some(last_reset.clone()),
        _ => None,
    });
    let mut knows = true;
    after.iter().any(|moment| match &moment.event {
        Event::Unread(_) => {
            knows &= !was_away(moment);
            false
        }
        Event::Read { power: Power::Known(word, _), last_reset, .. } => {
            knows |= *word == PowerWord::On;
            let is_another_state = matches!(word, PowerWord::Off | PowerWord::Rising | PowerWord::Falling);
            let is_another_time = known.as_ref().is_some_and(|known| known.is_some() && known != last_reset);
            knows && (is_another_state || (last_reset.is_some() && is_another_time))
        }
        _ => false,
    })
}

/// Returns whether the BMC's answer to a reset was lost. Such a reset may have worked.
pub(super) fn may_have_worked(history: &[Moment]) -> bool {
    refusals(history)
        .any(|failure| matches!(failure.kind, FailureKind::Interrupted | FailureKind::Silent | FailureKind::Garbled))
}

pub(super) fn last_reading(history: &[Moment]) -> Option<&Power> {
    history.iter().rev().find_map(|moment| match &moment.event {
        Event::Read { power, .. } => Some(power),
        _ => None,
    })
}

/// Returns the times at which the BMC accepted a reset.
pub(super) fn posted(history: &[Moment]) -> impl Iterator<Item = Duration> {
    history.iter().filter(|moment| moment.event == Event::Posted).map(|moment| moment.at)
}

pub(super) fn tries(history: &[Moment]) -> impl Iterator<Item = (Duration, &Event)> {
    history.iter().filter(|moment| is_try(moment)).map(|moment| (moment.at, &moment.event))
}

fn is_try(moment: &Moment) -> bool {
    matches!(moment.event, Event::Posted | Event::Refused(_) | Event::Undone(_))
}

/// Returns the reasons why resets failed, or may have failed.
pub(super) fn refusals(history: &[Moment]) -> impl Iterator<Item = &Failure> {
    history.iter().filter_map(|moment| moment.event.refusal())
}

/// Returns whether an accepted reset may still take effect. It may, unless the BMC has reported that the reset's task failed.
pub(super) fn may_yet_work(history: &[Moment]) -> bool {
    let last = history.iter().rev().find(|moment| matches!(moment.event, Event::Posted | Event::Undone(_)));
    last.is_some_and(|moment| moment.event == Event::Posted)
}

/// Returns the index of the reset type to post next. After each refusal of a type as unknown, the agent uses the next type.
pub(super) fn type_index(history: &[Moment]) -> usize {
    refusals(history).filter(|failure| failure.kind == FailureKind::ValueRefused).count()
}

pub(super) fn dislikes(history: &[Moment]) -> usize {
    refusals(history)
        .filter(|failure| matches!(failure.kind, FailureKind::Disliked | FailureKind::Precondition))
        .count()
}

/// Describes the events of `history` in half a sentence, for the error text of a time-out.
pub(super) fn story(history: &[Moment]) -> String {
    let accepted = posted(history).count();
    let mut parts = Vec::new();
    if accepted > 0 {
        parts.push(format!("the BMC accepted the reset {}", times(accepted)));
    }
    if let Some((_, last)) = tries(history).last()
        && let Some(refusal) = last.refusal()
    {
        parts.push(format!("the last reset failed ({refusal})"));
    }
    if came_back(history) {
        parts.push("the system was off and came back by itself (is there a power restore policy?)".to_owned());
    }
    match last_reading(history) {
        Some(power) => parts.push(format!("its last power state was {power}")),
        None => parts.push("its power state could not be read".to_owned()),
    }
    let chassis = history.iter().rev().find_map(|moment| match &moment.event {
        Event::Chassis { on } => Some(on),
        _ => None,
    });
    if let Some(Some(path)) = chassis {
        parts.push(format!("its chassis {path} said On"));
    }
    if let Some(Event::Unread(failure)) = history.last().map(|moment| &moment.event) {
        parts.push(failure.to_string());
    }
    parts.join(", ")
}

fn times(count: usize) -> String {
    if count == 1 { "once".to_owned() } else { format!("{count} times") }
}
