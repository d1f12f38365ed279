//! Leaving before a stop, and what a stop gives up.

use super::world::*;
use crate::base::Fact;
use crate::decide::Progress;
use crate::decide::evidence::*;
use crate::decide::plan::{Effect, Exit, Phase, Request, Via};

/// Returns one of two voters. The peer's etcd serves, and its agent is active.
fn one_of_two(leader: u64) -> Evidence {
    let mut evidence = at_rest()
        .running(Fact::Known(etcd(ME, Some(leader), &[ME, PEER], &[])))
        .seen_voting()
        .peer_is(PeerNode::Online, PeerAgent::Active)
        .notified(Moment::Outside, Operation::None, &[], &["node1"]);
    evidence.budget_ms = 90_000;
    evidence.peer_etcd = Fact::Known(etcd(PEER, Some(leader), &[ME, PEER], &[]));
    evidence
}

fn leaves(evidence: &Evidence) -> bool {
    let effects = first(Request::Stop, evidence).effects;
    effects.iter().any(|effect| matches!(effect, Effect::RemoveMember { .. } | Effect::MoveLeader { .. }))
}

#[test]
fn the_follower_leaves_with_a_note_before_it_stops() {
    let plan = first(Request::Stop, &one_of_two(PEER));
    assert!(matches!(plan.effects[0], Effect::WriteNote(DurableState { left_at: Some(_), .. })));
    assert_eq!(plan.effects[2], Effect::RemoveMember { id: ME, via: Via::Peer });
}

#[test]
fn the_leader_hands_over_first_and_not_for_ever() {
    let evidence = one_of_two(ME);
    let plan = first(Request::Stop, &evidence);
    assert_eq!(plan.effects, [Effect::MoveLeader { to: PEER }]);
    let waiting = progress(plan);
    assert!(decide(Request::Stop, &evidence.clone().after(1_000), &waiting).effects.is_empty());
    let plan = decide(Request::Stop, &evidence.after(3_000), &waiting);
    assert!(matches!(plan.effects[2], Effect::RemoveMember { .. }));
}

#[test]
fn nobody_leaves_a_peer_that_cannot_go_on() {
    let sole = {
        let mut evidence = one_of_two(ME);
        evidence.own_etcd = Fact::Known(etcd(ME, Some(ME), &[ME], &[PEER]));
        evidence
    };
    let unanswered = Evidence { peer_etcd: Fact::Unknown("silent".to_owned()), ..one_of_two(PEER) };
    let both_stop = one_of_two(PEER).notified(Moment::Outside, Operation::None, &[], &["node1", "node2"]);
    let gone = one_of_two(PEER).peer_is(PeerNode::Lost, PeerAgent::Active);
    for (name, evidence) in
        [("last voter", sole), ("silent peer", unanswered), ("both stop", both_stop), ("gone", gone)]
    {
        assert!(!leaves(&evidence), "{name}");
        let effects = first(Request::Stop, &evidence).effects;
        assert!(matches!(effects[..], [Effect::StopContainer { .. }]), "{name}");
    }
}

#[test]
fn leaving_does_not_eat_the_time_of_the_stop() {
    let late = one_of_two(PEER).after(11_000);
    assert!(matches!(first(Request::Stop, &late).effects[..], [Effect::StopContainer { .. }]));
}

#[test]
fn stop_answers_success_only_when_nothing_runs() {
    let progress = Progress::enter(Phase::Stopped, 0);
    let running = one_of_two(PEER).after(1_000);
    assert_eq!(exit(&decide(Request::Stop, &running, &progress)), None);
    assert_eq!(exit(&decide(Request::Stop, &running.after(86_000), &progress)), Some(Exit::Retriable));
    let unknown = Evidence { container: Fact::Unknown("podman hangs".to_owned()), ..one_of_two(PEER) };
    assert_eq!(exit(&decide(Request::Stop, &unknown.after(86_000), &progress)), Some(Exit::Retriable));
    assert_eq!(exit(&first(Request::Stop, &at_rest())), Some(Exit::Success));
}

/// Returns whether a stop keeps the claim to run standalone. It asserts that the claim in the record and the voter in the
/// `BootState` agree.
fn keeps_its_claim(evidence: &Evidence) -> bool {
    let plan = first(Request::Stop, evidence);
    let remembers = plan.effects.iter().any(|e| matches!(e, Effect::Remember(memory) if memory.voter.is_some()));
    let claims = plan.effects.iter().any(|e| matches!(e, Effect::PublishRecord(record) if record.claims));
    assert_eq!(remembers, claims);
    remembers
}

