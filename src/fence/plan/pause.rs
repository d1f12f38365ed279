//! The pauses between two readings, and after failures.

use std::time::Duration;

use super::history::refusals;
use super::{Event, Moment};
use crate::adapters::redfish::failure::{Failure, FailureKind};

/// The shortest pause between two readings. A fast BMC needs about this time for a reset.
pub(super) const FIRST_POLL: Duration = Duration::from_millis(100);
/// The first pause after a failed request. The pause doubles with each further failure.
pub(super) const FIRST_RETRY: Duration = Duration::from_millis(500);
const LONGEST_RETRY: Duration = Duration::from_secs(4);

/// Returns the pause before the next reading of the power state. The first pause is short, because most systems are fast. The pause doubles
/// with each reading, up to `longest`.
pub(super) fn poll_pause(history: &[Moment], longest: Duration) -> Duration {
    let looks = history.iter().rev().take_while(|moment| matches!(moment.event, Event::Read { .. })).count();
    let pause = FIRST_POLL * 2_u32.saturating_pow(u32::try_from(looks.saturating_sub(1)).unwrap_or(8).min(8));
    pause.min(longest).max(FIRST_POLL)
}

pub(super) fn retry_pause(history: &[Moment], failure: &Failure) -> Duration {
    let failed = history.iter().rev().take_while(|moment| matches!(moment.event, Event::Unread(_))).count();
    doubled(failed).max(asked_pause(failure))
}

pub(super) fn refusal_pause(history: &[Moment]) -> Duration {
    doubled(refusals(history).count())
}

fn doubled(count: usize) -> Duration {
    let exponent = u32::try_from(count.saturating_sub(1)).unwrap_or(8).min(8);
    (FIRST_RETRY * 2_u32.saturating_pow(exponent)).min(LONGEST_RETRY)
}

fn asked_pause(failure: &Failure) -> Duration {
    match failure.kind {
        FailureKind::Busy { retry_after } => retry_after.unwrap_or_default(),
        _ => Duration::ZERO,
    }
}

/// Returns the pause between a refused reset and the next reading. It is short, because a reading shows whether the reset has
/// worked although it was refused.
pub(super) fn after_refusal(failure: &Failure) -> Duration {
    match failure.kind {
        FailureKind::ValueRefused => Duration::ZERO,
        _ => FIRST_POLL,
    }
}
