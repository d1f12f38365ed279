//! A machine that is many times slower than others recovers later, not never.

use super::world::*;
use crate::base::Fact;
use crate::decide::Progress;
use crate::decide::evidence::*;
use crate::decide::plan::{Effect, Exit, Phase, Plan, Request, RunMode};
use crate::decide::reason::{Reason, Refusal, Wait};
use crate::decide::timing::QUICK_FAILURES;

const MONITOR_MS: u64 = 23_000;
const NOTIFICATION_MS: u64 = 58_000;
const START_MS: u64 = 598_000;

/// Returns a voter of two with a fenced peer, on a machine with the measured durations `pace`.
fn survivor(budget_ms: u64, pace: Pace) -> Evidence {
    let voter = at_rest().running(Fact::Known(etcd(ME, None, &[ME, PEER], &[]))).seen_voting();
    Evidence { budget_ms, pace, ..voter.peer_is(PeerNode::Down, PeerAgent::NoHistory) }
}

fn launches_take(launch_ms: u64) -> Pace {
    Pace { launch_ms, ..Pace::default() }
}

fn looks_take(look_ms: u64) -> Pace {
    Pace { look_ms, ..Pace::default() }
}

fn notified(evidence: Evidence) -> Evidence {
    evidence.notified(Moment::Post, Operation::Stop, &[], &["node2"])
}

fn begins(plan: &Plan) -> bool {
    matches!(plan.effects.first(), Some(Effect::WriteNote(_)))
}

fn stops(plan: &Plan) -> bool {
    matches!(plan.effects.first(), Some(Effect::StopContainer { .. }))
}

fn is_refused_for_time(plan: &Plan) -> bool {
    matches!(plan.because, Reason::Refused { refusal: Refusal::NoTimeToGoOn { .. }, .. })
        && plan.effects.is_empty()
        && exit(plan) == Some(Exit::Retriable)
}

fn is_left_to_the_next_one(plan: &Plan) -> bool {
    plan.effects.is_empty() && exit(plan) == Some(Exit::Success) && plan.because == Reason::Waiting(Wait::MoreTime)
}

#[test]
fn a_force_is_not_begun_without_the_time_that_launches_took_here() {
    let announced = Progress::enter(Phase::Announced, 0);
    // 15 s for the launch and three for what comes before it.
    for (elapsed_ms, has_time) in [(0, true), (5_000, true), (5_001, false)] {
        let evidence = survivor(MONITOR_MS, launches_take(15_000)).after(elapsed_ms);
        let plan = first(Request::Monitor, &evidence);
        assert_eq!((begins(&plan), is_left_to_the_next_one(&plan)), (has_time, !has_time), "{elapsed_ms}: {plan:?}");
        let plan = decide(Request::Monitor, &evidence.announced(), &announced);
        assert_eq!((stops(&plan), is_left_to_the_next_one(&plan)), (has_time, !has_time), "{elapsed_ms}: {plan:?}");
    }
    // One observation to write, one to read.
    let slow = Pace { look_ms: 4_000, ..launches_take(10_000) };
    for (elapsed_ms, has_time) in [(4_000, true), (4_001, false)] {
        assert_eq!(begins(&first(Request::Monitor, &survivor(MONITOR_MS, slow).after(elapsed_ms))), has_time);
    }
    // A notification has more.
    assert!(begins(&first(Request::Notify, &notified(survivor(NOTIFICATION_MS, launches_take(40_000)).after(10_000)))));
}

#[test]
fn a_vote_proxy_is_not_kept_waiting_for_the_time_of_a_launch() {
    let evidence = Evidence { recovery: Recovery::VoteProxy, ..survivor(MONITOR_MS, launches_take(15_000)) };
    assert!(begins(&first(Request::Monitor, &evidence.clone().after(13_000))));
    assert!(is_left_to_the_next_one(&first(Request::Monitor, &evidence.after(13_001))));
}

