//! An etcd with auth that refuses this agent has answered: it is not restarted, and its state is unknown.

use super::world::*;
use crate::base::Fact;
use crate::decide::Progress;
use crate::decide::evidence::*;
use crate::decide::plan::{Effect, Exit, OnFailure, Phase, Request, RunMode};
use crate::decide::reason::{Health, Reason, Refusal};

/// Returns a voter of two with an etcd that rejects this agent, because its auth was switched on while it served.
fn refusing(leaderless: bool) -> Evidence {
    let said = Fact::Unknown("etcdserver: user name not found".to_owned());
    let refuses = NoPermission { user: Some("etcd-node1".to_owned()), leaderless };
    Evidence { own_refuses: Some(Box::new(refuses)), ..at_rest().running(said).seen_voting() }
}

fn unknown_boot(evidence: Evidence) -> Evidence {
    Evidence { boot_memory: Fact::Absent, ..evidence }
}

fn recovers(evidence: &Evidence) -> bool {
    matches!(first(Request::Monitor, evidence).effects.first(), Some(Effect::WriteNote(_)))
}

#[test]
fn an_etcd_that_serves_and_refuses_this_agent_lives_and_names_the_user() {
    let fates = [
        (PeerNode::Online, PeerAgent::Active),
        (PeerNode::Lost, PeerAgent::Active),
        (PeerNode::Down, PeerAgent::NoHistory),
    ];
    for (node, agent) in fates {
        for evidence in [refusing(false), unknown_boot(refusing(false))] {
            let plan = first(Request::Monitor, &evidence.peer_is(node, agent).after(590_000));
            assert_eq!(exit(&plan), Some(Exit::Success), "{node:?}: {plan:?}");
            assert_eq!(plan.effects, [Effect::SetAlarm(Some("AUTH: no root role of etcd-node1".to_owned()))]);
            let told = plan.because.to_string();
            assert!(told.contains("'tandem etcdctl user grant-role etcd-node1 root'"), "{told}");
        }
    }
}

#[test]
fn it_is_told_once_and_a_cib_that_takes_nothing_fails_nobody() {
    let shown = Some("AUTH: no root role of etcd-node1".to_owned());
    let told = refusing(false).cib_with(|cib| cib.own_alarm = shown);
    assert!(first(Request::Monitor, &told).effects.is_empty());
    assert_eq!(on_failure(Request::Monitor, &refusing(false)), OnFailure::Answer(Exit::Success));
    assert_eq!(
        on_failure(Request::Monitor, &at_rest().running(Fact::Unknown("silent".to_owned()))),
        OnFailure::Answer(Exit::Retriable)
    );
}

#[test]
fn the_survivor_recovers_though_its_etcd_tells_it_nothing() {
    let down = |evidence: Evidence| evidence.peer_is(PeerNode::Down, PeerAgent::NoHistory);
    assert!(recovers(&down(refusing(true))));
    // The voters are hidden: this may be the only one, and slow.
    for (unanswered, wanted) in [(1, false), (2, false), (3, true)] {
        let mut late = down(refusing(true));
        late.pace.unanswered = unanswered;
        assert_eq!(recovers(&late), wanted, "{unanswered}");
        assert!(wanted || exit(&first(Request::Monitor, &late)) == Some(Exit::Success), "{unanswered}");
    }
    let fenced = |evidence| down(evidence).notified(Moment::Post, Operation::Stop, &[], &["node2"]);
    for (leaderless, wanted) in [(true, true), (false, false)] {
        let plan = first(Request::Notify, &fenced(refusing(leaderless)));
        assert_eq!(
            !is_harmless(&plan),
            wanted,
            "where a majority confirmed a read there is nothing to recover: {plan:?}"
        );
    }
    assert!(!recovers(&down(refusing(false))));
    // Nor does a table or an operator's confirmation force what serves unseen.
    let nothing_there = refusing(false).with_peer_record(DataDir::Blank);
    let confirmed = Evidence { confirmation: Fact::Known(word(false)), ..fenced(unknown_boot(nothing_there)) };
    assert!(is_harmless(&first(Request::Notify, &confirmed)));
    assert!(!recovers(&refusing(true).peer_is(PeerNode::Lost, PeerAgent::Active)), "not fenced yet");
    let refused = first(Request::Monitor, &down(unknown_boot(refusing(true)))).because;
    let is_named = matches!(&refused, Reason::Refused { refusal: Refusal::NoProofThatPeerDidNotGoOn { .. }, .. });
    assert!(is_named, "{refused:?}");
}

