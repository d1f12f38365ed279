//! The records that count for the newest history, and those that are too old for it.

use super::world::*;
use crate::base::Fact;
use crate::decide::evidence::*;
use crate::decide::plan::{Effect, Request, RunMode};
use crate::decide::reason::Reason;

#[test]
fn a_stopped_peers_record_counts_only_where_it_is_of_the_member_that_is_listed() {
    let stopped = |member| {
        let survivor = at_rest().seen_voting().with_disk(history(ME, &[ME, PEER], &[])).at_the_barrier();
        let peer = record(history(member, &[ME, member], &[]));
        survivor.cib_with(|cib| cib.peer_record = Some(PublishedState { lineage: forks(1, "node1"), ..peer }))
    };
    let plan = |evidence: &Evidence| decide(Request::Monitor, evidence, &barrier());
    let forced = [Effect::AdvanceCommit, Effect::RunContainer(RunMode::ForceNewCluster)];
    assert_eq!(plan(&stopped(PEER)).effects, forced);
    // A record of another member is older than this membership: the peer may claim by now, and we only do not see it yet.
    assert_eq!(plan(&stopped(9)).effects, [Effect::RunContainer(RunMode::Normally)]);
}

#[test]
fn what_a_lost_peer_said_last_is_no_proof_for_a_force() {
    let plan = |node| {
        let voter = at_rest().with_disk(history(ME, &[ME, PEER], &[])).with_peer_record(DataDir::Blank);
        let evidence = voter.peer_is(node, PeerAgent::Stopped).at_the_barrier();
        decide(Request::Monitor, &evidence, &barrier()).effects
    };
    let forced = [Effect::AdvanceCommit, Effect::RunContainer(RunMode::ForceNewCluster)];
    assert_eq!(plan(PeerNode::Online), forced);
    // It may have joined since, and run.
    assert_eq!(plan(PeerNode::Lost), [Effect::RunContainer(RunMode::Normally)]);
    assert_eq!(plan(PeerNode::Down), forced);
}

#[test]
fn while_etcd_runs_it_says_who_the_other_voter_is() {
    let leaderless = |other| {
        let voter = at_rest().running(Fact::Known(etcd(ME, None, &[ME, other], &[]))).seen_voting();
        voter.peer_is(PeerNode::Online, PeerAgent::Stopped).with_peer_record(departed(PEER))
    };
    assert!(!first(Request::Monitor, &leaderless(PEER)).effects.is_empty());
    assert_eq!(first(Request::Monitor, &leaderless(9)).effects, []);
}

#[test]
fn a_start_that_serves_beside_its_peer_adopts_the_forks_that_were_recorded() {
    let voter = at_rest().running(Fact::Known(etcd(ME, Some(PEER), &[ME, PEER], &[]))).seen_voting();
    let voter = voter.cib_with(|cib| cib.lineage = forks(2, "node2"));
    let adopted =
        Effect::WriteNote(DurableState { lineage: forks(2, "node2"), of: Some(mine()), ..DurableState::default() });
    assert!(first(Request::Start, &voter).effects.contains(&adopted));
}

#[test]
fn a_sole_voter_does_not_start_beside_a_history_of_its_peers_own() {
    let sole = at_rest().with_disk(history(ME, &[ME], &[])).peer_is(PeerNode::Lost, PeerAgent::Active);
    assert_eq!(run_mode(&sole), Some(RunMode::Normally));
    let split = sole.with_peer_record(history(PEER, &[PEER], &[]));
    // What a peer that claims nothing held when it started may be gone since.
    assert_eq!(run_mode(&split), Some(RunMode::Normally));
    let claimed = split.cib_with(|cib| cib.peer_record.iter_mut().for_each(|record| record.claims = true));
    let plan = first(Request::Start, &claimed);
    assert_eq!((plan.effects.as_slice(), matches!(plan.because, Reason::Waiting(_))), (&[][..], true));
}

/// Asserts that a voter of two corrects its own attribute if the attribute names the other node's fork (forced new cluster) with
/// the same number. Two voters with a leader have one history, and the durable note has the fork of that history.
#[test]
fn a_voter_of_two_publishes_the_lineage_that_was_settled() {
    let mut voter = at_rest().running(Fact::Known(etcd(ME, Some(PEER), &[ME, PEER], &[]))).seen_voting();
    voter.note = Fact::Known(DurableState { lineage: forks(1, "node2"), ..DurableState::default() });
    let published = |own: &str| {
        let voter = voter.clone().cib_with(|cib| {
            (cib.lineage, cib.own_lineage) = (forks(1, "node2"), Some(forks(1, own)));
        });
        first(Request::Monitor, &voter).effects.contains(&Effect::PublishLineage(forks(1, "node2")))
    };
    assert!(published("node1"));
    assert!(!published("node2"));
}

