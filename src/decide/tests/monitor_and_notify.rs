//! Honest answers of a monitor, a probe and a notification, and what a healthy member writes down.

use super::recovery::leaderless;
use super::world::*;
use crate::base::Fact;
use crate::decide::evidence::*;
use crate::decide::plan::{Effect, Exit, OnFailure, Plan, Request};

#[test]
fn a_claim_that_went_with_pacemakers_former_life_is_published_again_once_there_is_a_leader() {
    let serving = Evidence { own_etcd: Fact::Known(etcd(ME, Some(ME), &[ME, PEER], &[])), ..leaderless() };
    let effects = first(Request::Monitor, &serving.clone().cib_with(|cib| cib.own_record = None)).effects;
    assert!(effects.iter().any(|effect| matches!(effect, Effect::PublishRecord(record) if record.claims)));
    let effects = first(Request::Monitor, &serving).effects;
    assert!(!effects.iter().any(|effect| matches!(effect, Effect::PublishRecord(_))));
}

#[test]
fn monitor_answers_not_running_only_when_it_is_sure() {
    assert_eq!(exit(&first(Request::Monitor, &at_rest())), Some(Exit::NotRunning));
    let unknown = Evidence { container: Fact::Unknown("podman hangs".to_owned()), ..at_rest() };
    assert_eq!(exit(&first(Request::Monitor, &unknown)), Some(Exit::Retriable));
    assert_eq!(exit(&first(Request::Probe, &unknown)), Some(Exit::Retriable));
}

#[test]
fn an_etcd_that_served_and_fell_silent_is_reported_within_its_time() {
    let silent = Evidence { own_etcd: Fact::Unknown("no answer".to_owned()), ..leaderless() };
    let silent = silent.peer_is(PeerNode::Online, PeerAgent::Active);
    assert_eq!(exit(&first(Request::Monitor, &silent)), None);
    assert_eq!(exit(&first(Request::Monitor, &silent.after(13_000))), Some(Exit::Retriable));
}

#[test]
fn a_probe_publishes_what_a_starting_peer_would_wait_for() {
    let evidence = at_rest().with_disk(history(ME, &[ME, PEER], &[]));
    let plan = first(Request::Probe, &evidence);
    assert!(matches!(plan.effects[..], [Effect::PublishRecord(_)]));
    assert_eq!(exit(&plan), Some(Exit::NotRunning));
}

#[test]
fn promoted_is_what_pacemaker_promoted() {
    let voter = || at_rest().running(Fact::Known(etcd(ME, Some(ME), &[ME, PEER], &[]))).seen_voting();
    let promoted = |promoted, promotable| {
        let mut evidence = voter();
        evidence.promotable = promotable;
        if let Fact::Known(memory) = &mut evidence.boot_memory {
            memory.promoted = promoted;
        }
        exit(&first(Request::Monitor, &evidence))
    };
    assert_eq!(promoted(true, true), Some(Exit::Promoted));
    assert_eq!(promoted(false, true), Some(Exit::Success));
    assert_eq!(promoted(true, false), Some(Exit::Success));
}

#[test]
fn two_voters_take_back_what_was_said_of_one() {
    let mut evidence = at_rest().running(Fact::Known(etcd(ME, Some(ME), &[ME, PEER], &[]))).seen_voting();
    evidence = evidence.cib_with(|cib| {
        cib.standalone_node = Some("node1".to_owned());
        cib.learner_node = Some("node2".to_owned());
    });
    let effects = first(Request::Monitor, &evidence).effects;
    assert!(effects.contains(&Effect::SetStandalone(None)) && effects.contains(&Effect::SetLearner(None)));
}

#[test]
fn a_healthy_monitor_writes_nothing() {
    let evidence = at_rest().running(Fact::Known(etcd(ME, Some(ME), &[ME, PEER], &[]))).seen_voting();
    assert_eq!(first(Request::Monitor, &evidence).effects, []);
}

#[test]
fn a_voter_with_a_leader_has_no_use_for_an_operators_word() {
    let mut serving = leaderless();
    serving.confirmation = Fact::Known(word(false));
    let takes_it_back =
        |evidence: &Evidence| first(Request::Monitor, evidence).effects.contains(&Effect::ConsumeConfirmation);
    assert!(!takes_it_back(&serving));
    serving.own_etcd = Fact::Known(etcd(ME, Some(PEER), &[ME, PEER], &[]));
    assert!(takes_it_back(&serving));
}