#[test]
fn podman_is_not_called_for_a_launch_that_is_known_to_take_longer() {
    let stopped = |budget_ms, launch_ms| {
        let disk = Fact::Known(history(ME, &[ME, PEER], &[]));
        let stopped = survivor(budget_ms, launches_take(launch_ms)).at_the_barrier();
        Evidence { disk, own_etcd: Fact::Absent, ..stopped }
    };
    let forces = |request, evidence: &Evidence| {
        let plan = decide(request, evidence, &barrier());
        assert!(plan.effects.is_empty() || exit(&plan).is_none(), "{plan:?}");
        plan.effects.contains(&Effect::RunContainer(RunMode::ForceNewCluster))
    };
    assert!(forces(Request::Monitor, &stopped(MONITOR_MS, 15_000).after(8_000)));
    assert!(!forces(Request::Monitor, &stopped(MONITOR_MS, 15_000).after(8_001)));
    assert!(forces(Request::Start, &stopped(START_MS, 15_000).after(580_000)));
    assert!(!forces(Request::Start, &stopped(START_MS, 30_000).after(580_000)));
    // Nothing has more time than a start.
    assert!(forces(Request::Start, &stopped(20_000, 60_000).after(10_000)));
}

#[test]
fn what_no_monitor_has_the_time_for_is_left_to_a_start() {
    // A launch takes too long, or the time is over each time before it can begin.
    for (pace, elapsed_ms, takes) in
        [(launches_take(30_000), 0, "takes 33 s"), (looks_take(13_500), 13_500, "takes 10 s")]
    {
        let late = |postponed| survivor(MONITOR_MS, Pace { postponed, ..pace }).after(elapsed_ms);
        // The notification that has more time may come behind a monitor.
        for postponed in 0..3 {
            assert!(is_left_to_the_next_one(&first(Request::Monitor, &late(postponed))), "{takes} {postponed}");
        }
        let refused = first(Request::Monitor, &late(3));
        assert!(is_refused_for_time(&refused), "{refused:?}");
        assert!(refused.because.short().contains(takes), "{}", refused.because.short());
    }
    // What is in time is done, however often it was not.
    let early = survivor(MONITOR_MS, Pace { postponed: 9, ..Pace::default() });
    assert!(begins(&first(Request::Monitor, &early)));
}

/// Asserts that a recovery is left to a start if several actions in a row began it and had no time left for the next observation.
#[test]
fn what_is_announced_again_and_again_in_vain_is_left_to_a_start() {
    let late = |postponed, look_ms| {
        first(Request::Monitor, &survivor(MONITOR_MS, Pace { postponed, ..looks_take(look_ms) }).after(look_ms))
    };
    assert!(begins(&late(2, 6_000)));
    assert!(is_refused_for_time(&late(3, 6_000)));
    assert!(begins(&late(3, 4_000)), "three looks and what follows are in time");
}

#[test]
fn an_earlier_launch_is_ended_only_once_it_takes_longer_than_launches_do() {
    let ends = |launch_ms, budget_ms, elapsed_ms| {
        let launching =
            Evidence { launching: Fact::Known(true), budget_ms, pace: launches_take(launch_ms), ..at_rest() };
        [Request::Start, Request::Stop]
            .map(|request| first(request, &launching.clone().after(elapsed_ms)).effects == [Effect::EndLaunch])
    };
    assert_eq!(ends(0, 88_000, 10_001), [true, true]);
    assert_eq!(ends(30_000, 88_000, 30_000), [false, false]);
    assert_eq!(ends(30_000, 88_000, 30_001), [true, true]);
    assert_eq!(ends(300_000, 88_000, 44_001), [true, true], "half of a stop is for what follows");
}

#[test]
fn a_start_whose_first_look_was_slow_publishes_its_record_all_the_same() {
    let data = at_rest().with_disk(history(ME, &[ME, PEER], &[]));
    let unpublished = data.cib_with(|cib| cib.own_record = None).after(16_000);
    let publishes = |pace| {
        let plan = first(Request::Start, &Evidence { pace, ..unpublished.clone() });
        matches!(plan.effects.last(), Some(Effect::PublishRecord(_))) && exit(&plan).is_none()
    };
    assert!(publishes(looks_take(16_000)));
    assert!(!publishes(Pace::default()), "it does not appear");
    // A start that failed often continues past the patience, and its first publication may come as late.
    let late =
        first(Request::Start, &unpublished.cib_with(|cib| cib.own_start_failures = QUICK_FAILURES).after(15_500));
    assert_eq!((late.effects.len(), exit(&late)), (1, None), "{late:?}");
    let announced = Progress::enter(Phase::Announced, 0);
    let unseen = |pace| {
        let evidence = survivor(NOTIFICATION_MS, pace).announced().cib_with(|cib| cib.lineage = Lineage::default());
        exit(&decide(Request::Monitor, &evidence.after(16_000), &announced))
    };
    assert_eq!([unseen(looks_take(6_000)), unseen(Pace::default())], [None, Some(Exit::Retriable)]);
}

