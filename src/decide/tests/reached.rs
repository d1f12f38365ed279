//! The position that the leader publishes for good.

use super::put_back::{reached, reaching};
use super::world::*;
use crate::base::Fact;
use crate::decide::evidence::*;
use crate::decide::plan::{Effect, Request};

/// One writer, and few writes: the leader, when the voters or the forks change, or after many entries.
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
