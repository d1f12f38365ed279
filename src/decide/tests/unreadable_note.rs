//! A note that cannot be read is not an empty one: nothing that rests on it is decided or written.

use super::world::*;
use crate::base::Fact;
use crate::decide::evidence::*;
use crate::decide::plan::{Effect, Exit, Plan, Request};
use crate::decide::reason::{Reason, Refusal, Wait};

fn unreadable(evidence: Evidence) -> Evidence {
    Evidence { note: Fact::Unknown("tandem-note.json is damaged".to_owned()), ..evidence }
}

fn is_refused(plan: &Plan) -> bool {
    let is_so = matches!(&plan.because, Reason::Refused { refusal: Refusal::NoteUnreadable { why }, .. } if why.contains("damaged"));
    is_so && plan.effects.is_empty() && exit(plan) == Some(Exit::Retriable)
}

fn voter() -> DataDir {
    history(ME, &[ME, PEER], &[])
}

#[test]
fn with_an_unreadable_note_nothing_is_started_or_published() {
    let down = || at_rest().peer_is(PeerNode::Down, PeerAgent::Stopped).seen_voting();
    let serves = Fact::Known(etcd(PEER, Some(PEER), &[PEER], &[]));
    for (name, evidence) in [
        ("the peer is down", down().with_disk(voter())),
        ("the peer is blank", at_rest().both_start().with_peer_record(DataDir::Blank).with_disk(voter())),
        ("two blank nodes", at_rest().both_start().with_peer_record(DataDir::Blank).with_disk(DataDir::Blank)),
        ("a sole voter", at_rest().with_disk(history(ME, &[ME], &[]))),
        ("the peer serves", Evidence { peer_etcd: serves, ..at_rest().with_disk(departed(ME)) }),
    ] {
        assert!(!is_refused(&first(Request::Start, &evidence)), "{name}");
        assert!(is_refused(&first(Request::Start, &unreadable(evidence.clone()))), "{name}");
        let probe = first(Request::Probe, &unreadable(evidence));
        assert!(probe.effects.is_empty() && exit(&probe) == Some(Exit::NotRunning), "{name}: {probe:?}");
    }
}

#[test]
fn with_an_unreadable_note_no_node_runs_standalone() {
    let lost = || at_rest().peer_is(PeerNode::Down, PeerAgent::Stopped).seen_voting();
    let leaderless = || lost().running(Fact::Known(etcd(ME, None, &[ME, PEER], &[])));
    assert!(matches!(first(Request::Monitor, &leaderless()).effects.first(), Some(Effect::WriteNote(_))));
    assert!(is_refused(&first(Request::Monitor, &unreadable(leaderless()))));
    let word = Evidence { confirmation: Fact::Known(word(true)), ..leaderless() };
    assert!(is_refused(&first(Request::Monitor, &unreadable(word))));
    // What was announced is not carried out either.
    let announced = Evidence { disk: Fact::Known(voter()), ..lost().at_the_barrier() };
    assert!(!is_refused(&decide(Request::Monitor, &announced, &barrier())));
    assert!(is_refused(&decide(Request::Monitor, &unreadable(announced), &barrier())));
}

/// Asserts that an etcd that forces a new cluster is not stopped while the durable note is unreadable, because this agent may
/// have forced it.
#[test]
fn what_was_forced_is_waited_for() {
    let lost = at_rest().peer_is(PeerNode::Down, PeerAgent::Stopped).seen_voting();
    let silent = Evidence { confirmation: Fact::Known(word(false)), ..lost }.running(Fact::Unknown("slow".to_owned()));
    let container = Container { running: true, forces_new_cluster: true, ..Container::default() };
    let forced = Evidence { container: Fact::Known(container), ..silent };
    let plan = first(Request::Monitor, &unreadable(forced));
    assert!(plan.effects.is_empty() && exit(&plan).is_none(), "{plan:?}");
    assert!(matches!(plan.because, Reason::Waiting(Wait::OwnAnswer { .. })), "{plan:?}");
}

#[test]
fn an_unreadable_note_counts_as_left_behind_and_as_left() {
    let empty = at_rest();
    assert!(!empty.was_left_behind() && !empty.may_have_left());
    let unreadable = unreadable(empty);
    assert!(unreadable.was_left_behind(), "others may have gone on without this data");
    assert!(unreadable.may_have_left(), "it may have asked to be removed");
}

#[test]
fn a_member_that_runs_writes_nothing_that_rests_on_it() {
    let two = etcd(ME, Some(ME), &[ME, PEER], &[]);
    let alone = etcd(ME, Some(ME), &[ME], &[]);
    for etcd in [two, alone] {
        // The note has more to say than the CIB, and the claim is to be published.
        let note = DurableState {
            lineage: forks(3, "node1"),
            left_at: Some(LogPosition::default()),
            ..DurableState::default()
        };
        let runs = Evidence { note: Fact::Known(note), ..at_rest().running(Fact::Known(etcd)) };
        let rests_on_it = |effect: &Effect| {
            matches!(
                effect,
                Effect::WriteNote(_) | Effect::PublishRecord(_) | Effect::PublishLineage(_) | Effect::Remember(_)
            )
        };
        for request in [Request::Monitor, Request::Start] {
            assert!(first(request, &runs).effects.iter().any(rests_on_it), "{request:?}");
            let plan = first(request, &unreadable(runs.clone()));
            assert!(!plan.effects.iter().any(rests_on_it), "{request:?}: {plan:?}");
            assert_eq!(exit(&plan), Some(Exit::Success), "an etcd that serves is not failed for it");
        }
    }
}

#[test]
fn a_stop_stops_without_leaving() {
    let peer_etcd = Fact::Known(etcd(PEER, Some(PEER), &[ME, PEER], &[]));
    let own = Fact::Known(etcd(ME, Some(PEER), &[ME, PEER], &[]));
    let both = at_rest().seen_voting().peer_is(PeerNode::Online, PeerAgent::Active).running(own);
    let both = Evidence { peer_etcd, notify: None, ..both };
    let leaves = |plan: &Plan| plan.effects.iter().any(|effect| matches!(effect, Effect::RemoveMember { .. }));
    assert!(leaves(&first(Request::Stop, &both)));
    let plan = first(Request::Stop, &unreadable(both.clone()));
    assert!(matches!(plan.effects[..], [Effect::StopContainer { .. }]), "{plan:?}");
    // Once it is stopped the claim is given up, and what was said of the data stays as it was said.
    let said = both.cib.known().and_then(|cib| cib.own_record.clone()).unwrap();
    let stopped = Evidence { container: Fact::Absent, own_etcd: Fact::Absent, disk: Fact::Known(voter()), ..both };
    let plan = first(Request::Stop, &unreadable(stopped));
    assert_eq!(exit(&plan), Some(Exit::Success));
    assert!(plan.effects.contains(&Effect::PublishRecord(PublishedState { claims: false, ..said })), "{plan:?}");
    assert!(plan.effects.iter().any(|effect| matches!(effect, Effect::Remember(memory) if memory.voter.is_none())));
}
