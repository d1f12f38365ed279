//! Tests of symmetry reduction ([`super::canonical`]): if it counts two states as one, their decisions and their
//! successors are the same except for the names.

use std::collections::HashSet;
use std::time::Duration;

use super::canonical;
use super::rename::{self, Renaming};
use crate::decide::Request;
use crate::os::clock::Deadline;
use crate::sim::model::agent;
use crate::sim::model::initial_states;
use crate::sim::model::steps::Todo;
use crate::sim::model::timing::MOMENTS;
use crate::sim::model::view::{self, View};
use crate::sim::model::world::World;
use crate::sim::mutant::Mutant;
use crate::sim::search::Limits;
use crate::sim::search::engine::{self, Reached};
use crate::sim::store::packed::Packed;
use crate::sim::{Bounds, Sim};

/// The reason why a decision may depend on the names of the nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Why {
    /// Both nodes are blank, and the node with the first name bootstraps.
    BothBlank,
    /// Each node forced a new cluster, and both have the same rank. Rules order these two by their nodes.
    EqualRank,
}

/// Returns the reason why a decision in this state may depend on the nodes' names; `None` if it may not.
fn why(sim: &mut Sim, world: &World) -> Option<Why> {
    let are_blank = world.nodes.iter().all(|node| node.data.is_blank());
    let first = are_blank.then_some(Why::BothBlank);
    first.or_else(|| canonical::names_count(sim, world).then_some(Why::EqualRank))
}

/// Passes to `visit` every state that a search keeps, together with its successors.
fn visit_all(sim: &mut Sim, mut visit: impl FnMut(&mut Sim, &World, &Reached)) {
    let limits = Limits { states: usize::MAX, time: Duration::from_secs(600), stop_at_first: false, threads: 1 };
    let mut roots = vec![initial_states::healthy(sim)];
    roots.extend(sim.bounds.blank.then(|| initial_states::blank(sim)));
    let (shares, cut_short) = engine::search(sim, &roots, &limits, &Deadline::after(limits.time));
    assert_eq!(cut_short, None);
    let mut reached = Reached::default();
    for share in shares {
        for (state, about) in share.found.values.iter().zip(&share.about) {
            let world = World { faults: sim.bounds.faults - about.spent, ..state.world() };
            reached.from(sim, &world);
            visit(sim, &world, &reached);
        }
    }
}

fn mirrored(sim: &mut Sim, world: &World) -> World {
    rename::renamed(sim, world, &Renaming::swap())
}

/// Returns the decisions that follow from a view, one for each moment of the action.
fn decided(sim: &Sim, view: &View) -> Vec<Todo> {
    let progress = sim.progresses.get(view.progress);
    MOMENTS.map(|when| agent::decide_at(sim, view, progress, when).1).to_vec()
}

/// Asserts that the agent makes the same decision in every view of a search and in the view's mirror image, unless the nodes' names may
/// decide. Returns the number of views. Also returns the reasons and the requests with which names do decide.
fn assert_mirror_images_decide_alike(bounds: Bounds) -> (usize, Vec<(Why, Request)>) {
    let mut sim = Sim::new(bounds, Mutant::None);
    let (mut seen, mut by_name) = (HashSet::new(), HashSet::new());
    visit_all(&mut sim, |sim, _, reached| {
        for world in reached.all() {
            for n in 0..2 {
                let Some(action) = world.nodes[n].action.filter(|action| action.plan.is_none()) else { continue };
                let view = view::look(sim, world, n, action);
                let (place, why) = (sim.decided.place(&view), why(sim, world));
                if !seen.insert((place, why)) {
                    continue;
                }
                let other = mirrored(sim, world);
                let others = other.nodes[1 - n].action.map(|action| view::look(sim, &other, 1 - n, action)).unwrap();
                let plans = decided(sim, &view);
                let expected: Vec<_> = plans.iter().map(|plan| Renaming::swap().todo(plan)).collect();
                if decided(sim, &others) != expected {
                    let may_be_swapped =
                        !canonical::form(sim, &mut world.clone()).names_count && !sim.bounds.names_nodes();
                    assert!(!may_be_swapped, "{view:?} decides otherwise than {others:?}");
                    let why = why.unwrap_or_else(|| panic!("names decide in {view:?}: {plans:?}"));
                    by_name.insert((why, view.request));
                }
            }
        }
    });
    let mut by_name: Vec<_> = by_name.into_iter().collect();
    by_name.sort_by_key(|(why, request)| (*why as u8, *request as u8));
    (seen.len(), by_name)
}

/// Returns the next states that the search keeps, in their canonical form, each with the number of faults that may still happen. If
/// `mirrors` is true, returns the mirror images of these states.
fn forms(sim: &mut Sim, reached: &Reached, mirrors: bool) -> Vec<(Packed, u8)> {
    let mut forms = Vec::new();
    for (_, next) in reached.lasting() {
        let mut next = if mirrors { mirrored(sim, next) } else { *next };
        let form = (canonical::form(sim, &mut next).state, next.faults);
        if !forms.contains(&form) {
            forms.push(form);
        }
    }
    forms
}

/// Asserts that each state of a search and its mirror image lead to states that are mirror images of each other. Leaves out states in
/// which the nodes' names may decide. Returns the number of states.
fn assert_mirror_images_lead_to_the_same(bounds: Bounds) -> usize {
    let mut sim = Sim::new(bounds, Mutant::None);
    let mut count = 0;
    visit_all(&mut sim, |sim, world, reached| {
        let is_named = |sim: &mut Sim, world: &World| canonical::names_count(sim, world);
        if is_named(sim, world) || reached.names_count || reached.lasting().any(|(_, next)| is_named(sim, next)) {
            return;
        }
        count += 1;
        let other = mirrored(sim, world);
        let mut others = Reached::default();
        others.from(sim, &other);
        let (these, those) = (forms(sim, reached, true), forms(sim, &others, false));
        let is_same = these.len() == those.len() && these.iter().all(|form| those.contains(form));
        assert!(is_same, "{world:?}: {} and {} states follow", these.len(), those.len());
    });
    count
}

#[test]
fn views_and_their_mirror_images_decide_alike() {
    let (count, by_name) = assert_mirror_images_decide_alike(Bounds::of_search(1));
    assert!(count > 500, "{count} views are too few to show anything");
    assert_eq!(by_name, []);
    let blank = Bounds { blank: true, ..Bounds::of_search(0) };
    let (_, by_name) = assert_mirror_images_decide_alike(blank);
    assert_eq!(by_name, [(Why::BothBlank, Request::Start)]);
}

#[test]
fn mirror_images_lead_to_the_same() {
    let count = assert_mirror_images_lead_to_the_same(Bounds::of_search(1));
    assert!(count > 1_000, "{count} states are too few to show anything");
}

/// Asserts that the nodes' names decide one thing only: which of two forced new clusters of the same rank counts. This needs a search
/// with two faults, because one with fewer faults never has two such clusters.
#[test]
#[ignore = "ten seconds: `make sim-deep` runs it"]
fn with_two_faults_names_decide_between_forks_of_one_rank_only() {
    let (count, by_name) = assert_mirror_images_decide_alike(Bounds::of_search(2));
    assert!(count > 10_000, "{count} views are too few to show anything");
    assert_eq!(by_name, [Request::Start, Request::Monitor, Request::Notify].map(|request| (Why::EqualRank, request)));
    assert!(assert_mirror_images_lead_to_the_same(Bounds::of_search(2)) > 100_000);
}
