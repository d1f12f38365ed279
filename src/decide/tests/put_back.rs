//! Disks that were put back, copied, or not there; state that is about other data. `docs/design/put-back.md` has the rules.

use super::world::*;
use crate::base::Fact;
use crate::decide::evidence::*;
use crate::decide::plan::{Effect, Plan, Request, RunMode};
use crate::decide::reason::{Reason, Refusal};
use crate::decide::start::cold_start::{Chosen, Cluster, ColdStart, answer};

/// Returns the data of the member `me`, with a log that ends at `(term, index)` and is committed to its end.
pub(super) fn reaching(me: u64, voters: &[u64], (term, index): (u64, u64)) -> DataDir {
    match history(me, voters, &[]) {
        DataDir::Present(history) => {
            DataDir::Present(History { last_term: term, last_index: index, commit_index: index, ..history })
        }
        other => other,
    }
}

pub(super) fn cluster(chosen: Chosen) -> Cluster<'static> {
    Cluster {
        names: ["node1", "node2"],
        recorded: true,
        forks: 0,
        chosen,
        reached: None,
        recorded_of_me: None,
        recorded_of_peer: None,
        third_voter: None,
    }
}

pub(super) fn refusal(plan: &Plan) -> Refusal {
    match &plan.because {
        Reason::Refused { refusal, .. } => refusal.clone(),
        because => panic!("not refused: {because:?}"),
    }
}

pub(super) fn is_put_back(refusal: &Refusal) -> bool {
    matches!(refusal, Refusal::DiskWasPutBack { .. })
}

pub(super) fn runs(plan: &Plan) -> Option<RunMode> {
    plan.effects.iter().find_map(|effect| match effect {
        Effect::RunContainer(mode) => Some(mode.clone()),
        _ => None,
    })
}

/// Returns the identity of a member's data on a node.
pub(super) fn owner(member_id: u64, node: &str) -> DataOwner {
    DataOwner { cluster_id: CLUSTER, member_id, node: node.to_owned() }
}

/// Asserts that both nodes refuse to start if node1's data was put back to a time at which node1 was the only voter.
#[test]
fn a_sole_voter_whose_peer_knows_more_was_put_back_and_both_nodes_refuse() {
    let (sole, voter) = (reaching(ME, &[ME], (3, 1_000)), reaching(PEER, &[ME, PEER], (9, 1_000_000)));
    for (me, peer) in [(&sole, &voter), (&voter, &sole)] {
        let both = at_rest().both_start().with_disk(me.clone()).with_peer_record(peer.clone());
        let plan = first(Request::Start, &both);
        assert!(is_put_back(&refusal(&plan)) && is_harmless(&plan), "{plan:?}");
        let sentence = plan.because.to_string();
        assert!(
            sentence.contains("at term 3 index 1000 and") || sentence.contains("at term 3 index 1000,"),
            "{sentence}"
        );
    }
}

/// Asserts that the peer's data proves that the sole voter's disk was put back if it has committed entries that the sole voter lacks.
/// This also holds if the peer is a learner or has left.
#[test]
fn a_peer_that_has_left_or_learns_proves_it_by_what_it_knows_as_committed() {
    let sole = record(reaching(ME, &[ME], (3, 1_000)));
    let left = match reaching(PEER, &[ME], (3, 2_000)) {
        DataDir::Present(history) => DataDir::Present(History { has_left: true, ..history }),
        other => other,
    };
    let learns = match reaching(PEER, &[ME], (3, 2_000)) {
        DataDir::Present(history) => DataDir::Present(History { learners: [PEER].into(), ..history }),
        other => other,
    };
    for peer in [left, learns] {
        let peer = record(peer);
        let [mine, theirs] =
            [answer(&sole, &peer, &cluster(Chosen::Nobody)), answer(&peer, &sole, &cluster(Chosen::Nobody))];
        for answer in [mine, theirs] {
            assert!(matches!(&answer, ColdStart::Refuse(refusal) if is_put_back(refusal)), "{answer:?}");
        }
    }
}