#[test]
fn what_cannot_be_written_down_does_not_make_a_serving_etcd_fail() {
    let serving = at_rest().running(Fact::Known(etcd(ME, Some(ME), &[ME, PEER], &[])));
    assert_eq!(on_failure(Request::Monitor, &serving), OnFailure::Answer(Exit::Success));
    assert_eq!(on_failure(Request::Monitor, &leaderless()), OnFailure::Answer(Exit::Success));
    let silent = Evidence { own_etcd: Fact::Unknown("no answer".to_owned()), ..serving };
    assert_eq!(on_failure(Request::Monitor, &silent), OnFailure::Answer(Exit::Retriable));
    let recovers = crate::decide::decide(Request::Monitor, &silent, &barrier());
    assert_eq!(recovers.on_failure, OnFailure::FailInTime, "a recovery tries again");
}

#[test]
fn a_voter_that_is_found_running_claims_before_it_remembers() {
    let found = at_rest().running(Fact::Known(etcd(ME, Some(ME), &[ME, PEER], &[])));
    for request in [Request::Start, Request::Monitor] {
        let effects = first(request, &found).effects;
        let claims = effects.iter().any(|effect| matches!(effect, Effect::PublishRecord(record) if record.claims));
        let remembers = effects.iter().any(|effect| matches!(effect, Effect::Remember(_)));
        assert!(claims && !remembers, "{request:?}");
    }
}

#[test]
fn a_voter_has_the_promotion_score_and_a_learner_has_none() {
    let score = |own: Etcd, seen: Option<u32>| {
        let mut evidence = at_rest().running(Fact::Known(own)).seen_voting();
        evidence.promotable = true;
        let evidence = evidence.cib_with(|cib| cib.own_promotion_score = seen);
        let effects = first(Request::Monitor, &evidence).effects;
        effects.into_iter().find_map(|effect| match effect {
            Effect::SetPromotionScore(score) => Some(score),
            _ => None,
        })
    };
    let (voter, learner) = (etcd(ME, Some(ME), &[ME, PEER], &[]), etcd(ME, Some(PEER), &[PEER], &[ME]));
    assert_eq!(score(voter.clone(), None), Some(Some(1000)));
    assert_eq!(score(voter, Some(1000)), None, "a monitor writes only what differs");
    assert_eq!(score(learner.clone(), Some(1000)), Some(None));
    assert_eq!(score(learner, None), None);
}

#[test]
fn two_voters_with_a_leader_have_one_history_and_one_count_of_its_forks() {
    let voter = at_rest().running(Fact::Known(etcd(ME, Some(PEER), &[ME, PEER], &[]))).seen_voting();
    let voter = voter.cib_with(|cib| cib.lineage = forks(2, "node2"));
    let adopted =
        Effect::WriteNote(DurableState { lineage: forks(2, "node2"), of: Some(mine()), ..DurableState::default() });
    assert!(first(Request::Monitor, &voter).effects.contains(&adopted));
    let leaderless = Evidence { own_etcd: Fact::Known(etcd(ME, None, &[ME, PEER], &[])), ..voter };
    assert!(!first(Request::Monitor, &leaderless).effects.contains(&adopted));
}

#[test]
fn a_fork_that_the_cib_has_lost_is_told_anew_by_who_knows_it() {
    let tells = Effect::PublishLineage(forks(2, "node1"));
    let note = DurableState { lineage: forks(2, "node1"), ..DurableState::default() };
    for voters in [&[ME, PEER][..], &[ME]] {
        let voter = at_rest().running(Fact::Known(etcd(ME, Some(ME), voters, &[]))).seen_voting();
        let voter = Evidence { note: Fact::Known(note.clone()), ..voter };
        assert!(first(Request::Monitor, &voter).effects.contains(&tells));
        let known = voter.cib_with(|cib| cib.lineage = forks(2, "node1"));
        assert!(!first(Request::Monitor, &known).effects.contains(&tells));
    }
}

