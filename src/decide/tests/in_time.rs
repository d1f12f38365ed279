//! What does not fit into an action's time is not begun in it, and what was begun is not undone.

use super::world::*;
use crate::base::Fact;
use crate::decide::Progress;
use crate::decide::evidence::*;
use crate::decide::plan::{Effect, Exit, Phase, Plan, Request, RunMode};
use crate::decide::reason::{Reason, Refusal, Wait};

/// Milliseconds that a monitor with a time-out of 25 s may use.
const BUDGET_MS: u64 = 23_000;

/// Returns a voter of two with a fenced peer, in an action that has a monitor's time.
fn survivor() -> Evidence {
    let voter = at_rest().running(Fact::Known(etcd(ME, None, &[ME, PEER], &[]))).seen_voting();
    Evidence { budget_ms: BUDGET_MS, ..voter.peer_is(PeerNode::Down, PeerAgent::NoHistory) }
}

fn fenced(evidence: Evidence) -> Evidence {
    evidence.notified(Moment::Post, Operation::Stop, &[], &["node2"])
}

fn announced() -> Progress {
    Progress::enter(Phase::Announced, 0)
}

/// Returns the survivor after its etcd was stopped, before the force.
fn stopped() -> Evidence {
    let stopped = Evidence { disk: Fact::Known(history(ME, &[ME, PEER], &[])), ..survivor().at_the_barrier() };
    Evidence { own_etcd: Fact::Absent, ..stopped }
}

/// Returns the survivor with an etcd that this agent forced to be the only voter, and that has not served since.
fn forced(own: Fact<Etcd>) -> Evidence {
    let mut evidence = survivor().announced().running(own);
    evidence.container = Fact::Known(Container { running: true, forces_new_cluster: true, ..Container::default() });
    evidence.cib_with(|cib| {
        if let Some(record) = &mut cib.own_record {
            record.nonce = Some(2);
        }
    })
}

fn silent() -> Fact<Etcd> {
    Fact::Unknown("no answer".to_owned())
}

fn is_left_to_the_next_one(plan: &Plan) -> bool {
    plan.effects.is_empty() && exit(plan) == Some(Exit::Success) && plan.because == Reason::Waiting(Wait::MoreTime)
}

#[test]
fn going_on_alone_begins_only_with_the_time_to_end_it() {
    for request in [Request::Monitor, Request::Notify] {
        for (elapsed_ms, begins) in [(0, true), (13_000, true), (13_001, false), (22_000, false)] {
            let plan = first(request, &fenced(survivor()).after(elapsed_ms));
            assert_eq!(matches!(plan.effects.first(), Some(Effect::WriteNote(_))), begins, "{request:?} {elapsed_ms}");
            assert_eq!(is_left_to_the_next_one(&plan), !begins, "{request:?} {elapsed_ms}: {plan:?}");
            // Nor is etcd stopped late for an announcement that was slow.
            let plan = decide(request, &fenced(survivor()).announced().after(elapsed_ms), &announced());
            assert_eq!(matches!(plan.effects.first(), Some(Effect::StopContainer { .. })), begins, "{elapsed_ms}");
            assert_eq!(is_left_to_the_next_one(&plan), !begins, "{request:?} {elapsed_ms}: {plan:?}");
        }
    }
    // An operator's short time is enough, or it would never begin.
    let short = Evidence { budget_ms: 8_000, ..survivor() };
    assert!(matches!(first(Request::Monitor, &short.after(1_000)).effects.first(), Some(Effect::WriteNote(_))));
}

#[test]
fn podman_is_not_called_for_a_force_that_would_be_cut_short() {
    let forces = |plan: &Plan| plan.effects.contains(&Effect::RunContainer(RunMode::ForceNewCluster));
    assert!(forces(&decide(Request::Monitor, &stopped().after(16_000), &barrier())));
    let late = decide(Request::Monitor, &stopped().after(16_001), &barrier());
    assert!(late.effects.is_empty() && exit(&late) == Some(Exit::Retriable), "{late:?}");
}

#[test]
fn what_a_podman_that_was_cut_short_has_launched_is_gone_on_with() {
    for own in [silent(), Fact::Absent, Fact::Known(etcd(ME, Some(ME), &[ME], &[]))] {
        let plan = decide(Request::Monitor, &forced(own.clone()), &barrier());
        assert!(is_harmless(&plan) && exit(&plan) != Some(Exit::Retriable), "{own:?}: {plan:?}");
    }
    // One that runs without it has not been stopped: nothing is forced next to it.
    let still_there = survivor().at_the_barrier().running(silent());
    let plan = decide(Request::Monitor, &still_there, &barrier());
    assert!(matches!(plan.because, Reason::Refused { refusal: Refusal::StillRunning, .. }), "{plan:?}");
}

