//! `etcd_leader` and `etcd_fence_wait` are written where they change, and by no action that fails.

use super::world::*;
use crate::base::Fact;
use crate::decide::evidence::*;
use crate::decide::plan::{Effect, Exit, Request, RunMode};

fn leads(leads: Option<bool>) -> ShownRole {
    ShownRole { leads, ..ShownRole::default() }
}

fn fence_wait(fence_wait: bool) -> ShownRole {
    ShownRole { leads: Some(false), fence_wait }
}

fn voter(leader: Option<u64>, shown: impl Into<Option<ShownRole>>) -> Evidence {
    at_rest()
        .running(Fact::Known(etcd(ME, leader, &[ME, PEER], &[])))
        .seen_voting()
        .cib_with(|cib| cib.own_shown = shown.into())
}

fn shows(request: Request, evidence: &Evidence) -> Vec<Option<bool>> {
    let shown = |effect: &Effect| match effect {
        Effect::ShowLeader(leads) => Some(*leads),
        _ => None,
    };
    first(request, evidence).effects.iter().filter_map(shown).collect()
}

#[test]
fn a_monitor_shows_a_change_once() {
    for (leader, is_leader) in [(Some(ME), true), (Some(PEER), false)] {
        for before in [None, Some(!is_leader)] {
            assert_eq!(shows(Request::Monitor, &voter(leader, leads(before))), [Some(is_leader)]);
        }
        for before in [Some(leads(Some(is_leader))), None] {
            assert!(shows(Request::Monitor, &voter(leader, before)).is_empty());
        }
    }
}

#[test]
fn the_shown_leader_is_the_last_effect() {
    let evidence = voter(Some(ME), leads(None)).cib_with(|cib| cib.own_identity = None);
    let effects = first(Request::Monitor, &evidence).effects;
    assert!(effects.len() > 1);
    assert_eq!(effects.last(), Some(&Effect::ShowLeader(Some(true))));
}

#[test]
fn an_etcd_without_a_leader_does_not_lead() {
    assert_eq!(shows(Request::Monitor, &voter(None, leads(Some(true)))), [Some(false)]);
}

#[test]
fn an_etcd_that_rejects_this_agent_shows_nothing() {
    let mut evidence = voter(Some(ME), leads(Some(true)));
    evidence.own_etcd = Fact::Unknown("permission denied".to_owned());
    evidence.own_refuses = Some(Box::new(NoPermission { user: None, leaderless: false }));
    assert_eq!(shows(Request::Monitor, &evidence), [None]);
}

#[test]
fn a_stop_takes_the_shown_leader_back() {
    let stopped = |shown| shows(Request::Stop, &at_rest().cib_with(|cib| cib.own_shown = Some(shown)));
    assert_eq!(stopped(leads(Some(true))), [None]);
    assert_eq!(stopped(leads(Some(false))), [None]);
    assert!(stopped(leads(None)).is_empty());
}

#[test]
fn a_monitor_that_fails_leaves_it_to_the_stop() {
    let dead = at_rest().cib_with(|cib| cib.own_shown = Some(leads(Some(true))));
    let plan = first(Request::Monitor, &dead);
    assert_eq!((exit(&plan), plan.effects.len()), (Some(Exit::NotRunning), 0));
}

fn waits(effects: &[Effect]) -> Vec<bool> {
    let shown = |effect: &Effect| match effect {
        Effect::ShowFenceWait(waits) => Some(*waits),
        _ => None,
    };
    effects.iter().filter_map(shown).collect()
}

#[test]
fn a_learner_has_its_fence_agent_wait_and_a_voter_does_not() {
    let shows = |etcd: Etcd, shown: Option<ShownRole>| {
        let evidence = at_rest().running(Fact::Known(etcd)).cib_with(|cib| cib.own_shown = shown);
        waits(&first(Request::Monitor, &evidence.seen_voting()).effects)
    };
    let learner = || Etcd { is_learner: true, ..etcd(ME, Some(PEER), &[PEER], &[ME]) };
    let voter = || etcd(ME, Some(PEER), &[ME, PEER], &[]);
    assert_eq!(
        (shows(learner(), Some(fence_wait(false))), shows(learner(), Some(fence_wait(true)))),
        (vec![true], vec![])
    );
    assert_eq!(
        (shows(voter(), Some(fence_wait(false))), shows(voter(), Some(fence_wait(true)))),
        (vec![], vec![false])
    );
    assert!(shows(learner(), None).is_empty());
}

#[test]
fn it_waits_before_the_learner_runs_and_no_longer_once_it_is_stopped() {
    let mut joins = at_rest().with_disk(DataDir::Blank).peer_is(PeerNode::Online, PeerAgent::Active);
    let listed =
        Member { id: 9, name: String::new(), peer_urls: vec!["https://node1:2380".to_owned()], is_learner: true };
    let mut serving = etcd(PEER, Some(PEER), &[PEER], &[]);
    serving.members.push(listed);
    joins.peer_etcd = Fact::Known(serving);
    let effects = first(Request::Start, &joins.cib_with(|cib| cib.own_shown = Some(fence_wait(false)))).effects;
    let [.., before, last] = &effects[..] else { panic!("{effects:?}") };
    assert_eq!(*before, Effect::ShowFenceWait(true));
    assert!(matches!(last, Effect::RunContainer(RunMode::JoinAsLearner { .. })), "{effects:?}");
    let stopped = at_rest().cib_with(|cib| cib.own_shown = Some(fence_wait(true)));
    assert_eq!(waits(&first(Request::Stop, &stopped).effects), [false]);
}
