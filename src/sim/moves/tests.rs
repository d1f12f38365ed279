//! Tests that go through every state of a search.

use std::collections::{HashMap, HashSet};

use super::apply::{apply_all, at_moment, attempt};
use super::kinds::Move;
use super::kinds::all;
use super::possible::thinkable;
use crate::sim::model::view::{self, View};
use crate::sim::model::world::World;
use crate::sim::model::{etcd, initial_states};
use crate::sim::mutant::Mutant;
use crate::sim::reduce::atomic_steps::passing;
use crate::sim::reduce::symmetry::canonical;
use crate::sim::store::decided::{Key, key};
use crate::sim::{Bounds, Sim};

/// Passes to `visit` every state of a search, including those that the search only passes through.
fn visit_all(sim: &mut Sim, mut visit: impl FnMut(&mut Sim, &World)) {
    let root = World { faults: sim.bounds.faults, ..initial_states::healthy(sim) };
    let (mut seen, mut open) = (HashSet::from([root]), vec![root]);
    while let Some(world) = open.pop() {
        visit(sim, &world);
        let mut next = Vec::new();
        apply_all(sim, &world, |_, result| next.extend(result));
        for mut world in next {
            if passing(sim, &world).is_none() {
                canonical::canonical(sim, &mut world);
            }
            if seen.insert(world) {
                open.push(world);
            }
        }
    }
}

#[test]
fn what_is_not_thinkable_does_not_happen() {
    let all = all();
    let faults = Bounds {
        disks: true,
        unblocks: true,
        slow_fencing: true,
        stacks: true,
        damage: true,
        threshold: 2,
        ..Bounds::of_search(1)
    };
    let rarer = Bounds { tells: true, hides: true, promotable: true, ..Bounds::of_search(1) };
    for bounds in [faults, Bounds { unblocks: true, ..rarer }] {
        let (mut tried, mut visited) = (0, 0);
        visit_all(&mut Sim::new(bounds, Mutant::None), |sim, world| {
            let mut possible = Vec::new();
            thinkable(&bounds, world, None, etcd::has_learner(sim, world), |what| possible.push(what));
            let is_left_out =
                |what: &Move| !possible.contains(&at_moment(*what, 0)) && (world.faults > 0 || !what.is_fault());
            visited += 1;
            // A world is copied for each move, which takes most of the time.
            let is_tried = visited % 5 == 0;
            for what in all.iter().copied().filter(|what| is_tried && is_left_out(what)) {
                assert_eq!(attempt(sim, world, what, &mut world.clone()), Ok(false), "{what:?} in {world:?}");
                tried += 1;
            }
            assert!(possible.iter().all(|what| all.contains(what)), "a scenario cannot name all of {possible:?}");
        });
        assert!(tried > 100_000, "{tried} moves are too few to show anything");
    }
}

/// Returns every view from which an agent decides in a search.
fn views() -> Vec<View> {
    let mut sim = Sim::new(Bounds { disks: true, unblocks: true, ..Bounds::of_search(1) }, Mutant::None);
    let mut views = Vec::new();
    visit_all(&mut sim, |sim, world| {
        for n in 0..2 {
            let action = world.nodes[n].action.filter(|action| action.plan.is_none());
            views.extend(action.map(|action| view::look(sim, world, n, action)));
        }
    });
    views
}

#[test]
fn views_have_the_same_key_where_they_are_the_same() {
    let mut known: HashMap<Key, View> = HashMap::new();
    for view in views() {
        assert_eq!(*known.entry(key(&view)).or_insert(view), view);
    }
    assert!(known.len() > 100, "{} views are too few to show anything", known.len());
}
