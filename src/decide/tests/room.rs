//! Backups: what was backed up is kept while it may matter, and makes room when it does not.

use super::world::*;
use crate::base::Fact;
use crate::decide::evidence::*;
use crate::decide::plan::{Effect, Request};
use crate::decide::reason::{Reason, Refusal};

const MB: u64 = 1 << 20;

/// Returns a node with three backups of 100 MB each and with data of another history. The serving peer lists the node as a
/// learner.
fn joining(disk: DataDir, free_mb: u64) -> Evidence {
    let mut evidence = at_rest().with_disk(disk).peer_is(PeerNode::Online, PeerAgent::Active);
    let mut serving = Etcd { db_bytes: 100 * MB, ..etcd(PEER, Some(PEER), &[PEER], &[]) };
    let peer_urls = vec!["https://node1:2380".to_owned()];
    serving.members.push(Member { id: 9, name: String::new(), peer_urls, is_learner: true });
    evidence.peer_etcd = Fact::Known(serving);
    let backup = |name: &str| Backup { name: name.to_owned(), bytes: 100 * MB };
    evidence.room = Fact::Known(Room { free_bytes: free_mb * MB, backups: ["a", "b", "c"].map(backup).to_vec() });
    evidence
}

fn dropped(evidence: &Evidence) -> Vec<String> {
    match &first(Request::Start, evidence).effects[..] {
        [Effect::DropBackups(names)] => names.clone(),
        _ => Vec::new(),
    }
}

fn joins(evidence: &Evidence) -> bool {
    first(Request::Start, evidence).effects.iter().any(|effect| matches!(effect, Effect::RunContainer(_)))
}

#[test]
fn nothing_is_deleted_where_the_new_copy_fits() {
    let evidence = joining(history(ME, &[ME, PEER], &[]), 260);
    assert!(joins(&evidence) && dropped(&evidence).is_empty());
    assert!(joins(&Evidence { room: Fact::Unknown("I/O error".to_owned()), ..evidence }));
}

#[test]
fn the_oldest_go_first_and_no_more_than_needed() {
    assert_eq!(dropped(&joining(history(ME, &[ME, PEER], &[]), 259)), ["a"]);
    assert_eq!(dropped(&joining(history(ME, &[ME, PEER], &[]), 100)), ["a", "b"]);
    assert_eq!(dropped(&joining(history(ME, &[ME, PEER], &[]), 0)), ["a", "b", "c"]);
}

#[test]
fn what_may_still_matter_is_never_dropped() {
    // A blank data dir: the newest backup may be what a join that was cut short has just backed up.
    assert_eq!(dropped(&joining(DataDir::Blank, 0)), ["a", "b"]);
    let unsettled = Evidence {
        note: Fact::Known(DurableState { joins: true, ..DurableState::default() }),
        ..joining(history(ME, &[PEER], &[ME]), 0)
    };
    let unread = Evidence { note: Fact::Unknown("damaged".to_owned()), ..joining(DataDir::Blank, 0) };
    for evidence in [&unsettled, &unread] {
        assert!(dropped(evidence).is_empty() && !joins(evidence));
    }
    let because = |evidence| first(Request::Start, evidence).because;
    assert!(matches!(because(&unsettled), Reason::Refused { refusal: Refusal::NoRoomToJoin { .. }, .. }));
    assert!(matches!(because(&unread), Reason::Refused { refusal: Refusal::NoteUnreadable { .. }, .. }));
}

#[test]
fn backups_are_pruned_once_this_node_votes_again_and_not_before() {
    let note = DurableState { joins: true, ..DurableState::default() };
    let with = |voters: &[u64], learners: &[u64]| {
        let evidence = at_rest().running(Fact::Known(etcd(ME, Some(PEER), voters, learners)));
        Evidence { note: Fact::Known(note.clone()), ..evidence }
    };
    let prunes = |evidence: &Evidence| first(Request::Monitor, evidence).effects.contains(&Effect::PruneBackups);
    assert!(!prunes(&with(&[PEER], &[ME])));
    let voter = with(&[ME, PEER], &[]).seen_voting();
    assert!(prunes(&voter));
    let settled = Effect::WriteNote(DurableState { of: Some(mine()), ..DurableState::default() });
    assert!(first(Request::Monitor, &voter).effects.contains(&settled));
    assert!(!prunes(&Evidence { note: Fact::Known(DurableState::default()), ..voter }));
}
