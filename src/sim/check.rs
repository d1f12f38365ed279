//! The exhaustive search: every order of everything that can happen, with the fewest faults first, so that what is found
//! is short.
//!
//! The search steps from one state that lasts to the next. What lies between, the effects of a round and the entries
//! that go from one etcd to the other, is gone through each time and not kept; every fault comes between any two of
//! those steps. A state that was reached with fewer faults is not looked at again with more: whatever can follow then
//! followed before.

use std::collections::HashSet;
use std::hash::BuildHasherDefault;
use std::time::Duration;

use super::canon;
use super::hash::{Fast, Found};
use super::moves::{self, Move};
use super::world::World;
use super::{Sim, Violation, roots};
use crate::clock::Deadline;

/// What a search came to.
#[derive(Debug)]
pub struct Outcome {
    pub states: usize,
    pub transitions: u64,
    pub elapsed: Duration,
    /// How many moves broke an invariant, and the first of them with the way to it.
    pub violations: u64,
    pub first_violation: Option<(Violation, Trace)>,
    /// How many states have no way back to two voters without further faults, and the way to the first of them.
    pub dead: usize,
    pub first_dead: Option<Trace>,
    /// Why the search ended early.
    pub cut_short: Option<String>,
}

/// A way through the world.
#[derive(Clone, Debug)]
pub struct Trace {
    /// Whether it begins with two blank nodes, instead of two voters that serve.
    pub from_blank: bool,
    pub moves: Vec<Move>,
}

const NO_PARENT: u32 = u32::MAX;

/// How much a search may take.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub states: usize,
    pub time: Duration,
    /// Whether it ends with the first violation.
    pub stop_at_first: bool,
}

/// What a state that lasts leads to.
#[derive(Debug, Default)]
struct Reached {
    /// Each with the way there, if it is wanted.
    states: Vec<(World, Vec<Move>)>,
    broken: Vec<(Violation, Vec<Move>)>,
    steps: u64,
}

struct Search<'a> {
    sim: &'a mut Sim,
    moves: Vec<Move>,
    found: Found<World>,
    parents: Vec<u32>,
    /// With how few faults each was reached.
    spent: Vec<u8>,
    /// Ways that need no fault: from, to.
    free: Vec<(u32, u32)>,
    transitions: u64,
    violations: u64,
    first_violation: Option<(Violation, Trace)>,
}

/// Searches everything within the bounds of `sim`.
pub fn check(sim: &mut Sim, limits: Limits) -> Outcome {
    let deadline = Deadline::after(limits.time);
    let mut search = Search::new(sim);
    let cut_short = search.run(&limits, &deadline);
    let dead = if cut_short.is_none() && search.violations == 0 { search.dead() } else { Vec::new() };
    Outcome {
        states: search.found.values.len(),
        transitions: search.transitions,
        elapsed: deadline.elapsed(),
        violations: search.violations,
        first_dead: dead.first().map(|state| search.trace(*state, Vec::new())),
        dead: dead.len(),
        first_violation: search.first_violation.take(),
        cut_short,
    }
}

impl<'a> Search<'a> {
    fn new(sim: &'a mut Sim) -> Self {
        Self {
            sim,
            moves: moves::all(),
            found: Found::default(),
            parents: Vec::new(),
            spent: Vec::new(),
            free: Vec::new(),
            transitions: 0,
            violations: 0,
            first_violation: None,
        }
    }

    fn run(&mut self, limits: &Limits, deadline: &Deadline) -> Option<String> {
        let mut layers: Vec<Vec<u32>> = vec![Vec::new(); usize::from(self.sim.bounds.faults) + 1];
        for root in beginnings(self.sim) {
            layers[0].push(self.add(root, NO_PARENT, 0).0);
        }
        for spent in 0..layers.len() {
            let mut next = 0;
            while next < layers[spent].len() {
                if self.found.values.len() > limits.states {
                    return Some(format!("more than {} states", limits.states));
                }
                if next % 1024 == 0 && deadline.has_passed() {
                    return Some(format!("more than {} s", limits.time.as_secs()));
                }
                if limits.stop_at_first && self.violations > 0 {
                    return Some("the first violation is enough".to_owned());
                }
                self.expand(layers[spent][next], spent, &mut layers);
                next += 1;
            }
            layers[spent] = Vec::new();
        }
        None
    }

    /// The number of a state, and whether it is to be looked at: it is new, or was reached with more faults only.
    fn add(&mut self, world: World, parent: u32, spent: usize) -> (u32, bool) {
        let (number, is_new) = self.found.add(World { faults: 0, ..world });
        let spent = u8::try_from(spent).unwrap_or(u8::MAX);
        if is_new {
            self.parents.push(parent);
            self.spent.push(spent);
            return (number, true);
        }
        let is_cheaper = spent < self.spent[number as usize];
        if is_cheaper {
            (self.parents[number as usize], self.spent[number as usize]) = (parent, spent);
        }
        (number, is_cheaper)
    }

    fn world(&self, state: u32) -> World {
        let spent = self.spent[state as usize];
        World { faults: self.sim.bounds.faults - spent, ..self.found.values[state as usize] }
    }

