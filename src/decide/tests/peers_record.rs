//! Data that ends before what a stopped peer's record has: nothing is forced from it. `docs/design/put-back.md` has the rule.

use super::put_back::{is_put_back, reaching, refusal, runs};
use super::world::*;
use crate::base::Fact;
use crate::decide::evidence::*;
use crate::decide::plan::{Effect, Phase, Progress, Request, RunMode};

/// Asserts that no new cluster is forced from this node's data if the stopped peer published more committed entries. In this case
/// etcd died here, and an operator put older data in its place.
#[test]
fn a_voter_whose_peer_has_more_as_committed_does_not_run_standalone() {
    let at_the_barrier = |mine: u64, theirs: u64, gave_up: bool| {
        let voter = at_rest().seen_voting().with_disk(reaching(ME, &[ME, PEER], (3, mine))).at_the_barrier();
        let mut voter = voter.peer_is(PeerNode::Online, PeerAgent::Stopped);
        if let Fact::Known(note) = &mut voter.note {
            note.gave_up = gave_up;
        }
        let peer = record(reaching(PEER, &[ME, PEER], (3, theirs)));
        decide(Request::Monitor, &voter.cib_with(|cib| cib.peer_record = Some(peer)), &barrier())
    };
    assert_eq!(runs(&at_the_barrier(1_000, 1_000, false)), Some(RunMode::ForceNewCluster));
    // The announcement, which was made while etcd ran and its data was not read, proves nothing.
    let plan = at_the_barrier(1_000, 1_001, false);
    assert!(is_put_back(&refusal(&plan)) && is_harmless(&plan), "{plan:?}");
    // An operator gave up what only the peer has.
    assert_eq!(runs(&at_the_barrier(1_000, 1_001, true)), Some(RunMode::ForceNewCluster));
}

/// Asserts that an uncommitted entry that only the peer has counts as committed if etcd died on this node. This node's data may
/// have been replaced since the death. If etcd was stopped, such an entry does not count, because this node's etcd may never have
/// received it.
#[test]
fn behind_a_dead_etcd_an_entry_that_only_the_stopped_peer_has_counts_as_committed() {
    let longer = match reaching(PEER, &[ME, PEER], (3, 1_000)) {
        DataDir::Present(history) => DataDir::Present(History { last_index: 1_001, ..history }),
        other => other,
    };
    for found_dead in [false, true] {
        let mut voter = at_rest().seen_voting().with_disk(reaching(ME, &[ME, PEER], (3, 1_000))).at_the_barrier();
        if let Fact::Known(memory) = &mut voter.boot_memory {
            let position = LogPosition { term: 3, index: 1_000 };
            memory.ended_at = Some(DataEnd { cluster_id: CLUSTER, member_id: ME, position, found_dead });
        }
        let voter = voter.peer_is(PeerNode::Online, PeerAgent::Stopped).with_peer_record(longer.clone());
        let plan = decide(Request::Monitor, &voter, &barrier());
        assert_eq!(runs(&plan).is_none(), found_dead, "{plan:?}");
    }
}

#[test]
fn a_stop_remembers_that_it_found_etcd_dead_until_etcd_serves_again() {
    let found_dead = |evidence: &Evidence, progress: &Progress| {
        let effects = decide(Request::Stop, evidence, progress).effects;
        effects.iter().find_map(|effect| match effect {
            Effect::Remember(memory) => memory.ended_at.as_ref().map(|end| end.found_dead),
            _ => None,
        })
    };
    let stopped = Progress::enter(Phase::Stopped, 0);
    let served = at_rest().seen_voting().with_disk(reaching(ME, &[ME, PEER], (3, 1_000)));
    assert_eq!(found_dead(&served, &Progress::default()), Some(true));
    assert_eq!(found_dead(&served, &stopped), Some(false));
    // No etcd has served since.
    for died in [false, true] {
        let mut again = served.clone();
        if let Fact::Known(memory) = &mut again.boot_memory {
            let position = LogPosition { term: 3, index: 1_000 };
            memory.ended_at = Some(DataEnd { cluster_id: CLUSTER, member_id: ME, position, found_dead: died });
        }
        assert_eq!(found_dead(&again, &Progress::default()), Some(died));
        assert_eq!(found_dead(&again, &stopped), Some(died));
    }
}
