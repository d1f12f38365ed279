//! Data that is another one's by its ids: a copy of the other node's disk, and another cluster at the peer's address. And what a node alone
//! is held to.

use super::put_back::{asked_to_be_removed, cluster, owner, refusal, runs};
use super::world::*;
use crate::base::Fact;
use crate::decide::evidence::*;
use crate::decide::plan::{Effect, Phase, Plan, Progress, Request, RunMode};
use crate::decide::reason::{Reason, Refusal, Wait};
use crate::decide::start::cold_start::{Chosen, ColdStart, answer};

#[test]
fn a_copy_of_the_other_nodes_disk_does_not_start() {
    let copy = || at_rest().with_disk(history(PEER, &[ME, PEER], &[]));
    let together = copy().both_start().with_peer_record(history(PEER, &[ME, PEER], &[]));
    let active = copy().with_peer_record(history(PEER, &[ME, PEER], &[])).peer_is(PeerNode::Online, PeerAgent::Active);
    // The peer is off: the CIB keeps its ids, or the note that came with the disk names it.
    let off = at_rest().with_disk(history(PEER, &[PEER], &[])).peer_is(PeerNode::Down, PeerAgent::NoHistory);
    let by_id = off.clone().cib_with(|cib| cib.peer_identity = Some(Identity { cluster_id: CLUSTER, member_id: PEER }));
    let note = DurableState { of: Some(owner(PEER, "node2")), ..DurableState::default() };
    let by_note = Evidence { note: Fact::Known(note), ..off }.with_disk(history(PEER, &[PEER], &[]));
    for copied in [together, active, by_id, by_note] {
        let plan = first(Request::Start, &copied);
        assert_eq!(refusal(&plan), Refusal::CopiedDisk { member: PEER });
    }
    // While the original serves, the copy joins anew.
    let mut serving = at_rest().with_disk(history(PEER, &[PEER], &[])).with_peer_record(history(PEER, &[PEER], &[]));
    serving.peer_etcd = Fact::Known(etcd(PEER, Some(PEER), &[PEER], &[]));
    assert!(matches!(first(Request::Start, &serving).effects[0], Effect::AddLearner { .. }));
}

#[test]
fn another_clusters_etcd_at_the_peers_address_is_not_joined() {
    let mut evidence = at_rest().with_disk(history(ME, &[ME, PEER], &[]));
    evidence.peer_etcd = Fact::Known(Etcd { cluster_id: 0xbb, ..etcd(PEER, Some(PEER), &[PEER], &[]) });
    let evidence = evidence.peer_is(PeerNode::Online, PeerAgent::Active);
    let told = evidence.clone().with_peer_record(history(PEER, &[ME, PEER], &[]));
    let known =
        evidence.clone().cib_with(|cib| cib.peer_identity = Some(Identity { cluster_id: CLUSTER, member_id: PEER }));
    let known_before = known.clone();
    for stranger in [told, known] {
        let plan = first(Request::Start, &stranger);
        assert_eq!(refusal(&plan), Refusal::AnotherClusterAnswers { address: "https://node2:2379".to_owned() });
    }
    // A snapshot that the peer restored is in its record, too.
    let DataDir::Present(restored) = history(PEER, &[PEER], &[]) else { panic!("no data") };
    let restored = evidence.with_peer_record(DataDir::Present(History { cluster_id: 0xbb, ..restored }));
    assert!(matches!(first(Request::Start, &restored).effects[0], Effect::AddLearner { .. }));
    // A peer without data joins the cluster of this node's data, and no other one.
    let blank = known_before.with_peer_record(DataDir::Blank);
    let refused = Refusal::AnotherClusterAnswers { address: "https://node2:2379".to_owned() };
    assert_eq!(refusal(&first(Request::Start, &blank)), refused);
}

/// Asserts that an etcd of another cluster at the peer's address counts as absent until the peer has published its own cluster.
#[test]
fn an_etcd_of_another_cluster_is_not_joined_before_the_peer_has_published_its_own() {
    let mut evidence = at_rest().with_disk(history(ME, &[ME, PEER], &[]));
    let stranger = Etcd { cluster_id: 0xbb, ..etcd(PEER, Some(PEER), &[PEER], &[]) };
    evidence.peer_etcd = Fact::Known(stranger);
    let waits = first(Request::Start, &evidence.clone().both_start());
    assert_eq!(waits.because, Reason::Waiting(Wait::PeerRecord { peer: "node2".to_owned() }));
    let active = first(Request::Start, &evidence.clone().peer_is(PeerNode::Online, PeerAgent::Active));
    assert!(is_harmless(&active), "{active:?}");
    let same = Etcd { cluster_id: CLUSTER, ..etcd(PEER, Some(PEER), &[PEER], &[]) };
    evidence.peer_etcd = Fact::Known(same);
    assert!(matches!(first(Request::Start, &evidence.both_start()).effects[0], Effect::AddLearner { .. }));
}