/// Asserts that uncommitted entries prove nothing, because a follower may have entries that its leader has not yet written to
/// disk.
#[test]
fn entries_that_were_never_committed_prove_nothing() {
    let sole = record(reaching(ME, &[ME], (3, 1_000)));
    let ahead = |disk: DataDir, term: u64, learns: bool| match disk {
        DataDir::Present(history) => DataDir::Present(History {
            last_term: term,
            last_index: 1_001,
            learners: if learns { [PEER].into() } else { history.learners },
            ..history
        }),
        other => other,
    };
    let voter = ahead(reaching(PEER, &[ME, PEER], (3, 1_000)), 3, false);
    let learner = ahead(reaching(PEER, &[ME], (3, 1_000)), 4, true);
    for peer in [voter, learner] {
        let answer = answer(&sole, &record(peer), &cluster(Chosen::Nobody));
        assert!(matches!(answer, ColdStart::StartNormally(_)), "{answer:?}");
    }
}

/// Asserts that a former voter's later term proves that the sole voter's disk was put back, even if the former voter has fewer
/// entries.
#[test]
fn a_former_voter_of_a_later_term_is_proof() {
    let sole = record(reaching(ME, &[ME], (3, 1_000)));
    let later = record(reaching(PEER, &[ME, PEER], (4, 900)));
    assert!(
        matches!(answer(&sole, &later, &cluster(Chosen::Nobody)), ColdStart::Refuse(refusal) if is_put_back(&refusal))
    );
}

#[test]
fn an_operator_chooses_and_what_was_chosen_once_is_not_asked_again() {
    let (sole, voter) = (record(reaching(ME, &[ME], (3, 1_000))), record(reaching(PEER, &[ME, PEER], (9, 1_000_000))));
    assert!(matches!(answer(&sole, &voter, &cluster(Chosen::Me)), ColdStart::ForceNewCluster(_)));
    assert!(matches!(answer(&voter, &sole, &cluster(Chosen::ThePeer)), ColdStart::FollowThePeer(_)));
    // The chosen node counts a fork from then on.
    let chosen = PublishedState { lineage: forks(1, "node1"), ..sole };
    assert!(matches!(answer(&chosen, &voter, &cluster(Chosen::Nobody)), ColdStart::StartNormally(_)));
    assert!(matches!(answer(&voter, &chosen, &cluster(Chosen::Nobody)), ColdStart::FollowThePeer(_)));
}

/// Asserts that a node with a leaderless etcd begins a recovery once an operator has chosen its data. Before the choice it waits,
/// because its peer refuses to start.
#[test]
fn a_choice_ends_the_wait_of_the_node_that_runs() {
    let runs = at_rest().running(Fact::Known(etcd(ME, None, &[ME, PEER], &[])));
    let runs = runs.with_peer_record(history(PEER, &[PEER], &[])).cib_with(|cib| {
        cib.own_record = Some(record(history(ME, &[ME, PEER], &[])));
        (cib.own_lineage, cib.peer_lineage) = (None, Some(forks(1, "node2")));
        cib.lineage = forks(1, "node2");
    });
    let runs = runs.notified(Moment::Post, Operation::Stop, &[], &["node2"]);
    assert!(first(Request::Notify, &runs).effects.is_empty());
    let chosen = runs.cib_with(|cib| cib.primary = Some("node1".to_owned()));
    let effects = first(Request::Notify, &chosen).effects;
    assert!(effects.iter().any(|effect| matches!(effect, Effect::WriteNote(_))), "{effects:?}");
}

