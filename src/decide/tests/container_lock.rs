//! What an earlier action left behind, in the middle of a change to the container.

use super::world::*;
use crate::base::Fact;
use crate::decide::Progress;
use crate::decide::evidence::*;
use crate::decide::plan::{Effect, Exit, Phase, Plan, Request};
use crate::decide::reason::{Reason, Wait};

const EVERY_REQUEST: [Request; 7] = [
    Request::Start,
    Request::Stop,
    Request::Monitor,
    Request::Probe,
    Request::Notify,
    Request::Promote,
    Request::Demote,
];

/// Returns a node on which nothing runs yet, while the podman of an earlier action is about to start the container.
fn launching() -> Evidence {
    Evidence { launching: Fact::Known(true), budget_ms: 25_000, ..at_rest() }
}

fn waits(plan: &Plan) -> bool {
    plan.effects.is_empty() && exit(plan).is_none() && plan.because == Reason::Waiting(Wait::EarlierAction)
}

#[test]
fn nothing_is_decided_beside_a_launch_that_a_killed_agent_left_behind() {
    let launching = launching().with_disk(history(ME, &[ME, PEER], &[]));
    for request in EVERY_REQUEST {
        let plan = first(request, &launching);
        assert_eq!(waits(&plan), request != Request::Demote, "{request:?}: {plan:?}");
        let over = Evidence { launching: Fact::Known(false), ..launching.clone() };
        assert!(!waits(&first(request, &over)), "{request:?}");
    }
}

#[test]
fn a_stop_is_answered_only_once_no_launch_is_under_way() {
    assert_eq!(exit(&first(Request::Stop, &at_rest())), Some(Exit::Success));
    for unsure in [Fact::Known(true), Fact::Unknown("I/O error".to_owned())] {
        for phase in [Phase::Begin, Phase::Stopped] {
            for elapsed_ms in (0..90_000).step_by(1_000) {
                let evidence = Evidence { launching: unsure.clone(), budget_ms: 88_000, ..at_rest() };
                let plan = decide(Request::Stop, &evidence.after(elapsed_ms), &Progress::enter(phase.clone(), 0));
                assert_ne!(exit(&plan), Some(Exit::Success), "{unsure:?} {phase:?} {elapsed_ms}");
            }
        }
    }
}

#[test]
fn a_stop_and_a_start_end_what_takes_too_long_and_nobody_else_does() {
    for request in EVERY_REQUEST {
        let plan = first(request, &Evidence { budget_ms: 88_000, ..launching() }.after(11_000));
        let ends = plan.effects == [Effect::EndLaunch];
        assert_eq!(ends, matches!(request, Request::Start | Request::Stop), "{request:?}: {plan:?}");
    }
}

#[test]
fn a_monitor_does_not_fail_an_etcd_that_runs_for_what_still_goes_on_beside_it() {
    let silent = launching().running(Fact::Unknown("no answer".to_owned()));
    assert!(waits(&first(Request::Monitor, &silent)));
    let late = Evidence { budget_ms: 28_000, ..silent }.after(24_000);
    for request in [Request::Monitor, Request::Probe] {
        assert_eq!(exit(&first(request, &late)), Some(Exit::Success), "{request:?}");
        assert_eq!(
            exit(&first(request, &Evidence { budget_ms: 28_000, ..launching() }.after(24_000))),
            Some(Exit::Retriable),
            "{request:?}"
        );
    }
    let serves = launching().running(Fact::Known(etcd(ME, Some(ME), &[ME, PEER], &[]))).seen_voting();
    assert_eq!(exit(&first(Request::Monitor, &serves)), Some(Exit::Success), "nobody changes what has a leader");
}

#[test]
fn who_cannot_tell_whether_something_is_launched_does_not_say_that_nothing_runs() {
    let unsure = Evidence { launching: Fact::Unknown("I/O error".to_owned()), ..at_rest() };
    assert_eq!(exit(&first(Request::Probe, &unsure)), Some(Exit::Retriable));
}

/// Asserts that replaying a recorded decision without the fact `launching` gives the same plan. The agent that recorded the
/// decision did not ask for that fact.
#[test]
fn who_was_not_asked_launches_nothing() {
    let old = Evidence { launching: Fact::NotAsked, ..at_rest() };
    assert_eq!(exit(&first(Request::Stop, &old)), Some(Exit::Success));
    assert_eq!(exit(&first(Request::Probe, &old)), Some(Exit::NotRunning));
}