/// Asserts that an etcd of another cluster at the peer's address does not make the agent stop a member that waits for its leader.
#[test]
fn an_etcd_of_another_cluster_leaves_no_member_out() {
    let started = at_rest().with_disk(history(ME, &[ME, PEER], &[])).running(Fact::Unknown("no leader yet".to_owned()));
    let stranger = Etcd { cluster_id: 0xbb, ..etcd(9, Some(9), &[9], &[]) };
    let started =
        Evidence { peer_etcd: Fact::Known(stranger), ..started }.with_peer_record(history(PEER, &[ME, PEER], &[]));
    let progress = Progress::enter(Phase::Started(RunMode::Normally), 0);
    let plan = decide(Request::Start, &started.after(1_500), &progress);
    assert!(plan.effects.is_empty(), "{plan:?}");
}

#[test]
fn a_cluster_of_one_node_is_held_to_what_the_cib_records() {
    let only = |disk: DataDir| Evidence { peer: None, ..at_rest() }.with_disk(disk);
    let plan = first(Request::Start, &only(DataDir::Blank).cib_with(|cib| cib.cluster_recorded = true));
    assert_eq!(refusal(&plan), Refusal::OnlyNodesDataIsGone);
    assert_eq!(runs(&first(Request::Start, &only(DataDir::Blank))), Some(RunMode::Bootstrap));
    for voters in [&[ME][..], &[ME, PEER]] {
        let known = only(history(ME, voters, &[]));
        assert!(refused(&first(Request::Start, &known)).is_none());
        let behind = known.cib_with(|cib| cib.lineage = forks(1, "node2"));
        let plan = first(Request::Start, &behind);
        assert!(matches!(refusal(&plan), Refusal::PeerWentOnWithoutUs { .. }), "{plan:?}");
        let word = Confirmation { lost_node: "the peer".to_owned(), ..word(true) };
        assert!(!is_harmless(&first(Request::Start, &Evidence { confirmation: Fact::Known(word), ..behind })));
    }
    let left = Evidence { peer: None, note: asked_to_be_removed(), ..at_rest() };
    let left = left.with_disk(history(ME, &[ME, PEER], &[]));
    let refused = refusal(&first(Request::Start, &left));
    assert!(matches!(refused, Refusal::NoProofThatPeerDidNotGoOn { .. }), "{refused:?}");
}

/// Asserts that a record shows a member's request to be removed only for a voter without a leader. A member with a leader is
/// still listed.
#[test]
fn the_record_of_a_voter_has_that_it_asked_to_be_removed() {
    let evidence = |disk: DataDir| Evidence { note: asked_to_be_removed(), ..at_rest().with_disk(disk) };
    let left = |disk: DataDir| evidence(disk).published_state().map(|record| record.left);
    assert_eq!(left(history(ME, &[ME, PEER], &[])), Some(true));
    assert_eq!(left(history(ME, &[PEER], &[ME])), Some(false), "a learner has no vote");
    assert_eq!(left(DataDir::Blank), Some(false));
    let lives = |leader| {
        let runs = evidence(history(ME, &[ME, PEER], &[]));
        runs.living_record(&etcd(ME, leader, &[ME, PEER], &[])).map(|record| record.left)
    };
    assert_eq!((lives(None), lives(Some(PEER))), (Some(true), Some(false)));
}

/// Asserts that two nodes with data of one member both refuse to start. Both compute the same refusal from the two records,
/// whatever else the CIB contains.
#[test]
fn two_records_of_one_member_start_on_neither_node() {
    let copied = ColdStart::Refuse(Refusal::CopiedDisk { member: PEER });
    for voters in [&[PEER][..], &[ME, PEER]] {
        let one = record(history(PEER, voters, &[]));
        assert_eq!(answer(&one, &one, &cluster(Chosen::Nobody)), copied, "{voters:?}");
    }
    let other = record(history(ME, &[ME, PEER], &[]));
    assert_ne!(answer(&other, &record(history(PEER, &[ME, PEER], &[])), &cluster(Chosen::Nobody)), copied);
}

fn refused(plan: &Plan) -> Option<&Refusal> {
    match &plan.because {
        Reason::Refused { refusal, .. } => Some(refusal),
        _ => None,
    }
}