/// Asserts that, without an operator's choice, data that has more than the serving cluster is not moved aside.
#[test]
fn data_that_knows_more_than_the_cluster_that_serves_is_not_moved_aside_without_a_choice() {
    let mut evidence = at_rest().with_disk(reaching(ME, &[ME, PEER], (9, 1_000_000)));
    evidence.peer_etcd = Fact::Known(Etcd { term: 4, index: 1_010, ..etcd(PEER, Some(PEER), &[PEER], &[]) });
    let evidence = evidence.peer_is(PeerNode::Online, PeerAgent::Active);
    assert!(is_put_back(&refusal(&first(Request::Start, &evidence))));
    // Once an operator has chosen, it is kept where nothing deletes it.
    let mut chosen = evidence.cib_with(|cib| cib.primary = Some("node2".to_owned()));
    let listed =
        Member { id: 9, name: String::new(), peer_urls: vec!["https://node1:2380".to_owned()], is_learner: true };
    if let Fact::Known(etcd) = &mut chosen.peer_etcd {
        etcd.members.push(listed);
    }
    let effects = first(Request::Start, &chosen).effects;
    assert_eq!(effects[0], Effect::MoveHistoryAside, "{effects:?}");
}

pub(super) fn reached(forks: u64, index: u64) -> Fact<Reached> {
    Fact::Known(Reached { cluster_id: CLUSTER, forks, position: LogPosition { term: 3, index }, is_redundant: true })
}

/// Returns the same position as [`reached`], published by a sole voter.
pub(super) fn reached_alone(forks: u64, index: u64) -> Fact<Reached> {
    let position = LogPosition { term: 3, index };
    Fact::Known(Reached { cluster_id: CLUSTER, forks, position, is_redundant: false })
}

/// Asserts that a node without its peer refuses data that ends before the position that the CIB records.
#[test]
fn a_node_alone_knows_by_the_cib_that_its_disk_was_put_back() {
    let alone = |disk: DataDir| at_rest().with_disk(disk).peer_is(PeerNode::Down, PeerAgent::NoHistory);
    let sole = || alone(reaching(ME, &[ME], (3, 1_000)));
    let behind = sole().cib_with(|cib| cib.reached = reached(0, 1_001));
    let plan = first(Request::Start, &behind);
    assert!(is_put_back(&refusal(&plan)) && is_harmless(&plan));
    // The durable state, which knew of the fork, went back with the data.
    let state_too = sole().cib_with(|cib| cib.reached = reached_alone(1, 2_000));
    assert!(is_put_back(&refusal(&first(Request::Start, &state_too))));
    for as_far in [reached_alone(0, 1_000), reached_alone(1, 1_000), Fact::Absent, Fact::Unknown("rubbish".to_owned())]
    {
        let plan = first(Request::Start, &sole().cib_with(|cib| cib.reached = as_far));
        assert_eq!(runs(&plan), Some(RunMode::Normally));
    }
    // Of another cluster: a snapshot that was restored.
    let other = sole().cib_with(|cib| {
        cib.reached =
            reached(0, 1_001).known().map_or(Fact::Absent, |of| Fact::Known(Reached { cluster_id: 5, ..*of }));
    });
    assert_eq!(runs(&first(Request::Start, &other)), Some(RunMode::Normally));
    // A person gives up what is missing.
    for (accept_loss, is_taken) in [(false, false), (true, true)] {
        let word = Fact::Known(word(accept_loss));
        let plan = first(Request::Start, &Evidence { confirmation: word, ..behind.clone() });
        assert_eq!(plan.effects.iter().any(|effect| matches!(effect, Effect::WriteNote(_))), is_taken, "{plan:?}");
    }
    // A voter of two with the proof of this boot, and in a cluster of one node.
    let voter = alone(reaching(ME, &[ME, PEER], (3, 1_000))).seen_voting();
    let voter =
        Evidence { boot_memory: voter.boot_memory.clone(), ..voter.with_disk(reaching(ME, &[ME, PEER], (3, 1_000))) };
    assert!(!is_harmless(&first(Request::Start, &voter)));
    let behind = voter.cib_with(|cib| cib.reached = reached(0, 1_001));
    assert!(is_put_back(&refusal(&first(Request::Start, &behind))));
    let only = Evidence { peer: None, ..behind };
    assert!(is_put_back(&refusal(&first(Request::Start, &only))));
}

