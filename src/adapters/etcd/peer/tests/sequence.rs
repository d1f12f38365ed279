//! Tests against a peer that differs from etcd: the proxy gives up in time, at the right step, and without a vote.

use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::super::wire::kind;
use super::super::{GivenUp, ProxyStep, Taken, Wish, look, vote_proxy, vote_proxy_while};
use super::false_peer::{CLUSTER, CONTEXT, DEAD, Fault, How, ME, Running, TERM};
use crate::adapters::etcd::version::Version;
use crate::os::clock::Deadline;

const WISH: Wish = Wish { cluster_id: CLUSTER, me: ME, dead: DEAD, term: TERM, applied: 10 };
const WITHIN: Duration = Duration::from_millis(800);
/// The time by which a vote proxy may exceed its limit on a machine with other load.
const SLACK: Duration = Duration::from_millis(1500);

fn outcome(peer: &Running, wish: &Wish) -> Result<Taken, GivenUp> {
    let began = Instant::now();
    let outcome = vote_proxy(&peer.place(), wish, WITHIN);
    assert!(began.elapsed() < WITHIN + SLACK, "{outcome:?} after {:?}", began.elapsed());
    outcome
}

/// Asserts that the vote proxy gives up because of `fault`, without having cast a vote.
fn refused(fault: &Fault) -> GivenUp {
    let peer = Running::with(fault.clone());
    let given_up = outcome(&peer, &WISH).expect_err(&format!("{fault:?}"));
    assert!(!given_up.voted && peer.posted(kind::VOTE_ANSWER).is_empty(), "{fault:?}: {given_up}");
    assert!(peer.posted(kind::PROPOSAL).is_empty());
    given_up
}

#[test]
fn with_a_peer_that_does_as_etcd_does_it_takes_over() {
    let peer = Running::with(Fault::None);
    let seen = look(&peer.place(), WITHIN).unwrap();
    assert_eq!((seen.cluster_id, seen.version), (CLUSTER, Version { minor: 5, patch: 16 }));
    assert_eq!(seen.members.iter().map(|member| member.id).collect::<Vec<_>>(), [ME, DEAD]);
    let taken = outcome(&peer, &WISH).unwrap();
    let Taken { attached, term, vote, acknowledged, removed } = taken;
    assert!(attached <= term && term <= vote && vote <= acknowledged && acknowledged <= removed, "{taken}");
    let votes = peer.posted(kind::VOTE_ANSWER);
    assert_eq!((votes.len(), votes[0].term, votes[0].reject), (1, TERM + 2, false));
    assert_eq!(peer.posted(kind::TIMEOUT_NOW)[0].term, TERM + 1);
    assert_eq!(peer.posted(kind::APPEND_ANSWER)[0].index, 11);
    // etcd confirms a read by the context of the answer.
    assert_eq!(peer.posted(kind::HEARTBEAT_ANSWER)[0].context, CONTEXT);
    // All messages are from the dead member to this node's etcd.
    assert!(peer.senders().iter().all(|way| *way == (DEAD, ME)));
}

#[test]
fn a_learner_beside_is_no_hindrance() {
    outcome(&Running::with(Fault::LearnerBeside), &WISH).unwrap();
}

#[test]
fn it_gives_up_in_time_at_the_step_that_fails() {
    let steps = [
        ProxyStep::Look,
        ProxyStep::Attach,
        ProxyStep::Term,
        ProxyStep::Campaign,
        ProxyStep::Vote,
        ProxyStep::Acknowledge,
        ProxyStep::Remove,
        ProxyStep::Check,
    ];
    let tries: Vec<_> = steps
        .into_iter()
        .flat_map(|step| [How::Refuses, How::Hangs, How::TalksNonsense].map(|how| (step, how)))
        .collect();
    std::thread::scope(|scope| {
        for (step, how) in tries {
            scope.spawn(move || {
                let peer = Running::with(Fault::At(step, how));
                let given_up = outcome(&peer, &WISH).unwrap_err();
                // Two threads read `/members` in the end, and the one that polls the list gets no answer either.
                let told = if step == ProxyStep::Check { ProxyStep::Remove } else { step };
                assert_eq!(given_up.step, told, "{how:?}: {given_up}");
                assert_eq!(given_up.voted, step >= ProxyStep::Vote, "{given_up}");
                let granted = !peer.posted(kind::VOTE_ANSWER).is_empty();
                assert_eq!(granted, step > ProxyStep::Vote, "{step} {how:?}: {given_up}");
            });
        }
    });
}

#[test]
fn it_votes_in_no_other_cluster_and_with_no_other_voters() {
    for (fault, step, why) in [
        (Fault::OtherCluster, ProxyStep::Look, "this is cluster c2, not c1"),
        (Fault::ThirdVoter { at_first: true }, ProxyStep::Look, "the voters are a, b, d, not a and b"),
        (Fault::ThirdVoter { at_first: false }, ProxyStep::Vote, "the voters are a, b, d, not a and b"),
        (Fault::DeadIsNoVoter, ProxyStep::Look, "the voters are a, not a and b"),
    ] {
        let given_up = refused(&fault);
        assert_eq!((given_up.step, given_up.why.as_str()), (step, why));
    }
    for wish in [Wish { me: DEAD, dead: ME, ..WISH }, Wish { dead: ME, ..WISH }, Wish { me: 0xd, ..WISH }] {
        let peer = Running::with(Fault::None);
        let given_up = outcome(&peer, &wish);
        assert!(given_up.is_err() && peer.posted(kind::VOTE_ANSWER).is_empty(), "{wish:?}: {given_up:?}");
    }
}

