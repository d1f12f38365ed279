//! A peer that has lost its data or has left: no node waits for its vote, nor for what it was to send.

use super::world::*;
use crate::base::Fact;
use crate::decide::Progress;
use crate::decide::evidence::*;
use crate::decide::plan::{Effect, Exit, Phase, Request, RunMode};
use crate::decide::reason::{Reason, Refusal};

/// Returns a node with an etcd that has had no leader in this boot. Its peer has come back without data. `published` is the data
/// in the record that this node published at its last start.
fn waiting(published: DataDir) -> Evidence {
    let own_etcd = Fact::Unknown("no answer without a leader".to_owned());
    let waiting = at_rest().running(own_etcd).with_peer_record(DataDir::Blank);
    let waiting = waiting.cib_with(|cib| cib.own_record = Some(record(published)));
    waiting.peer_is(PeerNode::Online, PeerAgent::Stopped)
}

fn left_behind() -> Evidence {
    waiting(history(ME, &[ME, PEER], &[])).cib_with(|cib| cib.lineage = forks(1, "node2"))
}

#[test]
fn a_vote_that_nobody_can_give_is_not_waited_for() {
    let answering =
        |evidence: Evidence| Evidence { own_etcd: Fact::Known(etcd(ME, None, &[ME, PEER], &[])), ..evidence };
    let fails = |name: &str, evidence: Evidence| {
        assert_eq!(exit(&first(Request::Monitor, &evidence)), Some(Exit::Retriable), "{name}");
    };
    fails("promoted since its last start", waiting(DataDir::Blank));
    fails("a member again, with another id", waiting(departed(ME)));
    fails("left behind", left_behind());
    fails("left behind, and the peer starts", left_behind().peer_is(PeerNode::Online, PeerAgent::Starting));
    fails("left behind, with an etcd that answers", answering(left_behind()));
    fails("a sole voter since the peer left", waiting(departed(ME)).with_peer_record(departed(PEER)));
    let waits = |name: &str, evidence: Evidence| {
        assert_eq!(exit(&first(Request::Monitor, &evidence)), Some(Exit::Success), "{name}");
    };
    waits("a sole voter is slow", waiting(history(ME, &[ME], &[])));
    waits("the peer has data", left_behind().with_peer_record(history(PEER, &[ME, PEER], &[])));
    waits("the peer has not said", left_behind().cib_with(|cib| cib.peer_record = None));
    waits("its etcd runs", Evidence { peer_etcd: Fact::Unknown("no answer".to_owned()), ..left_behind() });
    waits("its agent is active", left_behind().peer_is(PeerNode::Online, PeerAgent::Active));
    waits("a sole voter whose peer left is slow", waiting(history(ME, &[ME], &[])).with_peer_record(departed(PEER)));
}

#[test]
fn what_this_node_announced_itself_does_not_keep_it_from_going_on() {
    let announced = left_behind().cib_with(|cib| cib.lineage = forks(1, "node1"));
    let note = |lineage| Fact::Known(DurableState { lineage, ..DurableState::default() });
    let goes_on =
        |evidence: &Evidence| matches!(first(Request::Monitor, evidence).effects.first(), Some(Effect::WriteNote(_)));
    assert!(goes_on(&Evidence { note: note(forks(1, "node1")), ..announced.clone() }));
    assert!(goes_on(&Evidence { note: note(forks(1, "node2")), ..left_behind() }), "taken over as a voter of two");
    assert!(!goes_on(&announced), "the note is another disk's");
    let joined = DurableState { lineage: forks(1, "node1"), joins: true, ..DurableState::default() };
    let moved_aside = Evidence { note: Fact::Known(joined), ..announced };
    assert!(!goes_on(&moved_aside), "what was published is of data that was backed up");
    assert_eq!(exit(&first(Request::Monitor, &moved_aside)), Some(Exit::Retriable));
}

#[test]
fn a_joiner_whose_voter_lost_its_data_gives_up() {
    let mode = RunMode::JoinAsLearner { initial_cluster: Vec::new() };
    let started = Progress::enter(Phase::Started(mode), 0);
    let joiner = waiting(DataDir::Blank).after(3_000);
    let plan = decide(Request::Start, &joiner, &started);
    assert!(matches!(plan.because, Reason::Refused { refusal: Refusal::PeerLostWhileJoining, .. }));
    let sends = joiner.with_peer_record(history(PEER, &[PEER], &[ME]));
    assert_eq!(exit(&decide(Request::Start, &sends, &started)), None);
}