/// Asserts that one action publishes a new voter's claim to run standalone, and also stores for this boot that it votes. If the
/// leader were lost between the two steps, the cluster would need an operator.
#[test]
fn a_new_voter_claims_and_remembers_in_one_action() {
    let mut promoted = at_rest().running(Fact::Known(etcd(ME, Some(PEER), &[ME, PEER], &[])));
    promoted.peer_etcd = Fact::Known(etcd(PEER, Some(PEER), &[ME, PEER], &[]));
    promoted = promoted.peer_is(PeerNode::Online, PeerAgent::Active);
    for (request, evidence) in [
        (Request::Monitor, promoted.clone()),
        (Request::Notify, promoted.clone().notified(Moment::Post, Operation::Start, &["node1"], &[])),
    ] {
        let plan = first(request, &evidence);
        let claims = |effect: &Effect| matches!(effect, Effect::PublishRecord(record) if record.claims);
        assert!(plan.effects.iter().any(claims) && exit(&plan).is_none(), "{plan:?}");
        let claim = PublishedState { claims: true, ..record(history(ME, &[ME, PEER], &[])) };
        let claimed = evidence.cib_with(|cib| cib.own_record = Some(claim));
        let plan = decide(request, &claimed, &progress(plan));
        let remembers = |effect: &Effect| matches!(effect, Effect::Remember(memory) if memory.voter.is_some());
        assert!(plan.effects.iter().any(remembers) && exit(&plan) == Some(Exit::Success), "{plan:?}");
    }
}

/// Asserts that the agent stores the vote of a new voter only once the voter has its leader's entries. The leader acknowledges writes
/// alone between the entry that promotes the voter and the application of that entry.
#[test]
fn a_new_voter_remembers_only_once_it_has_what_its_leader_had() {
    let claim = PublishedState { claims: true, ..record(history(ME, &[ME, PEER], &[])) };
    let voter = at_rest().running(Fact::Known(etcd(ME, Some(PEER), &[ME, PEER], &[])));
    let voter = voter.peer_is(PeerNode::Online, PeerAgent::Active).cib_with(|cib| cib.own_record = Some(claim));
    let remembers = |leader: Etcd| {
        let evidence = Evidence { peer_etcd: Fact::Known(leader), ..voter.clone() };
        let plan = first(Request::Monitor, &evidence);
        plan.effects.iter().any(|effect| matches!(effect, Effect::Remember(memory) if memory.voter.is_some()))
    };
    assert!(remembers(etcd(PEER, Some(PEER), &[ME, PEER], &[])));
    assert!(!remembers(Etcd { index: 1001, ..etcd(PEER, Some(PEER), &[ME, PEER], &[]) }), "it has committed more");
    assert!(!remembers(etcd(PEER, Some(PEER), &[PEER], &[ME])), "it has not applied the promotion");
    let plan = first(Request::Monitor, &voter);
    assert!(!plan.effects.iter().any(|effect| matches!(effect, Effect::Remember(memory) if memory.voter.is_some())));
}

/// Asserts that one unanswered query of the CIB does not clear [`BootState::voter`]. Without the stored voter, a loss of the
/// leader would need an operator.
#[test]
fn a_voter_whose_cib_does_not_answer_once_is_not_forgotten() {
    let voter = at_rest().running(Fact::Known(etcd(ME, Some(PEER), &[ME, PEER], &[]))).seen_voting();
    let mut unseen = Evidence { cib: Fact::Unknown("cibadmin gave no answer within 8.0 s".to_owned()), ..voter };
    unseen.peer_etcd = Fact::Known(Etcd { index: 1001, ..etcd(PEER, Some(PEER), &[ME, PEER], &[]) });
    let memory = unseen.boot_state().unwrap().clone();
    unseen.boot_memory = Fact::Known(BootState { start_failures: 3, ..memory.clone() });
    assert!(memory.voter.is_some());
    assert_eq!(first(Request::Monitor, &unseen).effects, []);
    let unseen = Evidence { elapsed_ms: unseen.budget_ms, ..unseen };
    let kept = |plan: &Plan| {
        plan.effects.iter().all(
            |effect| matches!(effect, Effect::Remember(now) if now.voter == memory.voter && now.start_failures == 3),
        )
    };
    for request in [Request::Start, Request::Promote] {
        let plan = first(request, &unseen);
        assert!(kept(&plan) && exit(&plan) == Some(Exit::Success), "{request:?}: {plan:?}");
    }
    // It is of another member.
    let newcomer = 9;
    let joined = Fact::Known(etcd(newcomer, Some(PEER), &[newcomer, PEER], &[]));
    let plan = first(Request::Start, &Evidence { own_etcd: joined, ..unseen });
    assert!(
        plan.effects.iter().any(|effect| matches!(effect, Effect::Remember(now) if now.voter.is_none())),
        "{plan:?}"
    );
}

