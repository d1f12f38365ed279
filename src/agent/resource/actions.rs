//! The actions with their time-outs, as the meta-data advertises them, and the usable part of a time-out.

use std::time::Duration;

use crate::adapters::ocf::metadata::Action;
use crate::decide::Request;

/// Actions of the resource agent, with their default time-outs in Pacemaker. A stop ends well inside its time-out, because Pacemaker fences
/// a node if a stop times out. Monitors are frequent, so that they detect a crash early. Most monitors are cheap (`recent_monitor`).
/// Pacemaker requires a different monitor interval for each role.
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

/// Time-out in seconds that Pacemaker gives to an action for which the meta-data name none.
pub const PACEMAKERS_DEFAULT_S: u32 = 20;

/// Part of an action's time that is reserved for reporting the result, before Pacemaker kills the action.
const FOR_THE_ANSWER: Duration = Duration::from_secs(2);

/// Returns the time-out of a request in the agent's meta-data.
pub fn advertised_timeout(request: Request) -> Duration {
    // Pacemaker treats a probe as a monitor.
    let name = if request == Request::Probe { Request::Monitor } else { request }.to_string();
    let advertised =
        ACTIONS.iter().find(|entry| entry.name == name).map_or(PACEMAKERS_DEFAULT_S, |entry| entry.timeout_s);
    Duration::from_secs(u64::from(advertised))
}

/// Returns how much of its time-out an action may use, so that its result comes in time. `answer_takes` is the measured time for reporting
/// a result on this machine. If the time-out is short, only a part of it is reserved for reporting.
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