#[test]
fn a_fork_that_was_announced_by_who_has_left_to_this_sole_voter_was_never_made() {
    let sole = at_rest().with_disk(history(ME, &[ME], &[])).peer_is(PeerNode::Lost, PeerAgent::Active);
    let behind = sole.cib_with(|cib| cib.lineage = forks(1, "node2"));
    assert_eq!(run_mode(&behind), None);
    assert_eq!(run_mode(&behind.clone().with_peer_record(departed_from(PEER, 7))), None);
    assert_eq!(run_mode(&behind.clone().with_peer_record(departed(PEER))), Some(RunMode::Normally));
    // A peer that votes next to this member has not left to it.
    assert_eq!(run_mode(&behind.with_peer_record(history(PEER, &[ME, PEER], &[]))), None);
}

#[test]
fn a_fork_of_a_peer_that_is_there_and_votes_beside_this_sole_voter_was_never_made() {
    let sole = at_rest().with_disk(history(ME, &[ME], &[])).cib_with(|cib| cib.lineage = forks(1, "node2"));
    let beside = PublishedState { lineage: forks(1, "node2"), ..record(history(PEER, &[ME, PEER], &[])) };
    let joins = PublishedState { lineage: forks(1, "node2"), joins: true, ..record(DataDir::Blank) };
    let learns = PublishedState { lineage: forks(1, "node2"), ..record(history(9, &[ME], &[9])) };
    let unborn = PublishedState { lineage: forks(1, "node2"), ..record(history(9, &[], &[])) };
    let made = PublishedState { lineage: forks(1, "node2"), ..record(history(PEER, &[PEER, 7], &[])) };
    let of_another = PublishedState { lineage: forks(1, "node2"), ..record(history(9, &[7], &[9])) };
    let claims = PublishedState { claims: true, ..beside.clone() };
    let older = PublishedState { lineage: Lineage::default(), ..beside.clone() };
    let starts = |peer: &PublishedState, node| {
        let there = sole.clone().peer_is(node, PeerAgent::Active).cib_with(|cib| cib.peer_record = Some(peer.clone()));
        run_mode(&there) == Some(RunMode::Normally)
    };
    for peer in [&beside, &joins, &learns, &unborn] {
        assert!(starts(peer, PeerNode::Online));
        // It may have continued since.
        assert!(!starts(peer, PeerNode::Lost));
    }
    for peer in [&made, &of_another, &claims, &older] {
        assert!(!starts(peer, PeerNode::Online));
    }
}

/// Asserts that a sole voter starts although its peer's record counts as many forks (forced new clusters) as its own. The peer recorded
/// its fork, but never made it.
#[test]
fn a_fork_that_was_never_made_counts_no_more_beside_as_many_of_its_own() {
    let note = DurableState { lineage: forks(1, "node1"), ..DurableState::default() };
    let sole = at_rest().with_disk(history(ME, &[ME], &[])).peer_is(PeerNode::Online, PeerAgent::Active);
    let starts = |peer_lineage: Lineage| {
        let beside = PublishedState { lineage: forks(1, "node2"), ..record(history(PEER, &[ME, PEER], &[])) };
        let there = Evidence { note: Fact::Known(note.clone()), ..sole.clone() }.cib_with(|cib| {
            (cib.lineage, cib.peer_lineage, cib.peer_record) = (forks(1, "node1"), Some(peer_lineage), Some(beside));
            cib.own_record.iter_mut().for_each(|record| record.lineage = forks(1, "node1"));
        });
        run_mode(&there) == Some(RunMode::Normally)
    };
    assert!(starts(forks(1, "node2")));
    assert!(!starts(forks(2, "node2")), "what it says it holds is another fork than the one that is recorded");
}

#[test]
fn only_data_that_was_given_up_to_join_and_not_gone_on_with_is_published_as_that() {
    let note = DurableState { joins: true, ..DurableState::default() };
    let joins = |disk: DataDir, note: DurableState| {
        let joiner = Evidence { note: Fact::Known(note), disk: Fact::Known(disk), ..at_rest() };
        joiner.published_state().is_some_and(|record| record.joins)
    };
    assert!(joins(DataDir::Blank, note.clone()));
    // Its data was backed up, and it came to write down no more than that it had left.
    assert!(joins(DataDir::Blank, DurableState { left_at: Some(LogPosition::default()), ..DurableState::default() }));
    assert!(!joins(DataDir::Blank, DurableState::default()));
    assert!(!joins(history(ME, &[PEER], &[ME]), note.clone()));
    assert!(!joins(DataDir::Blank, DurableState { alone_since: Some(LogPosition::default()), ..note }));
}