#[test]
fn data_that_ends_before_the_last_stop_of_this_boot_was_put_back() {
    let at_stop = |index: u64| {
        let evidence = at_rest().seen_voting().with_disk(reaching(ME, &[ME, PEER], (3, 1_000)));
        let mut evidence = evidence.peer_is(PeerNode::Down, PeerAgent::NoHistory);
        let position = LogPosition { term: 3, index };
        if let Fact::Known(memory) = &mut evidence.boot_memory {
            memory.ended_at = Some(DataEnd { cluster_id: CLUSTER, member_id: ME, position, found_dead: false });
        }
        first(Request::Start, &evidence)
    };
    assert!(is_put_back(&refusal(&at_stop(1_001))));
    assert!(!is_harmless(&at_stop(1_000)));
    // A stop behind which no etcd has served forgets nothing.
    let mut again = at_rest().with_disk(reaching(ME, &[ME, PEER], (3, 900)));
    let end = DataEnd {
        cluster_id: CLUSTER,
        member_id: ME,
        position: LogPosition { term: 3, index: 1_000 },
        found_dead: false,
    };
    let boot_id = again.boot_id.clone();
    again.boot_memory = Fact::Known(BootState { boot_id, ended_at: Some(end.clone()), ..BootState::default() });
    let keeps_it =
        |effect: &Effect| matches!(effect, Effect::Remember(memory) if memory.ended_at.as_ref() == Some(&end));
    assert!(first(Request::Stop, &again).effects.iter().any(keeps_it));
    assert!(first(Request::Stop, &again.with_disk(DataDir::Blank)).effects.iter().any(keeps_it));
    // A stop remembers it.
    let stopped = at_rest().with_disk(reaching(ME, &[ME, PEER], (3, 1_000)));
    let position = LogPosition { term: 3, index: 1_000 };
    let end = Some(DataEnd { cluster_id: CLUSTER, member_id: ME, position, found_dead: false });
    let effects = first(Request::Stop, &stopped).effects;
    assert!(
        effects.iter().any(|effect| matches!(effect, Effect::Remember(memory) if memory.ended_at == end)),
        "{effects:?}"
    );
}

/// Asserts that two voters do not start if the data of both ends before the position of this node's last stop. Raft would elect
/// the longer of two outdated logs.
#[test]
fn two_voters_that_end_before_this_nodes_last_stop_do_not_start() {
    let with = |theirs: u64, evidence: Evidence| {
        let mut both = evidence.with_disk(reaching(ME, &[ME, PEER], (3, 900)));
        let position = LogPosition { term: 3, index: 1_000 };
        let ended_at = Some(DataEnd { cluster_id: CLUSTER, member_id: ME, position, found_dead: false });
        both.boot_memory = Fact::Known(BootState { boot_id: both.boot_id.clone(), ended_at, ..BootState::default() });
        both.with_peer_record(reaching(PEER, &[ME, PEER], (3, theirs)))
    };
    let starting = |theirs| first(Request::Start, &with(theirs, at_rest().both_start()));
    let active = |theirs| first(Request::Start, &with(theirs, at_rest().peer_is(PeerNode::Online, PeerAgent::Active)));
    for plan in [starting(999), active(999)] {
        assert!(is_put_back(&refusal(&plan)));
        assert!(plan.because.to_string().contains("etcd had reached term 3 index 1000"), "{}", plan.because);
    }
    // Of two positions that are known the further one counts.
    let property = with(950, at_rest().both_start()).cib_with(|cib| {
        let position = LogPosition { term: 3, index: 920 };
        cib.reached = Fact::Known(Reached { cluster_id: CLUSTER, forks: 0, position, is_redundant: false });
    });
    assert!(is_put_back(&refusal(&first(Request::Start, &property))));
    for plan in [starting(1_000), active(1_000)] {
        assert_eq!(runs(&plan), Some(RunMode::Normally));
    }
    // An operator chose one of both: they start together, and none of their entries is given up.
    for node in ["node1", "node2"] {
        let chosen = with(999, at_rest().both_start()).cib_with(|cib| cib.primary = Some(node.to_owned()));
        assert_eq!(runs(&first(Request::Start, &chosen)), Some(RunMode::Normally), "{node}");
    }
}