/// Asserts that the agent reduces Pacemaker's fail counts. Pacemaker forgets no failure by itself, and bans etcd from a node at
/// `migration-threshold`.
#[test]
fn failures_never_add_up_to_a_ban() {
    let failed = |evidence: Evidence, operation: &str, count| {
        evidence.cib_with(|cib| _ = cib.own_failures.insert(operation.to_owned(), count))
    };
    let set = |plan: &Plan| {
        let counts = plan.effects.iter().filter_map(|effect| match effect {
            Effect::SetFailures { operation, count } => Some((operation.clone(), *count)),
            _ => None,
        });
        counts.collect::<Vec<_>>()
    };
    let expected = [("monitor_5000".to_owned(), 8)];
    let serving = || at_rest().running(Fact::Known(etcd(ME, Some(ME), &[ME, PEER], &[]))).seen_voting();
    assert_eq!(set(&first(Request::Monitor, &failed(serving(), "monitor_5000", 58))), expected);
    assert_eq!(set(&first(Request::Start, &failed(serving(), "monitor_5000", 58))), expected);
    assert_eq!(set(&first(Request::Monitor, &failed(serving(), "monitor_5000", 8))), []);
    let refused = at_rest().with_disk(history(ME, &[ME, PEER], &[])).peer_is(PeerNode::Down, PeerAgent::NoHistory);
    let refused = failed(refused, "start_0", 58).cib_with(|cib| cib.own_start_failures = 58).after(60_000);
    assert_eq!(set(&first(Request::Start, &refused)), [("start_0".to_owned(), 8)]);
}

/// Asserts that on a serving node, the count of failed starts is reduced so far that three more failures can be counted. After
/// three failed starts, a node gives up its claim to run standalone.
#[test]
fn starts_that_failed_before_etcd_served_leave_room_for_three_more() {
    let serving = at_rest().running(Fact::Known(etcd(ME, Some(ME), &[ME, PEER], &[]))).seen_voting();
    let counted = |evidence: Evidence, count| {
        evidence.cib_with(|cib| {
            cib.own_failures.insert("start_0".to_owned(), count);
            cib.own_start_failures = count;
        })
    };
    for request in [Request::Start, Request::Monitor] {
        let plan = first(request, &counted(serving.clone(), 8));
        let left = Effect::SetFailures { operation: "start_0".to_owned(), count: 5 };
        let is_known = |effect: &Effect| matches!(effect, Effect::Remember(memory) if memory.start_failures == 5);
        assert!(plan.effects.contains(&left) && plan.effects.iter().any(is_known), "{request:?}: {plan:?}");
    }
    let memory = BootState { start_failures: 5, ..serving.boot_state().unwrap().clone() };
    let settled = Evidence { boot_memory: Fact::Known(memory), ..counted(serving, 5) };
    assert_eq!(first(Request::Monitor, &settled).effects, []);
}

/// Asserts that a probe publishes a running learner's record again after Pacemaker came back in the same boot. The sole voter
/// that the learner follows may wait for that record.
#[test]
fn a_probe_beside_a_running_learner_says_again_that_it_joins() {
    let mut learner = at_rest().running(Fact::Unknown("no leader".to_owned()));
    learner.note = Fact::Known(DurableState { lineage: forks(1, "node1"), joins: true, ..DurableState::default() });
    let plan = first(Request::Probe, &learner);
    let joins = |effect: &Effect| matches!(effect, Effect::PublishRecord(record) if record.joins && !record.claims);
    assert!(plan.effects.iter().any(joins) && exit(&plan) == Some(Exit::Success), "{plan:?}");
    learner.note = Fact::Absent;
    assert_eq!(first(Request::Probe, &learner).effects, []);
}

#[test]
fn an_operation_is_written_down_by_pacemakers_name_for_it() {
    use Operation::{Demote, None, Promote, Start, Stop};
    for (operation, name) in [(None, ""), (Start, "start"), (Stop, "stop"), (Promote, "promote"), (Demote, "demote")] {
        let written = serde_json::to_string(&operation).unwrap();
        assert_eq!(written, format!("\"{name}\""));
        assert_eq!(serde_json::from_str::<Operation>(&written).unwrap(), operation);
    }
}