#[test]
fn without_a_leader_and_beside_a_peer_that_is_there_it_waits() {
    let plan = first(Request::Monitor, &refusing(true).peer_is(PeerNode::Online, PeerAgent::Active).after(590_000));
    assert_eq!(exit(&plan), Some(Exit::Success), "{plan:?}");
}

#[test]
fn what_was_announced_is_given_up_where_a_majority_is_there_again() {
    let announced = Progress::enter(Phase::Announced, 0);
    let seen = refusing(false).announced().peer_is(PeerNode::Down, PeerAgent::NoHistory);
    let plan = decide(Request::Monitor, &seen, &announced);
    assert!(is_harmless(&plan) && progress(plan.clone()).phase == Phase::Begin, "{plan:?}");
}

#[test]
fn a_forced_etcd_that_refuses_this_agent_is_settled_and_not_forced_again() {
    let forced = Progress::enter(Phase::Started(RunMode::ForceNewCluster), 0);
    let mut evidence = refusing(false).peer_is(PeerNode::Down, PeerAgent::NoHistory);
    if let Fact::Known(container) = &mut evidence.container {
        container.forces_new_cluster = true;
    }
    evidence.confirmation = Fact::Known(word(false));
    let plan = decide(Request::Notify, &evidence, &forced);
    assert_eq!(exit(&plan), Some(Exit::Success), "{plan:?}");
    assert!(plan.effects.contains(&Effect::SettleConfig) && plan.effects.contains(&Effect::ConsumeConfirmation));
    let remembered = plan.effects.iter().find_map(|effect| match effect {
        Effect::Remember(memory) => memory.voter.as_ref(),
        _ => None,
    });
    assert!(remembered.is_some_and(|voter| voter.sole), "{plan:?}");
    let mut later = refusing(true).peer_is(PeerNode::Down, PeerAgent::NoHistory);
    later.boot_memory =
        Fact::Known(BootState { boot_id: "boot1".to_owned(), voter: remembered.cloned(), ..BootState::default() });
    assert!(!recovers(&later), "one voter that is slow once is not forced once more");
    for unanswered in [1, 2] {
        later.pace.unanswered = unanswered;
        let plan = first(Request::Monitor, &later);
        assert_eq!(exit(&plan), Some(Exit::Success), "nor stopped for a read that is late: {plan:?}");
    }
    later.pace.unanswered = 3;
    let refused = first(Request::Monitor, &later).because;
    assert!(matches!(refused, Reason::Refused { .. }), "it hangs: {refused:?}");
}

#[test]
fn a_start_succeeds_and_one_that_waits_for_its_peer_names_the_user() {
    let started = Progress::enter(Phase::Started(RunMode::Normally), 0);
    let plan = decide(Request::Start, &refusing(false), &started);
    assert_eq!(exit(&plan), Some(Exit::Success));
    assert!(matches!(plan.because, Reason::Running(Health::NoPermission { .. })), "{plan:?}");
    let mut blank = at_rest().with_disk(DataDir::Blank).peer_is(PeerNode::Online, PeerAgent::Active).after(30_000);
    blank.peer_etcd = Fact::Unknown("etcdserver: permission denied".to_owned());
    blank.peer_refuses = Some(Box::new(NoPermission { user: Some("etcd-node1".to_owned()), leaderless: false }));
    let told = first(Request::Start, &blank).because.short();
    assert!(told.starts_with("'tandem etcdctl user grant-role etcd-node1 root'"), "{told}");
}

#[test]
fn an_attribute_does_not_give_up_a_peer_that_answers_and_refuses() {
    let stopped = refusing(true).at_the_barrier().peer_is(PeerNode::Online, PeerAgent::Active);
    let mut told = Evidence { own_etcd: Fact::Absent, own_refuses: None, ..stopped };
    told.disk = Fact::Known(history(ME, &[ME, PEER], &[]));
    told = told.cib_with(|cib| cib.others.force_on_me = true);
    let forces = |evidence: &Evidence| {
        decide(Request::Start, evidence, &barrier()).effects.contains(&Effect::RunContainer(RunMode::ForceNewCluster))
    };
    told.peer_etcd = Fact::Unknown("no answer".to_owned());
    assert!(forces(&told));
    told.peer_refuses = Some(Box::new(NoPermission { user: None, leaderless: false }));
    assert!(!forces(&told));
}