#[test]
fn an_etcd_that_was_forced_and_is_slow_does_not_fail_the_monitor_that_forced_it() {
    let started = Progress::enter(Phase::Started(RunMode::ForceNewCluster), 9_000);
    for own in [silent(), Fact::Absent, Fact::Known(etcd(ME, None, &[ME], &[]))] {
        for elapsed_ms in (9_000..BUDGET_MS).step_by(500) {
            let plan = decide(Request::Monitor, &forced(own.clone()).after(elapsed_ms), &started);
            assert!(is_harmless(&plan) && exit(&plan) != Some(Exit::Retriable), "{elapsed_ms}: {plan:?}");
        }
    }
    let ended = Evidence { container: Fact::Absent, ..forced(Fact::Absent) };
    assert_eq!(exit(&decide(Request::Monitor, &ended, &started)), Some(Exit::Retriable), "one that has ended is");
}

#[test]
fn what_was_forced_is_not_stopped_to_be_forced_once_more() {
    for elapsed_ms in (0..BUDGET_MS).step_by(500) {
        let plan = first(Request::Monitor, &forced(silent()).after(elapsed_ms));
        assert!(is_harmless(&plan), "{elapsed_ms}: {plan:?}");
        assert_eq!(exit(&plan).is_none(), elapsed_ms <= 20_000, "{elapsed_ms}: not for ever: {plan:?}");
    }
    // Without our announcement the force is an old one.
    let old = Evidence { note: Fact::Absent, ..forced(silent()) };
    let old = old.cib_with(|cib| cib.lineage = Lineage::default());
    assert!(matches!(first(Request::Monitor, &old).effects.first(), Some(Effect::WriteNote(_))));
}

#[test]
fn a_monitor_whose_time_is_over_leaves_what_it_launched_to_the_next_one() {
    let launches = decide(Request::Monitor, &stopped(), &barrier());
    assert!(launches.effects.contains(&Effect::RunContainer(RunMode::ForceNewCluster)));
    assert_eq!(out_of_time(Request::Monitor, &stopped(), &launches), Some(Exit::Success));
    assert_eq!(out_of_time(Request::Start, &stopped(), &launches), None);
    let announces = first(Request::Monitor, &survivor());
    assert_eq!(out_of_time(Request::Monitor, &survivor(), &announces), Some(Exit::Success), "etcd runs on");
    let stops = decide(Request::Monitor, &survivor().announced(), &announced());
    assert!(matches!(stops.effects[..], [Effect::StopContainer { .. }, _]));
    assert_eq!(out_of_time(Request::Monitor, &survivor(), &stops), None, "nothing runs");
}

/// Asserts that a monitor does not fail while etcd serves, even if the monitor runs out of time. If it failed on a machine where one
/// observation takes seconds, Pacemaker would restart etcd only because a learner is not promoted yet.
#[test]
fn a_monitor_whose_time_is_over_does_not_fail_beside_an_etcd_that_answers() {
    let leader = at_rest().running(Fact::Known(etcd(ME, Some(ME), &[ME], &[PEER]))).seen_voting();
    let peer_etcd = Fact::Known(etcd(PEER, Some(ME), &[ME], &[PEER]));
    let leader = Evidence { budget_ms: BUDGET_MS, peer_etcd, ..leader };
    let waits = first(Request::Monitor, &leader);
    assert!(matches!(waits.because, Reason::Waiting(Wait::LearnerToCatchUp { .. })), "{waits:?}");
    assert_eq!(out_of_time(Request::Monitor, &leader, &waits), Some(Exit::Success));
    let silent = Evidence { own_etcd: Fact::Unknown("no answer".to_owned()), ..leader };
    assert_eq!(out_of_time(Request::Monitor, &silent, &waits), None, "who does not answer has failed");
}

#[test]
fn where_nobody_can_tell_what_is_launched_nothing_is_stopped_to_be_forced() {
    let unsure = Evidence { launching: Fact::Unknown("I/O error".to_owned()), ..survivor() };
    assert!(is_harmless(&first(Request::Monitor, &unsure)));
}

/// Returns a voter that Pacemaker is about to promote while etcd does not answer.
fn slow_voter() -> Evidence {
    Evidence { promotable: true, own_etcd: silent(), ..survivor() }
}

