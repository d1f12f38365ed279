//! How forks are counted: once for each time that one may have served.

use super::put_back::{is_put_back, reached, reached_alone, reaching, refusal, runs};
use super::world::*;
use crate::base::Fact;
use crate::decide::evidence::*;
use crate::decide::plan::{Effect, Request, RunMode};

/// Asserts that an announcement counts one more fork (forced new cluster) only if the last announced fork was carried out. The
/// durable note names the voter that a fork removes. The fork was not carried out if the note names no voter, or a voter that
/// this node's data still lists.
#[test]
fn a_fork_that_served_is_not_counted_again_as_if_it_had_not() {
    let announces = |without: Option<u64>| {
        let voter = at_rest().with_disk(history(ME, &[ME, PEER], &[])).seen_voting();
        let mut voter = voter.announced().peer_is(PeerNode::Down, PeerAgent::NoHistory);
        let Fact::Known(note) = &mut voter.note else { panic!("no note") };
        note.without = without;
        let disk = history(ME, &[ME, PEER], &[]);
        let effects = first(Request::Start, &voter.with_disk(disk)).effects;
        effects.into_iter().find_map(|effect| match effect {
            Effect::WriteNote(note) => Some((note.lineage, note.without)),
            _ => None,
        })
    };
    assert_eq!(announces(Some(PEER)), Some((forks(1, "node1"), Some(PEER))));
    assert_eq!(announces(Some(7)), Some((forks(2, "node1"), Some(PEER))));
    // What names no voter was never carried out: a force names it first.
    assert_eq!(announces(None), Some((forks(1, "node1"), Some(PEER))));
}

/// Asserts that, while etcd is silent, an announcement counts one more fork (forced new cluster) if the durable note names a
/// voter to remove. It is unknown whether the data still lists that voter, so the last fork may have been carried out.
#[test]
fn a_fork_is_counted_again_while_etcd_is_silent() {
    let announces = |without: Option<u64>| {
        let survivor = at_rest().running(Fact::Unknown("no answer".to_owned())).seen_voting().announced();
        let mut silent = survivor.peer_is(PeerNode::Down, PeerAgent::NoHistory);
        let Fact::Known(note) = &mut silent.note else { panic!("no note") };
        note.without = without;
        first(Request::Monitor, &silent).effects.into_iter().find_map(|effect| match effect {
            Effect::WriteNote(note) => Some((note.lineage.forks, note.without)),
            _ => None,
        })
    };
    assert_eq!(announces(Some(PEER)), Some((2, None)));
    assert_eq!(announces(None), Some((1, None)));
}

#[test]
fn a_force_names_the_voter_that_it_removes_first() {
    let force = |without: Option<u64>| {
        let mut stopped = at_rest().seen_voting().at_the_barrier().peer_is(PeerNode::Down, PeerAgent::NoHistory);
        let Fact::Known(note) = &mut stopped.note else { panic!("no note") };
        note.without = without;
        stopped.disk = Fact::Known(history(ME, &[ME, PEER], &[]));
        decide(Request::Monitor, &stopped, &barrier()).effects
    };
    let [Effect::WriteNote(note), Effect::AdvanceCommit, Effect::RunContainer(_)] = &force(None)[..] else {
        panic!("{:?}", force(None))
    };
    assert_eq!((note.lineage.forks, note.without), (1, Some(PEER)));
    assert_eq!(force(Some(PEER)).len(), 2, "it is named already");
}

/// Asserts that the end of the data that an operator chose is published before the durable note is written. If only the note were
/// written, the next start would refuse that data.
#[test]
fn data_that_a_person_chose_although_it_ends_too_early_is_whole_from_then_on() {
    let behind = at_rest().with_disk(reaching(ME, &[ME], (3, 1_000))).peer_is(PeerNode::Down, PeerAgent::NoHistory);
    let behind = behind.cib_with(|cib| cib.reached = reached(0, 1_001));
    let confirmed = Evidence { confirmation: Fact::Known(word(true)), ..behind.clone() };
    let effects = first(Request::Start, &confirmed).effects;
    let [Effect::SetReached(chosen), Effect::WriteNote(note), ..] = &effects[..] else { panic!("{effects:?}") };
    assert_eq!((chosen.forks, chosen.position.index, note.lineage.forks), (1, 1_000, 1));
    let begun = |index: u64| {
        let mut begun = behind.clone();
        begun.note = Fact::Known(note.clone());
        let begun = begun.cib_with(|cib| {
            cib.lineage = note.lineage.clone();
            cib.reached = reached_alone(chosen.forks, index);
        });
        begun.with_disk(reaching(ME, &[ME], (3, 1_000)))
    };
    let whole = first(Request::Start, &begun(1_000));
    assert_eq!(runs(&whole), Some(RunMode::Normally), "{whole:?}");
    assert!(is_put_back(&refusal(&first(Request::Start, &begun(1_001)))));
    // A fork that no person began ends where the last one did, or later.
    let void = begun(1_000).cib_with(|cib| cib.reached = reached(0, 1_001));
    assert!(is_put_back(&refusal(&first(Request::Start, &void))));
}