#[test]
fn a_stop_that_the_peer_can_see_gives_up_the_claim_and_half_a_restart_does_not() {
    let stopped = || at_rest().seen_voting().with_disk(history(ME, &[ME, PEER], &[]));
    let alone = || stopped().notified(Moment::Outside, Operation::None, &[], &["node1"]);
    assert!(!keeps_its_claim(&alone().peer_is(PeerNode::Online, PeerAgent::Active)));
    assert!(keeps_its_claim(&stopped().notified(Moment::Outside, Operation::None, &["node1"], &["node1"])));
    assert!(keeps_its_claim(&alone().peer_is(PeerNode::Lost, PeerAgent::Active)));
    assert!(keeps_its_claim(&alone().peer_is(PeerNode::Down, PeerAgent::NoHistory)));
    let unreadable = Evidence { cib: Fact::Unknown("no answer".to_owned()), ..alone() };
    assert!(!keeps_its_claim(&unreadable.after(40_000)));
}

#[test]
fn a_restart_in_vain_gives_up_the_claim_so_that_the_peer_goes_on() {
    let restarted = at_rest().seen_voting().with_disk(history(ME, &[ME, PEER], &[]));
    let restarted = restarted.notified(Moment::Outside, Operation::None, &["node1"], &["node1"]);
    let online = restarted.peer_is(PeerNode::Online, PeerAgent::Active);
    let failed = |evidence: &Evidence, times| evidence.clone().cib_with(|cib| cib.own_start_failures = times);
    assert!(keeps_its_claim(&failed(&online, 2)));
    assert!(!keeps_its_claim(&failed(&online, 3)));
    // What failed before etcd last served does not count.
    let mut served_since = online.clone();
    let memory = BootState { start_failures: 2, ..online.boot_state().unwrap().clone() };
    served_since.boot_memory = Fact::Known(memory);
    assert!(keeps_its_claim(&failed(&served_since, 4)));
    assert!(!keeps_its_claim(&failed(&served_since, 5)));
    // Without a peer that could continue, this memory is the only proof.
    assert!(keeps_its_claim(&failed(&online.peer_is(PeerNode::Down, PeerAgent::NoHistory), 9)));
}

#[test]
fn a_podman_that_hangs_does_not_keep_a_stop_from_its_end() {
    let mute = Evidence { container: Fact::Unknown("podman hangs".to_owned()), ..at_rest() }.after(40_000);
    assert!(matches!(first(Request::Stop, &mute).effects[..], [Effect::StopContainer { .. }]), "etcd is ended first");
    let ended = Progress::enter(Phase::Stopped, 30_000);
    assert_eq!(exit(&decide(Request::Stop, &mute, &ended)), Some(Exit::Success));
    let held = Evidence { data_in_use: Fact::Known(true), ..mute.clone() };
    let unread = Evidence { data_in_use: Fact::Unknown("I/O error".to_owned()), ..mute.clone() };
    let listening = Evidence { own_etcd: Fact::Unknown("silent".to_owned()), ..mute };
    for (name, evidence) in [("held", held), ("unread", unread), ("listening", listening)] {
        assert_ne!(exit(&decide(Request::Stop, &evidence, &ended)), Some(Exit::Success), "{name}");
    }
}

#[test]
fn without_data_there_is_nothing_to_claim() {
    let claims = |disk| at_rest().seen_voting().with_disk(disk).published_state().map(|record| record.claims);
    assert_eq!(claims(history(ME, &[ME, PEER], &[])), Some(true));
    assert_eq!(claims(DataDir::Blank), Some(false));
    assert_eq!(claims(DataDir::Broken { why: "no wal".to_owned() }), Some(false));
}

/// Asserts that the peer's member is recognized by its id after an operator changed its URL with etcd's `member update`.
#[test]
fn a_member_with_another_url_is_the_peer_by_its_id() {
    let mut evidence = one_of_two(PEER);
    let mut own = etcd(ME, Some(PEER), &[ME, PEER], &[]);
    own.members[1].peer_urls = vec!["https://elsewhere:2380".to_owned()];
    evidence.own_etcd = Fact::Known(own);
    assert!(leaves(&evidence), "its two voters have a leader, and one may leave");
    let monitored = first(Request::Monitor, &evidence);
    let lists = |effect: &Effect| matches!(effect, Effect::AddLearner { .. } | Effect::RemoveMember { .. });
    assert!(!monitored.effects.iter().any(lists), "nobody is missing in the list: {monitored:?}");
}
