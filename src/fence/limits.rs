//! How long each phase of an action may take, from its options and the time that is left. Pure.

use std::time::Duration;

use super::config::Timing;
use super::plan::{Goal, Limits};

/// How long to knock at a BMC from which nothing useful was ever heard.
const PATIENCE_ACTING: Duration = Duration::from_secs(10);
const PATIENCE_ASKING: Duration = Duration::from_secs(4);
/// Between two resets that were accepted; longer than the slowest service needs before it begins.
const REPOST: Duration = Duration::from_secs(12);
/// What remains for the last words and for deleting a session.
const RESERVE: Duration = Duration::from_secs(1);

/// The bounds of a phase that begins with `left` of the action's time.
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