/// Asserts that the wait for a learner is longer on a slow machine, because a promotion needs two consecutive observations.
#[test]
fn a_learner_is_promoted_where_one_look_takes_longer_than_the_patience_with_it() {
    let leads = at_rest().running(Fact::Known(etcd(ME, Some(ME), &[ME], &[PEER]))).seen_voting();
    let leads = Evidence { peer_etcd: Fact::Known(etcd(PEER, Some(ME), &[ME], &[PEER])), ..leads };
    let close = Progress { polls_caught_up: 1, ..Progress::default() };
    let promotes = |request, pace, elapsed_ms| {
        let evidence = Evidence { pace, budget_ms: NOTIFICATION_MS, ..leads.clone() };
        let evidence = evidence.notified(Moment::Post, Operation::Start, &["node2"], &[]);
        let plan = decide(request, &evidence.after(elapsed_ms), &close);
        matches!(plan.effects.first(), Some(Effect::PromoteMember { .. }))
    };
    assert!(promotes(Request::Monitor, looks_take(6_000), 12_500));
    assert!(!promotes(Request::Monitor, Pace::default(), 12_500));
    assert!(promotes(Request::Notify, looks_take(8_000), 16_500));
    assert!(!promotes(Request::Notify, Pace::default(), 16_500));
}

#[test]
fn a_learner_that_is_promoted_has_some_looks_to_become_a_voter() {
    let learner = at_rest().running(Fact::Known(etcd(ME, Some(PEER), &[PEER], &[ME])));
    let asked = |pace| {
        let evidence = Evidence { pace, promotable: true, budget_ms: 28_000, ..learner.clone() };
        exit(&first(Request::Promote, &evidence.after(16_500)))
    };
    assert_eq!([asked(looks_take(8_000)), asked(Pace::default())], [None, Some(Exit::Retriable)]);
}

#[test]
fn a_new_voter_remembers_its_vote_in_the_action_that_finds_it() {
    let voter = at_rest().running(Fact::Known(etcd(ME, Some(ME), &[ME, PEER], &[])));
    let voter = voter.cib_with(|cib| cib.own_record = None);
    let waits = |pace| exit(&first(Request::Monitor, &Evidence { pace, ..voter.clone() }.after(6_000))).is_none();
    assert_eq!([waits(looks_take(6_000)), waits(Pace::default())], [true, false]);
}

#[test]
fn an_etcd_that_is_slow_after_a_vote_is_looked_at_a_few_times() {
    let silent =
        Evidence { own_etcd: Fact::Unknown("no answer".to_owned()), ..survivor(NOTIFICATION_MS, Pace::default()) };
    let stood_in = Progress::enter(Phase::StoodIn, 0);
    let waits = |pace| {
        let evidence = Evidence { pace, recovery: Recovery::VoteProxy, ..silent.clone() }.announced().after(20_000);
        decide(Request::Monitor, &evidence, &stood_in).effects.is_empty()
    };
    assert_eq!([waits(looks_take(9_000)), waits(Pace::default())], [true, false]);
}

/// Asserts that a monitor fails only after three unanswered queries of an etcd that served before. Pacemaker would restart the
/// etcd under its clients.
#[test]
fn an_etcd_that_is_kept_from_its_answer_is_asked_three_times_before_it_is_called_dead() {
    let silent = at_rest().running(Fact::Unknown("no answer".to_owned())).seen_voting();
    let late = |unanswered| {
        let pace = Pace { unanswered, ..looks_take(9_000) };
        let evidence = Evidence { pace, budget_ms: MONITOR_MS, ..silent.clone() }.after(16_000);
        let plan = first(Request::Monitor, &evidence);
        (exit(&plan), out_of_time(Request::Monitor, &evidence, &plan))
    };
    let looks_again = (None, Some(Exit::Success));
    let fails = (Some(Exit::Retriable), None);
    assert_eq!([1, 2, 3, 8].map(late), [looks_again, looks_again, fails, fails]);
    assert_eq!(late(0), fails, "it is not silent for want of time");
}