#[test]
fn it_votes_after_no_other_term() {
    let given_up = refused(&Fault::OtherTerm);
    assert_eq!((given_up.step, given_up.moved_to), (ProxyStep::Term, Some(TERM + 2)));
    assert_eq!(given_up.why, "the term has moved from 5 to 7");
    let given_up = refused(&Fault::LaterLogTerm);
    assert_eq!((given_up.step, given_up.why.as_str()), (ProxyStep::Vote, "its log has term 6, later than 5"));
    let given_up = refused(&Fault::EarlierVote);
    assert_eq!((given_up.step, given_up.why.as_str()), (ProxyStep::Vote, "it campaigns in term 5, which is over"));
}

#[test]
fn a_stream_that_is_closed_before_the_vote_is_not_attached_again() {
    for name in ["message", "msgapp"] {
        let given_up = refused(&Fault::Closes(name));
        assert!(given_up.why.contains(&format!("the stream '{name}' was closed")), "{given_up}");
        assert!([ProxyStep::Term, ProxyStep::Campaign].contains(&given_up.step), "{given_up}");
    }
}

#[test]
fn what_is_said_to_a_member_that_lives_ends_it() {
    for kind in [kind::APPEND_ANSWER, kind::VOTE_ANSWER, kind::PRE_VOTE_ANSWER, kind::HEARTBEAT_ANSWER] {
        let given_up = refused(&Fault::Answers(kind));
        assert!(given_up.why.starts_with("it answers the member itself"), "{given_up}");
    }
}

/// Asserts that the vote proxy does not wait for the body of a refusal. etcd aborts such a body, and leaves the connection open.
#[test]
fn the_end_of_a_refusal_is_not_waited_for() {
    for step in [ProxyStep::Term, ProxyStep::Campaign, ProxyStep::Vote] {
        let peer = Running::with(Fault::At(step, How::RefusesWithoutAnEnd));
        let began = Instant::now();
        let given_up = outcome(&peer, &WISH).unwrap_err();
        assert!(began.elapsed() < WITHIN, "{given_up} after {:?}", began.elapsed());
        assert_eq!((given_up.step, given_up.why.as_str()), (step, "it answers 500 to a message"));
    }
}

#[test]
fn entries_with_a_gap_are_not_acknowledged() {
    let peer = Running::with(Fault::Gap);
    let given_up = outcome(&peer, &WISH).unwrap_err();
    assert_eq!((given_up.step, given_up.voted), (ProxyStep::Acknowledge, true));
    assert!(peer.posted(kind::APPEND_ANSWER).is_empty());
}

#[test]
fn a_change_of_members_that_nobody_knew_of_is_not_committed() {
    // Neither a client's entry nor a removal of the dead member is such a change. An earlier vote proxy leaves such a removal.
    for (kind_of_entry, removed) in [(0, ME), (1, DEAD)] {
        let peer = Running::with(Fault::Tail(kind_of_entry, removed));
        outcome(&peer, &WISH).unwrap();
        let answers = peer.posted(kind::APPEND_ANSWER);
        assert_eq!((answers[0].reject, answers[1].reject, answers[1].index), (true, false, 11));
    }
    for (kind_of_entry, removed) in [(1, ME), (2, DEAD)] {
        let peer = Running::with(Fault::Tail(kind_of_entry, removed));
        let given_up = outcome(&peer, &WISH).unwrap_err();
        assert_eq!(given_up.step, ProxyStep::Acknowledge);
        assert_eq!(given_up.why, "entry 10 of its log, which it has not applied, changes the members");
        assert!(peer.posted(kind::APPEND_ANSWER).iter().all(|answer| answer.reject));
    }
}

#[test]
fn it_ends_only_with_our_etcd_as_the_one_voter() {
    let peer = Running::with(Fault::AnotherVoterInTheEnd);
    let given_up = outcome(&peer, &WISH).unwrap_err();
    assert_eq!((given_up.step, given_up.why.as_str()), (ProxyStep::Check, "the voters are now a, d of cluster c1"));
}

#[test]
fn nobody_there_is_told_at_once() {
    let place = Running::with(Fault::None).place();
    // The port is closed once the peer's last thread has noticed the end.
    let patience = Deadline::after(SLACK);
    while look(&place, WITHIN).is_ok() && !patience.has_passed() {}
    let given_up = vote_proxy(&place, &WISH, WITHIN).unwrap_err();
    assert_eq!((given_up.step, given_up.voted), (ProxyStep::Look, false));
    let given_up = vote_proxy(&place, &WISH, Duration::ZERO).unwrap_err();
    assert_eq!(given_up.step, ProxyStep::Look);
}

#[test]
fn it_ends_after_a_step_where_it_is_asked_to() {
    for last in [
        ProxyStep::Look,
        ProxyStep::Attach,
        ProxyStep::Term,
        ProxyStep::Campaign,
        ProxyStep::Vote,
        ProxyStep::Acknowledge,
        ProxyStep::Remove,
    ] {
        let peer = Running::with(Fault::None);
        let given_up = vote_proxy_while(&peer.place(), &WISH, WITHIN, &mut |step| step != last).unwrap_err();
        assert_eq!((given_up.step, given_up.voted), (last, last >= ProxyStep::Vote));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// Asserts that no random bytes on a peer stream obtain a vote.
    #[test]
    fn a_fuzzed_peer_gets_no_vote(bytes in proptest::collection::vec(any::<u8>(), 9..300)) {
        let given_up = refused(&Fault::Sends([&bytes[..], &[255; 8]].concat()));
        prop_assert!(given_up.step <= ProxyStep::Campaign, "{}", given_up);
    }
}
