//! A fact that an observation did not find out is unknown: nothing is written, given up, removed or stopped for it.

use super::recovery::{leaderless, post_stop};
use super::world::*;
use crate::base::Fact;
use crate::decide::evidence::*;
use crate::decide::plan::{Effect, Exit, Notice, Phase, Plan, Progress, Request};
use crate::decide::reason::{Reason, Wait};

fn cib_unread(evidence: Evidence) -> Evidence {
    Evidence { cib: Fact::Unknown("cibadmin gave no answer within 8.0 s and was killed".to_owned()), ..evidence }
}

fn is_late(unanswered: u64, evidence: Evidence) -> Evidence {
    let pace = Pace { unanswered, ..evidence.pace };
    Evidence { own_etcd: Fact::Unknown("no answer".to_owned()), pace, ..evidence }
}

fn remembers(plan: &Plan) -> Option<bool> {
    plan.effects.iter().find_map(|effect| match effect {
        Effect::Remember(memory) => Some(memory.voter.is_some()),
        _ => None,
    })
}

fn claims(plan: &Plan) -> Option<bool> {
    plan.effects.iter().find_map(|effect| match effect {
        Effect::PublishRecord(record) => Some(record.claims),
        _ => None,
    })
}

fn waits(plan: &Plan) -> bool {
    plan.effects.is_empty() && exit(plan).is_none()
}

/// Asserts that a stop waits for a CIB that does not answer. If the wait ends in vain, the stop of a restart keeps the claim to
/// run standalone, because the following start needs the claim to continue a recovery. Any other stop gives it up.
#[test]
fn a_stop_that_cannot_read_the_cib_looks_again_and_gives_up_no_claim_in_a_restart() {
    let stopped = || at_rest().seen_voting().with_disk(history(ME, &[ME, PEER], &[]));
    let restart = stopped().notified(Moment::Outside, Operation::None, &["node1"], &["node1"]);
    let plain = stopped().notified(Moment::Outside, Operation::None, &[], &["node1"]);
    for evidence in [&restart, &plain] {
        assert!(waits(&first(Request::Stop, &cib_unread(evidence.clone()))));
    }
    let late = |evidence: &Evidence| first(Request::Stop, &cib_unread(evidence.clone()).after(40_000));
    let [kept, given_up] = [&restart, &plain].map(late);
    assert_eq!((remembers(&kept), claims(&kept), exit(&kept)), (Some(true), None, Some(Exit::Success)), "{kept:?}");
    let all = (remembers(&given_up), claims(&given_up), exit(&given_up));
    assert_eq!(all, (Some(false), Some(false), Some(Exit::Success)), "the peer may go on: {given_up:?}");
    let mut blank = cib_unread(plain);
    blank.boot_memory = Fact::Absent;
    assert_eq!(exit(&first(Request::Stop, &blank)), Some(Exit::Success), "there is nothing to keep");
}

#[test]
fn neither_a_probe_nor_a_start_that_waits_gives_a_claim_up_unread() {
    let stopped = at_rest().seen_voting().with_disk(history(ME, &[ME, PEER], &[]));
    assert_eq!(claims(&first(Request::Probe, &stopped)), Some(true));
    assert_eq!(first(Request::Probe, &cib_unread(stopped.clone())).effects, []);
    let mut in_the_way = cib_unread(stopped);
    in_the_way.local.obstacle = Some(Obstacle::PortTaken(2380));
    let plan = first(Request::Start, &in_the_way);
    assert!(matches!(plan.because, Reason::Waiting(Wait::WayToBeFree { .. })) && plan.effects.is_empty(), "{plan:?}");
}

/// Asserts that a stop gives up the claim to run standalone even if it cannot read its data. It does so in the CIB as well as in the
/// `BootState`, because the peer waits until the CIB shows it.
#[test]
fn a_stop_that_cannot_read_its_data_gives_the_claim_up_in_the_cib_as_well() {
    let stopped = at_rest().seen_voting().notified(Moment::Outside, Operation::None, &[], &["node1"]);
    let mut unreadable = stopped.peer_is(PeerNode::Online, PeerAgent::Active);
    unreadable.disk = Fact::Unknown("input/output error".to_owned());
    let plan = first(Request::Stop, &unreadable);
    assert_eq!((remembers(&plan), claims(&plan)), (Some(false), Some(false)), "{plan:?}");
}