#[test]
fn a_voter_that_is_slow_to_answer_is_promoted_all_the_same() {
    for elapsed_ms in [0, 10_000, 19_000] {
        assert_eq!(exit(&first(Request::Promote, &slow_voter().after(elapsed_ms))), None, "{elapsed_ms}");
    }
    let promoted = first(Request::Promote, &slow_voter().after(20_500));
    assert_eq!(exit(&promoted), Some(Exit::Success));
    let remembers =
        |effect: &Effect| matches!(effect, Effect::Remember(memory) if memory.promoted && memory.voter.is_some());
    assert!(promoted.effects.iter().any(remembers), "{promoted:?}");
    let never_seen = Evidence { boot_memory: Fact::Absent, ..slow_voter() };
    let nothing_listens = Evidence { own_etcd: Fact::Absent, ..slow_voter() };
    let not_running = Evidence { container: Fact::Absent, ..slow_voter() };
    for (name, evidence) in [("unseen", never_seen), ("deaf", nothing_listens), ("stopped", not_running)] {
        assert_eq!(exit(&first(Request::Promote, &evidence.after(20_500))), Some(Exit::Retriable), "{name}");
    }
}

#[test]
fn a_notification_after_which_nothing_is_done_says_why() {
    let reason = |evidence: Evidence| {
        let plan = first(Request::Notify, &fenced(evidence));
        assert!(plan.effects.is_empty() && exit(&plan) == Some(Exit::Success), "{plan:?}");
        plan.because.to_string()
    };
    let own = |own| Evidence { own_etcd: own, ..survivor() };
    let rows = vec![
        (survivor().peer_is(PeerNode::Lost, PeerAgent::Active), "until node2 is back or confirmed stopped or fenced"),
        (survivor().cib_with(|cib| cib.lineage = forks(1, "node2")), "node2 is known to have gone on"),
        (Evidence { boot_memory: Fact::Absent, ..survivor() }, "node2 may have gone on"),
        (Evidence { boot_memory: Fact::Absent, ..own(silent()) }, "no answer"),
        (own(Fact::Known(etcd(ME, Some(ME), &[ME], &[]))), "the sole voter"),
        (own(Fact::Known(etcd(ME, None, &[PEER], &[ME]))), "a learner"),
        (Evidence { container: Fact::Absent, ..own(Fact::Absent) }, "does not run"),
    ];
    for (evidence, words) in rows {
        let said = reason(evidence);
        assert!(said.contains(words), "{words}: {said}");
    }
}

/// Asserts that a monitor waits for a restart by OpenShift's certificate watcher. The watcher sets `restart_no_leave`, and
/// restarts the container itself.
#[test]
fn a_monitor_that_meets_a_restart_behind_pacemaker_waits_for_its_end() {
    let gap = Evidence { container: Fact::Absent, own_etcd: Fact::Absent, ..survivor() };
    let restarted = gap.clone().cib_with(|cib| cib.others.restart_no_leave = true);
    assert_eq!(exit(&first(Request::Monitor, &gap)), Some(Exit::NotRunning));
    for (elapsed_ms, waits) in [(0, true), (14_000, true), (16_000, false)] {
        let plan = first(Request::Monitor, &restarted.clone().after(elapsed_ms));
        assert_eq!(exit(&plan), (!waits).then_some(Exit::NotRunning), "{elapsed_ms}: {plan:?}");
    }
    let short = Evidence { budget_ms: 8_000, ..restarted };
    assert_eq!(exit(&first(Request::Monitor, &short.clone().after(6_000))), Some(Exit::NotRunning));
    assert_eq!(exit(&first(Request::Probe, &short)), Some(Exit::NotRunning), "a probe answers what is");
}

/// Asserts that the reason names a command to type if the peer stopped as the first half of a restart that has no second half,
/// for example because of a standby. After such a stop, no action on the peer gives up its claim to run standalone.
#[test]
fn a_peer_that_stopped_half_way_through_a_restart_is_named_with_what_to_type() {
    let claims = PublishedState { claims: true, ..record(history(PEER, &[ME, PEER], &[])) };
    let waits = survivor().peer_is(PeerNode::Online, PeerAgent::Stopped);
    let waits = Evidence { notify: None, ..waits }.cib_with(|cib| cib.peer_record = Some(claims));
    let plan = first(Request::Monitor, &waits);
    assert!(plan.because.to_string().contains("'pcs cluster stop node2'"), "{plan:?}");
    // Once that is typed, the node continues.
    let left = waits.peer_is(PeerNode::Down, PeerAgent::Stopped);
    assert!(!first(Request::Monitor, &left).effects.is_empty());
}
