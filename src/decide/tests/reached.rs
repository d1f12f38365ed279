//! The position that the leader publishes for good.

use super::put_back::{is_put_back, reached, reached_alone, reaching, refusal, runs};
use super::world::*;
use crate::base::Fact;
use crate::decide::evidence::*;
use crate::decide::plan::{Effect, Progress, Request, RunMode, Via};

/// Asserts that only the leader publishes its position, and only if the voters have changed, a new cluster was forced, or many
/// entries were written.
#[test]
fn the_leader_publishes_how_far_it_has_reached() {
    let says = |etcd: Etcd, said: Fact<Reached>| {
        let voter = at_rest().running(Fact::Known(etcd)).seen_voting().cib_with(|cib| cib.reached = said);
        let effects = first(Request::Monitor, &voter).effects;
        effects.into_iter().find_map(|effect| match effect {
            Effect::SetReached(reached) => Some(reached.position.index),
            _ => None,
        })
    };
    let two = |leader: u64, index: u64| Etcd { index, ..etcd(ME, Some(leader), &[ME, PEER], &[]) };
    let one = |index: u64| Etcd { index, ..etcd(ME, Some(ME), &[ME], &[]) };
    assert_eq!(says(two(ME, 5), Fact::Absent), Some(5));
    assert_eq!(says(two(PEER, 5), Fact::Absent), None);
    assert_eq!(says(two(ME, 5), Fact::NotAsked), None);
    assert_eq!(says(two(ME, 10_999), reached(0, 1_000)), None);
    assert_eq!(says(two(ME, 11_000), reached(0, 1_000)), Some(11_000));
    assert_eq!(says(two(ME, 5), reached(1, 1_000)), Some(5));
    assert_eq!(says(one(1_001), reached(0, 1_000)), Some(1_001));
    // It never goes back.
    assert_eq!(says(one(999), reached(0, 1_000)), None);
    // A sole voter publishes at its stop where its log ends.
    let stopped = at_rest().with_disk(reaching(ME, &[ME], (3, 1_005))).cib_with(|cib| cib.reached = reached(0, 1_000));
    let said = |effect: &Effect| matches!(effect, Effect::SetReached(reached) if reached.position.index == 1_005);
    assert!(first(Request::Stop, &stopped).effects.iter().any(said));
}

/// Asserts that the leader publishes its position before it promotes a learner. At the first writes that both acknowledge, no
/// published record lists the new voter yet.
#[test]
fn a_promotion_is_announced_by_the_position_at_which_there_was_one_voter() {
    let promotes = |said: Fact<Reached>| {
        let leader = Etcd { index: 1_000, ..etcd(ME, Some(ME), &[ME], &[PEER]) };
        let mut leads = at_rest().running(Fact::Known(leader)).seen_voting().cib_with(|cib| cib.reached = said);
        leads.peer_etcd = Fact::Known(Etcd { index: 1_000, ..etcd(PEER, Some(ME), &[ME], &[PEER]) });
        let close = Progress { polls_caught_up: 1, ..Progress::default() };
        decide(Request::Monitor, &leads, &close).effects
    };
    let promotion = Effect::PromoteMember { id: PEER, via: Via::Own };
    let position = LogPosition { term: 3, index: 1_000 };
    let two = Reached { cluster_id: CLUSTER, forks: 0, position, is_redundant: true };
    let one = Reached { is_redundant: false, ..two };
    let [Effect::SetReached(said), then] = &promotes(Fact::Known(one))[..] else {
        panic!("{:?}", promotes(Fact::Absent))
    };
    assert_eq!((said.position.index, said.is_redundant, then), (1_000, true, &promotion));
    assert_eq!(promotes(Fact::Known(two)), [promotion], "it is published already");
    let starts = |said: Reached, disk: DataDir| {
        let node = at_rest().with_disk(disk).peer_is(PeerNode::Down, PeerAgent::NoHistory);
        let plan = first(Request::Start, &node.cib_with(|cib| cib.reached = Fact::Known(said)));
        plan.effects.contains(&Effect::RunContainer(RunMode::Normally))
    };
    assert!(!starts(two, reaching(ME, &[ME], (3, 1_000))), "its peer has become a voter since");
    assert!(starts(two, reaching(ME, &[ME], (3, 1_001))), "its peer was removed since");
    assert!(starts(one, reaching(ME, &[ME], (3, 1_000))));
}

/// Asserts that two voters do not start if both disks were put back, because Raft would elect the longer of two outdated logs.
#[test]
fn two_voters_that_both_end_too_early_do_not_start() {
    let both = |mine: u64, theirs: u64| {
        let both = at_rest().both_start().with_disk(reaching(ME, &[ME, PEER], (3, mine)));
        let both = both.with_peer_record(reaching(PEER, &[ME, PEER], (3, theirs)));
        first(Request::Start, &both.cib_with(|cib| cib.reached = reached(0, 1_000)))
    };
    assert!(is_put_back(&refusal(&both(900, 999))));
    assert_eq!(runs(&both(900, 1_000)), Some(RunMode::Normally));
    // The peer's disk went back to before its promotion.
    let learning = |index: u64| match history(PEER, &[ME], &[PEER]) {
        DataDir::Present(history) => {
            DataDir::Present(History { last_term: 3, last_index: index, commit_index: index, ..history })
        }
        other => other,
    };
    let beside_a_learner = |mine: u64| {
        let both = at_rest().both_start().with_disk(reaching(ME, &[ME, PEER], (3, mine)));
        let both = both.with_peer_record(learning(900));
        first(Request::Start, &both.cib_with(|cib| cib.reached = reached_alone(1, 1_000)))
    };
    assert!(is_put_back(&refusal(&beside_a_learner(999))));
    assert_eq!(runs(&beside_a_learner(1_000)), Some(RunMode::Normally));
}

/// Asserts that a voter with an outdated log does not start next to a leaderless peer that waits for its vote. The peer's log is
/// outdated, too.
#[test]
fn a_voter_that_ends_too_early_does_not_join_a_leaderless_peer_that_does_too() {
    let beside = |theirs: u64| {
        let active = at_rest().with_disk(reaching(ME, &[ME, PEER], (3, 900)));
        let active = active.peer_is(PeerNode::Online, PeerAgent::Active);
        let active = active.with_peer_record(reaching(PEER, &[ME, PEER], (3, theirs)));
        first(Request::Start, &active.cib_with(|cib| cib.reached = reached(0, 1_000)))
    };
    assert!(is_put_back(&refusal(&beside(999))));
    assert_eq!(runs(&beside(1_000)), Some(RunMode::Normally));
}