/// Asserts that no learner is removed as unknown while the CIB cannot be read, because only the CIB shows whether the learner is
/// the third voter.
#[test]
fn no_learner_is_a_stranger_where_the_cib_is_not_read() {
    let mut alone = etcd(ME, Some(ME), &[ME], &[7]);
    alone.members.iter_mut().filter(|member| member.id == 7).for_each(|member| {
        member.name = "elsewhere".to_owned();
        member.peer_urls = vec!["https://192.0.2.77:2380".to_owned()];
    });
    let alone = at_rest().running(Fact::Known(alone)).seen_voting();
    let removes = |plan: &Plan| plan.effects.iter().any(|effect| matches!(effect, Effect::RemoveMember { .. }));
    assert!(removes(&first(Request::Monitor, &alone)), "nobody has named it");
    let plan = first(Request::Monitor, &cib_unread(alone));
    assert!(!removes(&plan) && exit(&plan) == Some(Exit::Success), "{plan:?}");
}

/// Asserts that a start waits for the CIB, which may show a request of another program to this start. If the start does not clear
/// the request, no monitor clears it, and the next stop follows it wrongly.
#[test]
fn a_start_does_not_succeed_before_it_has_read_the_cib() {
    let served = at_rest().running(Fact::Known(etcd(ME, Some(ME), &[ME, PEER], &[]))).seen_voting();
    let served = served.cib_with(|cib| cib.others.restart_no_leave = true);
    let plan = first(Request::Start, &cib_unread(served.clone()));
    assert!(waits(&plan), "{plan:?}");
    let plan = decide(Request::Start, &served, &progress(plan));
    assert!(plan.effects.contains(&Effect::TellOthers(Notice::RestartDone)), "{plan:?}");
    let late = Evidence { elapsed_ms: served.budget_ms - 5_000, ..served };
    assert_eq!(exit(&first(Request::Start, &cib_unread(late))), Some(Exit::Success));
}

/// Asserts that a monitor without the CIB waits after etcd has ended, because another program may be restarting it. A monitor
/// with the CIB reports the end at once.
#[test]
fn a_monitor_without_the_cib_waits_as_beside_a_restart_behind_pacemaker() {
    let gap = Evidence { container: Fact::Absent, own_etcd: Fact::Absent, ..at_rest().seen_voting() };
    assert_eq!(exit(&first(Request::Monitor, &gap)), Some(Exit::NotRunning));
    let unread = cib_unread(gap);
    let plan = first(Request::Monitor, &unread);
    assert!(waits(&plan) && plan.because.to_string().contains("cibadmin gave no answer"), "{plan:?}");
    assert_eq!(exit(&first(Request::Monitor, &unread.after(16_000))), Some(Exit::NotRunning));
}

/// Asserts that after the peer's clean stop, an etcd that answers late is not stopped. In such a stop the peer normally leaves
/// the member list, so this etcd needs no other vote.
#[test]
fn an_etcd_that_may_serve_alone_is_not_stopped_for_answers_that_are_late() {
    let announced = Progress::enter(Phase::Announced, 0);
    let left = || post_stop(leaderless()).peer_is(PeerNode::Down, PeerAgent::Stopped);
    for late in [1, 2] {
        for request in [Request::Monitor, Request::Notify] {
            assert_eq!(first(request, &is_late(late, left())).effects, [], "{late}");
            let plan = decide(request, &is_late(late, left()).announced(), &announced);
            assert!(waits(&plan), "{plan:?}");
        }
    }
    let begins = |evidence: Evidence| {
        let plan = first(Request::Notify, &evidence);
        let then = decide(Request::Notify, &evidence.announced(), &announced);
        let stops = matches!(then.effects.first(), Some(Effect::StopContainer { .. }));
        matches!(plan.effects.first(), Some(Effect::WriteNote(_))) && stops
    };
    assert!(begins(is_late(3, left())), "it was asked often enough");
    let fenced = post_stop(leaderless()).peer_is(PeerNode::Down, PeerAgent::NoHistory);
    assert!(begins(is_late(1, fenced)), "nobody leaves before it is fenced");
}

#[test]
fn neither_a_reload_nor_a_monitor_fails_for_an_answer_that_is_late() {
    let alone = Evidence { peer: None, ..at_rest().running(Fact::Absent).seen_voting() };
    let ends = |late| exit(&first(Request::Reload, &is_late(late, alone.clone())));
    assert_eq!([1, 2, 3].map(ends), [None, None, Some(Exit::Retriable)]);
    let unproven = leaderless().peer_is(PeerNode::Down, PeerAgent::NoHistory).cib_with(|cib| cib.own_record = None);
    let fails = |late| exit(&first(Request::Monitor, &is_late(late, unproven.clone()))) == Some(Exit::Retriable);
    assert_eq!([1, 2, 3].map(fails), [false, false, true]);
}
