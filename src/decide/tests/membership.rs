//! The member list: a returning peer is listed, a learner that has caught up votes, and strangers make place.

use super::recovery::post_stop;
use super::world::*;
use crate::base::Fact;
use crate::decide::Progress;
use crate::decide::evidence::*;
use crate::decide::plan::{Effect, Exit, Request, RunMode, Via};

#[test]
fn a_returning_peer_is_listed_before_it_starts_and_never_twice() {
    let sole = at_rest().running(Fact::Known(etcd(ME, Some(ME), &[ME], &[]))).seen_voting();
    let starting = sole.notified(Moment::Pre, Operation::Start, &["node2"], &[]);
    let plan = first(Request::Notify, &starting);
    assert_eq!(plan.effects[0], Effect::AddLearner { peer_url: "https://node2:2380".to_owned(), via: Via::Own });
    let listed = Evidence { own_etcd: Fact::Known(etcd(ME, Some(ME), &[ME], &[PEER])), ..starting };
    assert!(first(Request::Notify, &listed).effects.is_empty());
}

#[test]
fn a_learner_is_promoted_after_two_polls_with_a_small_absolute_lag() {
    let learner = |index| {
        let mut evidence = at_rest().running(Fact::Known(etcd(ME, Some(ME), &[ME], &[PEER]))).seen_voting();
        let answer = Etcd { index, ..etcd(PEER, Some(ME), &[ME], &[PEER]) };
        evidence.peer_etcd = Fact::Known(answer);
        evidence
    };
    let far = first(Request::Monitor, &learner(899));
    assert!(far.effects.is_empty(), "101 entries behind");
    let near = first(Request::Monitor, &learner(950));
    assert!(near.effects.is_empty(), "one poll is not enough");
    let after_far = decide(Request::Monitor, &learner(899), &progress(near.clone()));
    assert_eq!(progress(after_far).polls_caught_up, 0);
    let second = decide(Request::Monitor, &learner(950), &progress(near));
    assert_eq!(second.effects, [Effect::PromoteMember { id: PEER, via: Via::Own }]);
}

#[test]
fn a_stranger_that_answers_in_the_learners_place_is_not_promoted() {
    let mut evidence = at_rest().running(Fact::Known(etcd(ME, Some(ME), &[ME], &[PEER]))).seen_voting();
    evidence.peer_etcd = Fact::Known(Etcd { member_id: 9, ..etcd(PEER, Some(ME), &[ME], &[PEER]) });
    let progress = Progress { polls_caught_up: 1, ..Progress::default() };
    let effects = decide(Request::Monitor, &evidence, &progress).effects;
    assert!(!effects.iter().any(|effect| matches!(effect, Effect::PromoteMember { .. })));
}

#[test]
fn a_listed_learner_is_named_so_that_an_agent_of_another_kind_starts_it() {
    let mut listed = etcd(ME, Some(ME), &[ME], &[PEER]);
    listed.members[1].name.clear();
    let named = Effect::SetLearner(Some("node2".to_owned()));
    let serving = at_rest().running(Fact::Known(listed)).seen_voting();
    let monitored = first(Request::Monitor, &serving);
    assert!(monitored.effects.contains(&named), "{monitored:?}");
    let returns = serving.clone().notified(Moment::Pre, Operation::Start, &["node2"], &[]);
    assert_eq!(first(Request::Notify, &returns).effects, std::slice::from_ref(&named));
    let known = serving.cib_with(|cib| cib.learner_node = Some("node2".to_owned()));
    assert!(!first(Request::Monitor, &known).effects.contains(&named));
    let started = at_rest().running(Fact::Known(etcd(ME, Some(ME), &[ME], &[PEER]))).seen_voting();
    assert!(!first(Request::Monitor, &started).effects.contains(&named));
}

#[test]
fn a_learner_at_nobodys_address_makes_place_and_a_voter_there_is_not_touched() {
    let sole = |voters: &[u64], learners: &[u64]| {
        at_rest().running(Fact::Known(etcd(ME, Some(ME), voters, learners))).seen_voting()
    };
    let stranger = sole(&[ME], &[7]);
    let removed = [Effect::RemoveMember { id: 7, via: Via::Own }];
    assert_eq!(first(Request::Monitor, &stranger).effects, removed);
    let starting = stranger.notified(Moment::Pre, Operation::Start, &["node2"], &[]);
    assert_eq!(first(Request::Notify, &starting).effects, removed);
    let only_node = Evidence { peer: None, ..sole(&[ME], &[PEER]) };
    assert_eq!(first(Request::Monitor, &only_node).effects, [Effect::RemoveMember { id: PEER, via: Via::Own }]);
    for (voters, learners) in [(&[ME, 7][..], &[][..]), (&[ME, PEER, 7], &[]), (&[ME], &[PEER])] {
        let effects = first(Request::Monitor, &sole(voters, learners)).effects;
        assert!(!effects.iter().any(|effect| matches!(effect, Effect::RemoveMember { .. })), "{voters:?} {learners:?}");
    }
}

