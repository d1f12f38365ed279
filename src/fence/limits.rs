//! The time limits of each phase of an action, from its options and the time that is left. This module is pure.

use std::time::Duration;

use super::config::Timing;
use super::plan::{Goal, Limits};

/// The time for which an action that changes the power retries its requests if the BMC has never given a useful answer.
const PATIENCE_ACTING: Duration = Duration::from_secs(10);
const PATIENCE_ASKING: Duration = Duration::from_secs(4);
/// The time between two accepted resets. It is longer than the slowest BMC needs to begin a reset.
const REPOST: Duration = Duration::from_secs(12);
/// The part of the action's time that is reserved for the last output and the deletion of a session.
const RESERVE: Duration = Duration::from_secs(1);

/// Returns the limits for reaching `goal` if `left` is the action's remaining time.
pub(super) fn of(goal: Goal, timing: &Timing, left: Duration) -> Limits {
    let attempts = if goal == Goal::On { timing.retry_on + 1 } else { u32::MAX };
    let end = left.saturating_sub(RESERVE);
    Limits {
        end,
        patience: if goal == Goal::Know { PATIENCE_ASKING } else { PATIENCE_ACTING },
        after_post: timing.power.map(|limit| if goal == Goal::On { limit * attempts } else { limit }),
        repost: match (goal, timing.power) {
            (Goal::On, Some(limit)) => limit,
            _ => REPOST,
        },
        attempts: if timing.power.is_some() { attempts } else { u32::MAX },
        power_wait: timing.power_wait,
        poll: timing.status_sleep,
        grace: Duration::ZERO,
        may_give_way: false,
    }
}