/// Asserts that data is refused if it ends before the position at which this node began to run standalone. The durable note
/// records that position.
#[test]
fn data_that_ends_before_its_own_announcement_was_put_back() {
    let since = |term: u64, index: u64| {
        let mut both = at_rest().both_start();
        let alone_since = Some(LogPosition { term, index });
        both.note = Fact::Known(DurableState {
            lineage: forks(1, "node1"),
            alone_since,
            of: Some(mine()),
            ..DurableState::default()
        });
        let both = both.with_disk(reaching(ME, &[ME], (3, 1_000))).with_peer_record(history(PEER, &[ME], &[PEER]));
        first(Request::Start, &both.cib_with(|cib| cib.lineage = forks(1, "node1")))
    };
    assert!(is_put_back(&refusal(&since(3, 1_001))));
    assert_eq!(runs(&since(3, 1_000)), Some(RunMode::Normally));
    // Entries that were never committed gave way to those of a later term.
    assert_eq!(runs(&since(2, 1_001)), Some(RunMode::Normally));
}

/// Asserts that data is refused if the durable note lacks a fork (forced new cluster) that the node's own attribute records. In
/// that case the disk and the note were put back together.
#[test]
fn a_fork_that_this_node_recorded_and_its_data_lacks_is_proof() {
    let sole = at_rest().both_start().with_disk(reaching(ME, &[ME], (3, 1_000)));
    let peer = PublishedState { lineage: forks(1, "node1"), ..record(history(PEER, &[ME, PEER], &[])) };
    let sole = sole.cib_with(|cib| {
        cib.peer_record = Some(peer);
        (cib.lineage, cib.own_lineage) = (forks(1, "node1"), Some(forks(1, "node1")));
    });
    assert!(is_put_back(&refusal(&first(Request::Start, &sole))));
}

/// Asserts that the sole voter refuses to start if its peer ran standalone, and the peer's disk was then put back to a time at which the
/// peer was a learner. The refusal reports the peer's writes as lost.
#[test]
fn a_peer_that_ran_alone_and_is_a_learner_again_has_lost_what_it_took() {
    let sole =
        at_rest().both_start().with_disk(history(ME, &[ME], &[PEER])).with_peer_record(history(PEER, &[ME], &[PEER]));
    assert_eq!(runs(&first(Request::Start, &sole)), Some(RunMode::Normally));
    let known = sole.cib_with(|cib| (cib.lineage, cib.peer_lineage) = (forks(1, "node2"), Some(forks(1, "node2"))));
    let plan = first(Request::Start, &known);
    assert_eq!(refusal(&plan), Refusal::PeerWentOnAloneAndLostItsData { peer_forks: 1 });
    // It joined since, and took the fork over.
    let joined = known.cib_with(|cib| cib.peer_record.iter_mut().for_each(|peer| peer.lineage = forks(1, "node2")));
    assert_eq!(runs(&first(Request::Start, &joined)), Some(RunMode::Normally));
    // On that node, the note is newer than the data.
    let mut put_back = at_rest();
    let note = DurableState {
        lineage: forks(1, "node1"),
        alone_since: Some(LogPosition::default()),
        ..DurableState::default()
    };
    put_back.note = Fact::Known(note);
    let disk = put_back.with_disk(history(ME, &[PEER], &[ME])).published_state().map(|record| record.disk);
    assert!(matches!(disk, Some(DataDir::Broken { .. })), "{disk:?}");
}