    fn expand(&mut self, from: u32, spent: usize, layers: &mut [Vec<u32>]) {
        if usize::from(self.spent[from as usize]) != spent {
            return;
        }
        let world = self.world(from);
        let reached = reach(self.sim, &self.moves, &world, false);
        self.transitions += reached.steps;
        self.violations += reached.broken.len() as u64;
        for (mut next, _) in reached.states {
            let faults = usize::from(world.faults - next.faults);
            canon::canonical(self.sim, &mut next);
            let (to, is_open) = self.add(next, from, spent + faults);
            if is_open {
                layers[spent + faults].push(to);
            }
            if faults == 0 {
                self.free.push((from, to));
            }
        }
        if self.first_violation.is_none() && !reached.broken.is_empty() {
            let again = reach(self.sim, &self.moves, &world, true).broken;
            let found = again.into_iter().min_by_key(|(_, way)| way.len());
            self.first_violation = found.map(|(violation, way)| (violation, self.trace(from, way)));
        }
    }

    /// The way to a state and on from it. What the search keeps is the form of each state; which node is which in the
    /// run that is told is found by taking every step again.
    fn trace(&mut self, to: u32, way: Vec<Move>) -> Trace {
        let mut states = vec![to];
        while let Some(parent) = states.last().map(|at| self.parents[*at as usize]).filter(|at| *at != NO_PARENT) {
            states.push(parent);
        }
        states.reverse();
        let mut trace = Trace { from_blank: states[0] != 0, moves: Vec::new() };
        let mut swapped = false;
        for pair in states.windows(2) {
            let reached = reach(self.sim, &self.moves, &self.world(pair[0]), true).states;
            for (mut next, way) in reached {
                let is_swapped = canon::canonical(self.sim, &mut next);
                if (World { faults: 0, ..next }) == self.found.values[pair[1] as usize] {
                    trace.moves.extend(way.into_iter().map(|what| if swapped { what.of_the_other() } else { what }));
                    swapped ^= is_swapped;
                    break;
                }
            }
        }
        trace.moves.extend(way.into_iter().map(|what| if swapped { what.of_the_other() } else { what }));
        trace
    }

    /// The states from which no free moves lead to a good one. Where an operator made two histories, a human has to
    /// choose between them.
    fn dead(&self) -> Vec<u32> {
        let count = self.found.values.len();
        let mut starts = vec![0_u32; count + 1];
        for (_, to) in &self.free {
            starts[*to as usize + 1] += 1;
        }
        for index in 0..count {
            starts[index + 1] += starts[index];
        }
        let mut filled = starts.clone();
        let mut before = vec![0_u32; self.free.len()];
        for (from, to) in &self.free {
            before[filled[*to as usize] as usize] = *from;
            filled[*to as usize] += 1;
        }
        let mut alive: Vec<bool> = self.found.values.iter().map(|world| roots::is_good(self.sim, world)).collect();
        let mut open: Vec<usize> = (0..count).filter(|state| alive[*state]).collect();
        while let Some(state) = open.pop() {
            for from in &before[starts[state] as usize..starts[state + 1] as usize] {
                let from = *from as usize;
                if !alive[from] {
                    alive[from] = true;
                    open.push(from);
                }
            }
        }
        let is_dead = |state: &u32| !alive[*state as usize] && !self.found.values[*state as usize].overridden;
        (0..u32::try_from(count).unwrap_or(0)).filter(is_dead).collect()
    }
}

/// How many states of `trace` last, and how many of its moves lead to one that a search within these bounds has not seen:
/// a test of the search itself.
pub fn missed(sim: &mut Sim, limits: Limits, traces: &[Trace]) -> (usize, Option<Trace>) {
    let deadline = Deadline::after(limits.time);
    let mut search = Search::new(sim);
    let _ = search.run(&limits, &deadline);
    let mut lasting = 0;
    for trace in traces {
        let root = beginnings(search.sim)[usize::from(trace.from_blank)];
        let mut world = World { faults: search.sim.bounds.faults, ..root };
        for (index, what) in trace.moves.iter().enumerate() {
            let Ok(Some(next)) = moves::apply(search.sim, &world, *what) else { continue };
            world = next;
            if moves::passing(search.sim, &world).is_some() {
                continue;
            }
            lasting += 1;
            let mut form = world;
            canon::canonical(search.sim, &mut form);
            if search.found.find(&World { faults: 0, ..form }).is_none() {
                return (lasting, Some(Trace { moves: trace.moves[..=index].to_vec(), ..trace.clone() }));
            }
        }
    }
    (lasting, None)
}

fn beginnings(sim: &mut Sim) -> Vec<World> {
    let healthy = roots::healthy(sim);
    let blank = roots::blank(sim);
    let is_blank = sim.bounds.blank;
    let all = [Some(healthy), is_blank.then_some(blank)];
    all.into_iter().flatten().collect()
}

/// Goes from a state that lasts through those that do not, to the next that last.
fn reach(sim: &mut Sim, moves: &[Move], from: &World, with_ways: bool) -> Reached {
    let mut reached = Reached::default();
    let mut seen: HashSet<World, BuildHasherDefault<Fast>> = HashSet::default();
    let mut open = vec![(*from, Vec::new())];
    while let Some((world, way)) = open.pop() {
        let mut results = Vec::new();
        moves::apply_all(sim, &world, moves, |what, result| results.push((what, result)));
        for (what, result) in results {
            reached.steps += 1;
            let mut way: Vec<Move> = if with_ways { way.clone() } else { Vec::new() };
            if with_ways {
                way.push(what);
            }
            match result {
                Err(violation) => reached.broken.push((violation, way)),
                Ok(next) if !seen.insert(next) => {}
                Ok(next) if moves::passing(sim, &next).is_some() => open.push((next, way)),
                Ok(next) => reached.states.push((next, way)),
            }
        }
    }
    reached
}
