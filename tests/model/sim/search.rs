//! The search checks itself: states that a random run reaches must be among those that it found, for each way to
//! distinguish states and each number of threads.

use std::collections::HashSet;
use std::time::Duration;

use tandem::sim::check::{Outcome, check, missed};
use tandem::sim::initial_states::Beginning;
use tandem::sim::moves::Move;
use tandem::sim::mutant::Mutant;
use tandem::sim::packed::Packed;
use tandem::sim::reduce::atomic_steps;
use tandem::sim::reduce::symmetry::canonical;
use tandem::sim::scenario::Trace;
use tandem::sim::search::Limits;
use tandem::sim::world::World;
use tandem::sim::{Bounds, Sim, agent, etcd, initial_states, moves, pacemaker};

const LIMITS: Limits = Limits { states: 4_000_000, time: Duration::from_secs(600), stop_at_first: false, threads: 1 };

/// Returns a pseudo-random number less than `below`, and advances the seed.
fn random(seed: &mut u64, below: usize) -> usize {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    usize::try_from(*seed >> 33).unwrap_or_default() % below
}

/// Returns runs of `length` random moves. Moves without a fault are preferred, so that faults come everywhere.
fn random_runs(sim: &mut Sim, count: usize, length: usize) -> Vec<Trace> {
    let mut seed = 7;
    let mut runs = Vec::new();
    for _ in 0..count {
        let mut trace = Trace { vote_proxies: true, ..Trace::of(Beginning::Voters) };
        let mut world = World { faults: sim.bounds.faults, ..initial_states::healthy(sim) };
        for _ in 0..length {
            let mut next: Vec<(Move, World)> = Vec::new();
            moves::apply_all(sim, &world, |what, result| {
                next.push((what, result.unwrap_or_else(|violation| panic!("{violation:?}"))));
            });
            let wants_a_fault = random(&mut seed, 6) == 0;
            let fitting: Vec<_> = next.iter().filter(|(what, _)| what.is_fault() == wants_a_fault).collect();
            let choices = if fitting.is_empty() { next.iter().collect() } else { fitting };
            if choices.is_empty() {
                break;
            }
            let (what, to) = choices[random(&mut seed, choices.len())];
            trace.moves.push(*what);
            world = *to;
        }
        runs.push(trace);
    }
    runs
}

fn assert_nothing_is_missed(bounds: Bounds, count: usize) {
    let mut sim = Sim::new(bounds, Mutant::None);
    let runs = random_runs(&mut sim, count, 80);
    let (lasting, first) = missed(&mut sim, LIMITS, &runs);
    assert!(first.is_none(), "the search missed what follows {first:?}");
    assert!(lasting > 10 * count, "{lasting} states are too few to show anything");
}

fn searched(bounds: Bounds, threads: usize) -> Outcome {
    check(&mut Sim::new(bounds, Mutant::None), Limits { threads, ..LIMITS })
}

/// Asserts that the dead-variable reduction lowers the number of states, and does not change the verdict.
fn assert_same_verdict(faults: u8) {
    let reduced = searched(Bounds::of_search(faults), 2);
    let whole = searched(Bounds { keeps_dead: true, ..Bounds::of_search(faults) }, 2);
    assert_eq!((reduced.violations, reduced.dead, reduced.cut_short), (0, 0, None));
    assert_eq!((whole.violations, whole.dead, whole.cut_short), (0, 0, None));
    assert!(whole.states > reduced.states);
}

#[test]
fn random_runs_stay_among_what_was_found() {
    assert_nothing_is_missed(Bounds::of_search(1), 3000);
    assert_nothing_is_missed(Bounds { disks: true, unblocks: true, ..Bounds::of_search(1) }, 3000);
}

#[test]
fn what_is_found_does_not_depend_on_the_threads() {
    let figures = |threads| {
        let outcome = searched(Bounds::of_search(1), threads);
        (outcome.states, outcome.transitions, outcome.violations, outcome.dead)
    };
    assert_eq!(figures(1), figures(2));
    assert_eq!(figures(1), figures(3));
}

#[test]
fn the_violation_that_is_told_is_the_same_in_every_run() {
    let broken = |_| {
        let mutant = Mutant::LostCountsAsDown;
        let limits = Limits { threads: 2, stop_at_first: true, ..LIMITS };
        let outcome = check(&mut Sim::new(Bounds::of_search(1), mutant), limits);
        outcome.first_violation.map(|(violation, trace)| (violation, trace.moves)).unwrap()
    };
    let first = broken(0);
    assert!((1..5).map(broken).all(|other| other == first));
}

#[test]
fn what_nothing_reads_decides_nothing() {
    assert_same_verdict(1);
}