#[test]
fn as_many_forks_by_another_node_are_another_history() {
    let note = DurableState { lineage: forks(1, "node1"), ..DurableState::default() };
    let sole = at_rest().with_disk(history(ME, &[ME], &[])).peer_is(PeerNode::Down, PeerAgent::NoHistory);
    let sole = Evidence { note: Fact::Known(note), ..sole };
    let knows = |by: &str| {
        sole.clone().cib_with(|cib| {
            cib.lineage = forks(1, by);
            cib.own_record.iter_mut().for_each(|record| record.lineage = forks(1, "node1"));
        })
    };
    assert_eq!(run_mode(&knows("node1")), Some(RunMode::Normally));
    assert_eq!(run_mode(&knows("node2")), None);
}

/// Asserts that a probe, a start and a monitor publish a fork (forced new cluster) that only the peer's record contains. The CIB
/// may lack the fork after a merge of two partitions.
#[test]
fn a_fork_that_only_the_peers_record_tells_of_is_written_down_in_its_place() {
    let kept = Effect::PublishPeerLineage(forks(1, "node2"));
    let note = DurableState { lineage: forks(1, "node1"), ..DurableState::default() };
    let told = |evidence: Evidence, attribute: Option<Lineage>| {
        let peer = PublishedState { lineage: forks(1, "node2"), ..record(history(PEER, &[PEER], &[])) };
        Evidence { note: Fact::Known(note.clone()), ..evidence }.cib_with(|cib| {
            (cib.lineage, cib.own_lineage) = (forks(1, "node1"), Some(forks(1, "node1")));
            (cib.peer_record, cib.peer_lineage) = (Some(peer), attribute);
        })
    };
    let stopped = || at_rest().with_disk(history(ME, &[ME], &[]));
    let serving = || at_rest().running(Fact::Known(etcd(ME, Some(ME), &[ME], &[]))).seen_voting();
    for (request, looks) in [(Request::Probe, stopped()), (Request::Start, stopped()), (Request::Monitor, serving())] {
        let keeps = |attribute| first(request, &told(looks.clone(), attribute)).effects.contains(&kept);
        assert!(keeps(None), "{request:?}");
        // A later fork of the peer's is not written over.
        assert!(!keeps(Some(forks(1, "node2"))) && !keeps(Some(forks(2, "node2"))), "{request:?}");
    }
    // What this node knows is in its own note and attribute.
    let known = |evidence: &mut Cib| evidence.peer_record.iter_mut().for_each(|peer| peer.lineage = forks(1, "node1"));
    assert!(!first(Request::Start, &told(stopped(), None).cib_with(known)).effects.contains(&kept));
}

/// Asserts that a probe publishes a fork (forced new cluster) of this node's data if the CIB lacks the fork. Pacemaker has come back
/// while etcd ran standalone. etcd has no leader now, and the peer may start once the probe has ended. If a node has joined since the
/// fork, the probe publishes nothing.
#[test]
fn a_probe_beside_a_running_fork_tells_of_it_where_the_cib_does_not() {
    let told = Effect::PublishLineage(forks(1, "node1"));
    let alone = DurableState {
        lineage: forks(1, "node1"),
        alone_since: Some(LogPosition::default()),
        ..DurableState::default()
    };
    let back = |note: &DurableState, known: Option<Lineage>| {
        let running = at_rest().running(Fact::Unknown("no answer".to_owned()));
        let looks = Evidence { note: Fact::Known(note.clone()), ..running };
        looks.cib_with(|cib| (cib.own_record, cib.own_lineage) = (None, known))
    };
    assert_eq!(first(Request::Probe, &back(&alone, None)).effects, [told]);
    assert_eq!(first(Request::Probe, &back(&alone, Some(forks(1, "node1")))).effects, []);
    // A node has joined since, and the data is of one history again.
    assert_eq!(first(Request::Probe, &back(&DurableState { alone_since: None, ..alone }, None)).effects, []);
}

#[test]
fn who_serves_alone_is_the_history_that_the_cib_tells_of() {
    let note = DurableState { lineage: forks(1, "node1"), ..DurableState::default() };
    let tells = |voters: &[u64]| {
        let voter = at_rest().running(Fact::Known(etcd(ME, Some(ME), voters, &[]))).seen_voting();
        let voter = Evidence { note: Fact::Known(note.clone()), ..voter };
        let plan = first(Request::Monitor, &voter.cib_with(|cib| cib.lineage = forks(1, "node2")));
        plan.effects.contains(&Effect::PublishLineage(forks(1, "node1")))
    };
    assert!(tells(&[ME]));
    // Of two voters' notes one gives way, and it is the same one on both sides.
    assert!(!tells(&[ME, PEER]));
}

fn run_mode(evidence: &Evidence) -> Option<RunMode> {
    first(Request::Start, evidence).effects.iter().find_map(|effect| match effect {
        Effect::RunContainer(mode) => Some(mode.clone()),
        _ => None,
    })
}
