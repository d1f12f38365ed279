//! The actions with their times, as the meta-data advertises them, and how much of a time an action may use.

use std::time::Duration;

use crate::adapters::ocf::metadata::Action;
use crate::decide::Request;

/// The actions, with the times that Pacemaker uses where nobody sets others. A stop that overruns is answered with
/// fencing, so it ends well inside its time; a crash is found by monitors, and most of them are cheap
/// (`recent_monitor`). Pacemaker wants another interval for each role.
pub const ACTIONS: &[Action] = &[
    Action::once("start", 600),
    Action::once("stop", 90),
    Action::monitor(25, 1, None),
    Action::monitor(25, 2, Some("Promoted")),
    Action::once("promote", 30),
    Action::once("demote", 30),
    Action::once("notify", 60),
    Action::once("reload-agent", 20),
    Action::once("validate-all", 30),
    Action::once("meta-data", 5),
];

/// What Pacemaker itself gives an action that the meta-data does not name.
pub const PACEMAKERS_DEFAULT_S: u32 = 20;

/// Kept of an action's time: its answer must be there before Pacemaker ends it.
const FOR_THE_ANSWER: Duration = Duration::from_secs(2);

/// The time that the meta-data advertises for a request.
pub fn advertised_timeout(request: Request) -> Duration {
    // A probe is a monitor to Pacemaker.
    let name = if request == Request::Probe { Request::Monitor } else { request }.to_string();
    let advertised =
        ACTIONS.iter().find(|entry| entry.name == name).map_or(PACEMAKERS_DEFAULT_S, |entry| entry.timeout_s);
    Duration::from_secs(u64::from(advertised))
}

/// How much of an action's time may pass until its answer is known, on a machine where an answer was seen to take so long: of a
/// short time, not all is kept.
pub fn budget(timeout: Duration, answer_takes: Duration) -> Duration {
    timeout.saturating_sub(FOR_THE_ANSWER.max(answer_takes).min(timeout / 4))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_action_keeps_what_an_answer_takes_and_no_more_than_a_quarter_of_its_time() {
        let budget_s =
            |timeout, answer_takes| budget(Duration::from_secs(timeout), Duration::from_secs(answer_takes)).as_secs();
        assert_eq!([budget_s(25, 0), budget_s(25, 4), budget_s(24, 60), budget_s(4, 0)], [23, 21, 18, 3]);
    }
}
