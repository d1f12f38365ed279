//! The exhaustive search: every order of everything that can happen, breadth first, so that what is found is shortest.

use std::time::Duration;

use super::hash::Found;
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

/// Where a state was found.
#[derive(Clone, Copy, Debug)]
struct Origin {
    parent: u32,
    by: Move,
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

struct Search<'a> {
    sim: &'a mut Sim,
    moves: Vec<Move>,
    found: Found<World>,
    origins: Vec<Origin>,
    /// Moves that need no fault: from, to.
    free: Vec<(u32, u32)>,
    transitions: u64,
    violations: u64,
    first_violation: Option<(Violation, Trace)>,
}

/// Searches everything within the bounds of `sim`.
pub fn check(sim: &mut Sim, limits: Limits) -> Outcome {
    let deadline = Deadline::after(limits.time);
    let healthy = roots::healthy(sim);
    let blank = roots::blank(sim);
    let mut search = Search {
        sim,
        moves: moves::all(),
        found: Found::default(),
        origins: Vec::new(),
        free: Vec::new(),
        transitions: 0,
        violations: 0,
        first_violation: None,
    };
    let roots = [Some(healthy), search.sim.bounds.blank.then_some(blank)];
    for root in roots.into_iter().flatten() {
        search.found.add(root);
        search.origins.push(Origin { parent: NO_PARENT, by: Move::Write });
    }
    let cut_short = search.run(&limits, &deadline);
    let dead = if cut_short.is_none() && search.violations == 0 { search.dead() } else { Vec::new() };
    Outcome {
        states: search.found.values.len(),
        transitions: search.transitions,
        elapsed: deadline.elapsed(),
        violations: search.violations,
        first_dead: dead.first().map(|state| search.trace(*state, None)),
        dead: dead.len(),
        first_violation: search.first_violation,
        cut_short,
    }
}

impl Search<'_> {
    fn run(&mut self, limits: &Limits, deadline: &Deadline) -> Option<String> {
        let mut next = 0;
        while next < self.found.values.len() {
            if self.found.values.len() > limits.states {
                return Some(format!("more than {} states", limits.states));
            }
            if next % 4096 == 0 && deadline.has_passed() {
                return Some(format!("more than {} s", limits.time.as_secs()));
            }
            if limits.stop_at_first && self.violations > 0 {
                return Some("the first violation is enough".to_owned());
            }
            self.expand(u32::try_from(next).unwrap_or(NO_PARENT));
            next += 1;
        }
        None
    }

    fn expand(&mut self, from: u32) {
        let world = self.found.values[from as usize];
        let mut reached: Vec<(Move, World)> = Vec::new();
        let mut broken = Vec::new();
        moves::apply_all(self.sim, &world, &self.moves, |what, result| match result {
            Ok(next) => reached.push((what, next)),
            Err(violation) => broken.push((what, violation)),
        });
        for (what, next) in reached {
            let (to, is_new) = self.found.add(next);
            if is_new {
                self.origins.push(Origin { parent: from, by: what });
            }
            self.transitions += 1;
            if !what.is_fault() {
                self.free.push((from, to));
            }
        }
        self.violations += broken.len() as u64;
        if let (None, Some((what, violation))) = (&self.first_violation, broken.into_iter().next()) {
            self.first_violation = Some((violation, self.trace(from, Some(what))));
        }
    }

    fn trace(&self, to: u32, last: Option<Move>) -> Trace {
        let mut moves: Vec<Move> = last.into_iter().collect();
        let mut at = to;
        while self.origins[at as usize].parent != NO_PARENT {
            moves.push(self.origins[at as usize].by);
            at = self.origins[at as usize].parent;
        }
        moves.reverse();
        Trace { from_blank: at == 1 && self.sim.bounds.blank, moves }
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
