//! Facts of the data dir other than its history: a database that reaches beyond its log.

use super::world::*;
use crate::base::Fact;
use crate::decide::Plan;
use crate::decide::evidence::*;
use crate::decide::plan::{Effect, Request, RunMode};
use crate::decide::reason::{Reason, Refusal};

fn refused(plan: &Plan) -> Option<&Refusal> {
    match &plan.because {
        Reason::Refused { refusal, .. } => Some(refusal),
        _ => None,
    }
}

/// Returns `disk` with a database that contains 10 entries more than the log.
fn ahead(disk: DataDir) -> DataDir {
    match disk {
        DataDir::Present(history) => {
            DataDir::Present(History { database_ahead: Some(history.last_index + 10), ..history })
        }
        other => other,
    }
}

fn is_refused_as_ahead(plan: &Plan) -> bool {
    let is_so = matches!(refused(plan), Some(Refusal::DatabaseAheadOfLog { last_index: 1000, database_index: 1010 }));
    is_so && plan.effects.is_empty()
}

#[test]
fn nothing_is_announced_or_forced_from_a_database_ahead_of_its_log() {
    let beside = || history(ME, &[ME, PEER], &[]);
    let down = || at_rest().peer_is(PeerNode::Down, PeerAgent::Stopped).seen_voting();
    let blank = || at_rest().both_start().with_peer_record(DataDir::Blank);
    for (name, evidence) in [("the peer is down", down()), ("the peer is blank", blank())] {
        let whole = first(Request::Start, &evidence.clone().with_disk(beside()));
        assert!(matches!(whole.effects.first(), Some(Effect::WriteNote(_))), "{name}: {whole:?}");
        let plan = first(Request::Start, &evidence.with_disk(ahead(beside())));
        assert!(is_refused_as_ahead(&plan), "{name}: {plan:?}");
    }
    // An operator's confirmation does not change what etcd does with it.
    let word = Evidence { confirmation: Fact::Known(word(true)), ..at_rest() };
    let word = word.peer_is(PeerNode::Down, PeerAgent::Stopped).with_disk(ahead(beside()));
    assert!(is_refused_as_ahead(&first(Request::Start, &word)));
}

/// Asserts that no new cluster is forced if the database is ahead of the log, even if etcd was already stopped for the force. The
/// agent can read the data only after that stop.
#[test]
fn what_was_announced_is_not_done_with_a_database_ahead_of_its_log() {
    let forced = |disk: DataDir| {
        let down = at_rest().peer_is(PeerNode::Down, PeerAgent::Stopped).seen_voting().at_the_barrier();
        decide(
            Request::Monitor,
            &down.clone().with_disk(disk.clone()).cib_with(|cib| {
                cib.own_record = down.cib.known().and_then(|cib| cib.own_record.clone());
            }),
            &barrier(),
        )
    };
    let whole = forced(history(ME, &[ME, PEER], &[]));
    assert!(whole.effects.contains(&Effect::RunContainer(RunMode::ForceNewCluster)), "{whole:?}");
    assert!(is_refused_as_ahead(&forced(ahead(history(ME, &[ME, PEER], &[])))));
    // A sole voter's log is advanced, too, where not all of it is recorded as committed.
    assert!(is_refused_as_ahead(&forced(ahead(history(ME, &[ME], &[])))));
}

#[test]
fn a_plain_start_runs_etcd_on_a_database_ahead_of_its_log() {
    let together = at_rest().both_start().with_peer_record(history(PEER, &[ME, PEER], &[]));
    let plan = first(Request::Start, &together.with_disk(ahead(history(ME, &[ME, PEER], &[]))));
    assert_eq!(plan.effects, [Effect::RunContainer(RunMode::Normally)]);
    let committed = |disk| match disk {
        DataDir::Present(history) => DataDir::Present(History { commit_index: history.last_index, ..history }),
        other => other,
    };
    let sole = || ahead(history(ME, &[ME], &[]));
    let alone = at_rest().peer_is(PeerNode::Down, PeerAgent::Stopped);
    let plan = first(Request::Start, &alone.clone().with_disk(committed(sole())));
    assert_eq!(plan.effects, [Effect::RunContainer(RunMode::Normally)]);
    assert!(is_refused_as_ahead(&first(Request::Start, &alone.with_disk(sole()))), "its log would be advanced");
}
