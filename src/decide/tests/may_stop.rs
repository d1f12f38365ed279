//! `may_stop`: a stop without a pause takes a peer that votes, stays and serves, and a Pacemaker that stops etcd in order.

use crate::base::Fact;
use crate::decide::may_stop::*;

fn voice() -> Voice {
    Voice {
        cluster_id: "c1".to_owned(),
        learner: false,
        has_leader: true,
        alarm: false,
        reads: Fact::Known(()),
        voters: 2,
    }
}

fn care() -> Care {
    Care { quorate: true, hands_off: false, fencing: None, peer: Machine::Ready }
}

fn two_voters() -> Outlook {
    Outlook {
        node: "node1".to_owned(),
        peer: Some("node2".to_owned()),
        care: Fact::Known(care()),
        own_etcd: Fact::Known(voice()),
        peer_etcd: Fact::Known(voice()),
        peer_claims: Fact::Known(true),
        change: None,
    }
}

fn with_care(change: impl FnOnce(&mut Care)) -> Outlook {
    let mut changed = care();
    change(&mut changed);
    Outlook { care: Fact::Known(changed), ..two_voters() }
}

fn with_peer(change: impl FnOnce(&mut Voice)) -> Outlook {
    let mut changed = voice();
    change(&mut changed);
    Outlook { peer_etcd: Fact::Known(changed), ..two_voters() }
}

fn unknown<T>() -> Fact<T> {
    Fact::Unknown("timed out".to_owned())
}

#[test]
fn one_of_two_voters_may_be_stopped() {
    assert_eq!(may_stop(&two_voters()), Answer::Yes);
}

/// Asserts that if the peer publishes no claim to run standalone, only the answers of its etcd decide. The shell agent publishes
/// none.
#[test]
fn an_agent_that_publishes_nothing_is_taken_at_its_etcds_word() {
    assert_eq!(may_stop(&Outlook { peer_claims: Fact::Absent, ..two_voters() }), Answer::Yes);
}

#[test]
fn a_node_without_a_vote_may_be_stopped_beside_a_sole_voter() {
    let alone = || Fact::Known(Voice { voters: 1, ..voice() });
    let learner = Voice { learner: true, voters: 1, ..voice() };
    for own_etcd in [Fact::Absent, Fact::Known(learner), unknown()] {
        assert_eq!(may_stop(&Outlook { own_etcd, peer_etcd: alone(), ..two_voters() }), Answer::Yes);
    }
    // Its etcd may be left as it is, because no node needs it.
    let held = Outlook { own_etcd: Fact::Absent, peer_etcd: alone(), ..with_care(|care| care.hands_off = true) };
    assert_eq!(may_stop(&held), Answer::Yes);
}

#[test]
fn whatever_keeps_the_peer_from_going_on_is_a_no() {
    let peer = || "node2".to_owned();
    let not_ready = |machine| Hindrance::PeerNotReady { peer: peer(), machine };
    let cases = [
        (Outlook { peer: None, ..two_voters() }, Hindrance::OneNode),
        (with_care(|care| care.quorate = false), Hindrance::NoQuorum),
        (with_care(|care| care.hands_off = true), Hindrance::HandsOff { node: "node1".to_owned() }),
        (with_care(|care| care.fencing = Some(peer())), Hindrance::BeingFenced { node: peer() }),
        (with_care(|care| care.peer = Machine::Standby), not_ready(Machine::Standby)),
        (with_care(|care| care.peer = Machine::Stopping), not_ready(Machine::Stopping)),
        (with_care(|care| care.peer = Machine::Moving), not_ready(Machine::Moving)),
        (with_care(|care| care.peer = Machine::Unclean), not_ready(Machine::Unclean)),
        (with_care(|care| care.peer = Machine::Offline), not_ready(Machine::Offline)),
        (Outlook { peer_etcd: Fact::Absent, ..two_voters() }, Hindrance::PeerRunsNone { peer: peer() }),
        (with_peer(|etcd| etcd.learner = true), Hindrance::PeerIsLearner { peer: peer() }),
        (with_peer(|etcd| etcd.has_leader = false), Hindrance::PeerHasNoLeader { peer: peer() }),
        (with_peer(|etcd| etcd.alarm = true), Hindrance::Alarm),
        (with_peer(|etcd| etcd.cluster_id = "c2".to_owned()), Hindrance::OtherCluster { peer: peer() }),
        (Outlook { peer_claims: Fact::Known(false), ..two_voters() }, Hindrance::PeerNotReadyYet { peer: peer() }),
        (
            Outlook { change: Some("a replacement".to_owned()), ..two_voters() },
            Hindrance::ChangeUnderWay { change: "a replacement".to_owned() },
        ),
    ];
    for (outlook, hindrance) in cases {
        assert_eq!(may_stop(&outlook), Answer::No(vec![hindrance]), "{outlook:?}");
    }
}

#[test]
fn what_could_not_be_asked_is_never_a_yes() {
    let why = || "timed out".to_owned();
    let node = || "node2".to_owned();
    let cases = [
        (Outlook { care: Fact::Absent, ..two_voters() }, Doubt::PacemakerStopped),
        (Outlook { care: unknown(), ..two_voters() }, Doubt::Pacemaker { why: why() }),
        (Outlook { peer_etcd: unknown(), ..two_voters() }, Doubt::Etcd { node: node(), why: why() }),
        (with_peer(|etcd| etcd.reads = unknown()), Doubt::Reads { node: node(), why: why() }),
        (Outlook { own_etcd: Fact::Known(Voice { voters: 3, ..voice() }), ..two_voters() }, Doubt::Voters { count: 3 }),
        (Outlook { own_etcd: unknown(), ..with_peer(|etcd| etcd.voters = 3) }, Doubt::Voters { count: 3 }),
        (Outlook { peer_claims: unknown(), ..two_voters() }, Doubt::Claim { node: node(), why: why() }),
    ];
    for (outlook, doubt) in cases {
        assert_eq!(may_stop(&outlook), Answer::Unknown(vec![doubt]), "{outlook:?}");
    }
    assert!(matches!(may_stop(&Outlook::default()), Answer::No(_)));
}

#[test]
fn a_no_that_is_known_counts_more_than_what_is_not() {
    let outlook = Outlook { peer_etcd: unknown(), ..with_care(|care| care.peer = Machine::Offline) };
    assert!(matches!(may_stop(&outlook), Answer::No(_)));
    let own_hangs = Outlook { own_etcd: unknown(), ..with_care(|care| care.hands_off = true) };
    assert!(matches!(may_stop(&own_hangs), Answer::No(_)), "its vote may be needed");
}