/// Returns node1 with older data that an operator has moved back, and a durable note about newer data. Node1 wrote the note when
/// it joined its peer.
fn moved_back() -> Evidence {
    let mut evidence = at_rest();
    evidence.note = Fact::Known(DurableState {
        lineage: forks(1, "node2"),
        joins: true,
        of: Some(owner(7, "node1")),
        ..DurableState::default()
    });
    evidence.with_disk(history(ME, &[ME, PEER], &[])).cib_with(|cib| cib.lineage = forks(1, "node2"))
}

#[test]
fn a_note_that_is_about_other_data_vouches_for_nothing() {
    let down = moved_back().peer_is(PeerNode::Down, PeerAgent::NoHistory);
    let plan = first(Request::Start, &down);
    assert!(matches!(refusal(&plan), Refusal::PeerWentOnWithoutUs { .. }), "{plan:?}");
    let blank = moved_back().both_start().with_peer_record(DataDir::Blank);
    let plan = first(Request::Start, &blank);
    assert!(matches!(refusal(&plan), Refusal::PeerWentOnAloneAndLostItsData { .. }), "{plan:?}");
    // With its own note, the same data is known to have that fork.
    let mut own = moved_back().both_start().with_peer_record(DataDir::Blank);
    own.note = Fact::Known(DurableState { lineage: forks(1, "node2"), of: Some(mine()), ..DurableState::default() });
    let own = own.with_disk(history(ME, &[ME, PEER], &[]));
    assert!(!is_harmless(&first(Request::Start, &own)));
}

/// Asserts that a member counts as possibly removed if the durable note is about other data, even if the CIB records no forced
/// new cluster.
#[test]
fn data_of_which_nothing_is_known_may_have_left() {
    let blank = moved_back().both_start().with_peer_record(DataDir::Blank).cib_with(|cib| cib.lineage = forks(0, ""));
    let plan = first(Request::Start, &blank);
    assert_eq!(refusal(&plan), Refusal::PeerMayHaveGoneOnAndLostItsData);
}

#[test]
fn a_restored_snapshot_is_of_another_cluster_and_keeps_the_nodes_own_note() {
    let mut restored = at_rest().peer_is(PeerNode::Down, PeerAgent::NoHistory);
    restored.note =
        Fact::Known(DurableState { lineage: forks(1, "node1"), of: Some(mine()), ..DurableState::default() });
    let DataDir::Present(history) = history(ME, &[ME], &[]) else { panic!("no data") };
    let restored = restored.with_disk(DataDir::Present(History { cluster_id: 5, ..history }));
    let plan = first(Request::Start, &restored.cib_with(|cib| cib.lineage = forks(1, "node1")));
    assert_eq!(runs(&plan), Some(RunMode::Normally), "{plan:?}");
}

/// Returns the durable note of a node that asked its peer to remove it.
pub(super) fn asked_to_be_removed() -> Fact<DurableState> {
    let left_at = Some(LogPosition { term: 3, index: 990 });
    Fact::Known(DurableState { left_at, of: Some(mine()), ..DurableState::default() })
}

#[test]
fn a_node_that_asked_to_be_removed_does_not_force_beside_a_blank_peer() {
    let mut left = at_rest().both_start().with_peer_record(DataDir::Blank);
    left.note = asked_to_be_removed();
    let left = left.with_disk(history(ME, &[ME, PEER], &[]));
    let plan = first(Request::Start, &left);
    assert_eq!(refusal(&plan), Refusal::PeerMayHaveGoneOnAndLostItsData);
    let confirmed = Evidence { confirmation: Fact::Known(word(true)), ..left.clone() };
    assert!(!is_harmless(&first(Request::Start, &confirmed)));
    // A peer that joined this node has been promoted since, as this log lists it: it has data, and both start plainly.
    let joins = left.cib_with(|cib| cib.peer_record = Some(PublishedState { joins: true, ..record(DataDir::Blank) }));
    assert_eq!(runs(&first(Request::Start, &joins)), Some(RunMode::Normally));
}