/// Asserts that the agent changes nothing in a cluster of three or more voters, because Raft's own majority decides there. An operator
/// added the third one with etcd's own commands.
#[test]
fn more_than_two_voters_are_plain_raft() {
    let many = |leader| etcd(ME, leader, &[ME, PEER, 3], &[]);
    let down = at_rest().seen_voting().peer_is(PeerNode::Down, PeerAgent::NoHistory);
    let published = PublishedState { claims: true, ..record(history(ME, &[ME, PEER, 3], &[])) };
    let down = down.cib_with(|cib| cib.own_record = Some(published));
    for own in [Fact::Known(many(None)), Fact::Unknown("no answer".to_owned())] {
        let leaderless = down.clone().running(own);
        assert_eq!(first(Request::Monitor, &leaderless).effects, []);
        assert_ne!(exit(&first(Request::Monitor, &leaderless.clone())), Some(Exit::Retriable));
        assert_eq!(first(Request::Notify, &post_stop(leaderless)).effects, []);
    }
    let mut stranger = many(Some(ME));
    stranger.members.push(Member { is_learner: true, ..etcd(4, None, &[4], &[]).members[0].clone() });
    let serving = down.clone().running(Fact::Known(stranger)).peer_is(PeerNode::Online, PeerAgent::Active);
    let effects = first(Request::Monitor, &serving).effects;
    let changes = |effect: &Effect| matches!(effect, Effect::RemoveMember { .. } | Effect::AddLearner { .. });
    assert!(!effects.iter().any(changes), "{effects:?}");
    for machine in [PeerNode::Down, PeerNode::Lost] {
        let started = down.clone().with_disk(history(ME, &[ME, PEER, 3], &[])).peer_is(machine, PeerAgent::NoHistory);
        assert_eq!(first(Request::Start, &started).effects, [Effect::RunContainer(RunMode::Normally)]);
    }
}

#[test]
fn a_learner_whose_machine_is_being_deleted_is_promoted_by_nobody() {
    let mut serving = at_rest().running(Fact::Known(etcd(ME, Some(ME), &[ME], &[PEER]))).seen_voting();
    serving = serving.peer_is(PeerNode::Online, PeerAgent::Active);
    serving.peer_etcd = Fact::Known(etcd(PEER, Some(ME), &[ME], &[PEER]));
    let caught_up = Progress { polls_caught_up: 1, ..Progress::default() };
    let after_start = serving.clone().notified(Moment::Post, Operation::Start, &["node2"], &[]);
    let promotes = |evidence: &Evidence| {
        let plan = decide(Request::Notify, evidence, &caught_up);
        plan.effects.iter().any(|effect| matches!(effect, Effect::PromoteMember { .. }))
    };
    assert!(promotes(&after_start));
    let deleted = |mut evidence: Evidence| {
        evidence.local.machine_is_deleted = Fact::Known(true);
        evidence
    };
    assert!(!promotes(&deleted(after_start)));
    let mut learner = at_rest().running(Fact::Known(etcd(ME, Some(PEER), &[PEER], &[ME])));
    learner.peer_etcd = Fact::Known(etcd(PEER, Some(PEER), &[PEER], &[ME]));
    assert_eq!(exit(&decide(Request::Promote, &learner, &caught_up)), None);
    assert_eq!(exit(&decide(Request::Promote, &deleted(learner), &caught_up)), Some(Exit::Retriable));
}

#[test]
fn a_peer_that_is_confirmed_to_be_gone_is_listed_at_once() {
    let sole = at_rest().running(Fact::Known(etcd(ME, Some(ME), &[ME], &[]))).seen_voting();
    let lists = |evidence: &Evidence| {
        let plan = first(Request::Monitor, evidence);
        plan.effects.iter().any(|effect| matches!(effect, Effect::AddLearner { .. }))
    };
    let down = sole.clone().peer_is(PeerNode::Down, PeerAgent::NoHistory);
    assert!(lists(&down));
    assert!(!lists(&sole.clone().peer_is(PeerNode::Lost, PeerAgent::Active)), "it may run");
    assert!(!lists(&sole.clone().peer_is(PeerNode::Online, PeerAgent::Stopped)));
    assert!(lists(&sole.peer_is(PeerNode::Online, PeerAgent::Stopped).with_peer_record(departed(PEER))));
    let mut deleted = down.clone();
    deleted.local.machine_is_deleted = Fact::Known(true);
    assert!(!lists(&deleted));
    let listed = Evidence { own_etcd: Fact::Known(etcd(ME, Some(ME), &[ME], &[PEER])), ..down };
    assert!(!lists(&listed), "etcd of some releases keeps a learner through a force: never two of them");
}