#[test]
fn two_faults_are_survived() {
    let outcome = searched(Bounds::of_search(2), 2);
    assert_eq!((outcome.violations, outcome.dead, outcome.cut_short), (0, 0, None));
}

/// Passes every state of a search to `visit`, including those that the search only passes through.
fn visit_all(sim: &mut Sim, mut visit: impl FnMut(&mut Sim, &World)) {
    let root = World { faults: sim.bounds.faults, ..initial_states::healthy(sim) };
    let (mut seen, mut open) = (HashSet::from([root]), vec![root]);
    while let Some(world) = open.pop() {
        visit(sim, &world);
        let mut next = Vec::new();
        moves::apply_all(sim, &world, |_, result| next.extend(result));
        for mut world in next {
            if atomic_steps::passing(sim, &world).is_none() {
                canonical::canonical(sim, &mut world);
            }
            if seen.insert(world) {
                open.push(world);
            }
        }
    }
}

/// Asserts for every state of a search that the checks before a move agree with the results of the move. The checks show, for
/// example, whether an agent can act.
#[test]
fn a_state_passes_where_a_step_that_does_not_last_can_be_taken() {
    let bounds = Bounds { disks: true, unblocks: true, slow_fencing: true, ..Bounds::of_search(1) };
    let (mut passing, mut waiting) = (0, 0);
    visit_all(&mut Sim::new(bounds, Mutant::None), |sim, world| {
        let mut happens = |what| !matches!(moves::apply(sim, world, what), Ok(None));
        let acts = [0, 1].map(|n| happens(Move::Effect(n)));
        let etcds = [Move::Replicate, Move::Learn, Move::Persist(0), Move::Persist(1), Move::Leave(0), Move::Leave(1)];
        let passes = etcds.map(&mut happens).contains(&true);
        let is_busy = [Move::Replicate, Move::Learn, Move::Elect(0), Move::Elect(1), Move::Leave(0), Move::Leave(1)]
            .into_iter()
            .chain([Move::StepDown(0), Move::StepDown(1)])
            .any(&mut happens);
        let fences = [0, 1].map(|n| happens(Move::Fence(n)));
        assert_eq!([0, 1].map(|n| agent::may_act(sim, world, n)), acts, "{world:?}");
        assert_eq!(etcd::is_passing(sim, world), passes, "{world:?}");
        assert!(atomic_steps::passing(sim, world).is_some() || !(acts.contains(&true) || passes), "{world:?}");
        assert_eq!(etcd::is_busy(sim, world), is_busy, "{world:?}");
        assert_eq!([0, 1].map(|n| pacemaker::may_fence(world, n)), fences, "{world:?}");
        passing += usize::from(atomic_steps::passing(sim, world).is_some());
        waiting += (0..2).filter(|n| world.nodes[*n].action.is_some_and(|it| it.plan.is_some()) && !acts[*n]).count();
    });
    assert!(passing > 10_000 && waiting > 10, "{passing} and {waiting} are too few to show anything");
}

#[test]
fn a_packed_state_is_that_state() {
    let mut sim = Sim::new(Bounds { disks: true, unblocks: true, ..Bounds::of_search(2) }, Mutant::None);
    for run in random_runs(&mut sim, 300, 80) {
        let mut world = World { faults: 2, ..initial_states::healthy(&mut sim) };
        for what in run.moves {
            let Ok(Some(next)) = moves::apply(&mut sim, &world, what) else { continue };
            world = next;
            let mut form = world;
            let state = canonical::canonical(&mut sim, &mut form).state;
            assert_eq!(state, Packed::of(&form));
            assert_eq!(state.world(), World { faults: 0, ..form });
        }
    }
}

#[test]
#[ignore = "a minute: `make sim-deep` runs it"]
fn two_faults_hold_as_much() {
    assert_nothing_is_missed(Bounds::of_search(2), 3000);
    assert_same_verdict(2);
}

/// Asserts that a search with put-back disks and two faults finds no violation. From some of its states no way leads
/// back to two voters. In these, the leader published its position for a promotion, and lost its power before the
/// promotion.
#[test]
#[ignore = "ten minutes: `make sim-deep` runs it"]
fn two_faults_with_disks_that_are_put_back_lose_nothing() {
    let bounds = Bounds { puts_back: true, counts_forks: true, ..Bounds::of_search(2) };
    let limits = Limits { states: 100_000_000, time: Duration::from_secs(3600), stop_at_first: true, threads: 2 };
    let outcome = check(&mut Sim::new(bounds, Mutant::None), limits);
    let violation = outcome.first_violation.map(|(violation, _)| violation.0);
    assert_eq!((violation, outcome.cut_short), (None, None));
}
