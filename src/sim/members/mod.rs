//! A model of an etcd of up to five voters. Two tools change its members by the rules of [`crate::decide::members`].
//! The search takes every order of moves of the tools and the members, with two faults of members and two kills of
//! tools. `docs/design/model.md` has more about it.

mod moves;
pub mod mutant;
mod view;
mod world;

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::BuildHasherDefault;
use std::ops::RangeInclusive;
use std::time::{Duration, Instant};

use super::store::hash::Fast;
use mutant::Mutant;
use world::{TOOLS, World};

/// The result of a search of the model of member changes.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    pub states: usize,
    pub transitions: usize,
    pub elapsed: Duration,
    /// The first broken invariant, and the events that led to it; `None` if no invariant was broken.
    pub wrong: Option<(String, Vec<String>)>,
    /// The events that lead to a state from which the replacement of a member cannot end; `None` if every replacement can end.
    pub endless: Option<Vec<String>>,
}

impl Outcome {
    /// Returns a description of the fault that the search found; `None` if it found none.
    pub fn fault(&self) -> Option<&str> {
        let endless = self.endless.is_some().then_some("a replacement that is called again does not end");
        self.wrong.as_ref().map(|(what, _)| what.as_str()).or(endless)
    }
}

/// Searches the clusters with each number of voters in `voters`. For each number, one search wants as many voters, and another one
/// wants one fewer. Two threads share the clusters.
pub fn check(voters: RangeInclusive<u8>, faults: u8, mutant: Mutant) -> Outcome {
    let began = Instant::now();
    let wanted = |count: u8| (count.saturating_sub(1).max(1)..=count).map(move |wanted| (count, wanted));
    let clusters: Vec<(u8, u8)> = voters.flat_map(wanted).collect();
    let half = |first: usize| {
        let mut found = Vec::new();
        for (at, (count, wanted)) in clusters.iter().enumerate().skip(first).step_by(2) {
            let outcome = Search::new(World::new(*count, *wanted, faults), mutant).run();
            let is_over = outcome.fault().is_some();
            found.push((at, outcome));
            if is_over {
                break;
            }
        }
        found
    };
    let mut all = std::thread::scope(|scope| {
        let other = scope.spawn(|| half(1));
        let mut all = half(0);
        all.extend(other.join().unwrap_or_else(|fault| std::panic::resume_unwind(fault)));
        all
    });
    all.sort_by_key(|(at, _)| *at);
    let mut whole = Outcome::default();
    for (_, found) in all {
        whole.states += found.states;
        whole.transitions += found.transitions;
        if whole.fault().is_none() {
            (whole.wrong, whole.endless) = (found.wrong, found.endless);
        }
    }
    Outcome { elapsed: began.elapsed(), ..whole }
}

struct Search {
    mutant: Mutant,
    numbers: HashMap<World, u32, BuildHasherDefault<Fast>>,
    worlds: Vec<World>,
    /// The number of the state from which each state was first reached.
    parents: Vec<u32>,
    /// The moves between states, as pairs (from, to). A move in which a lost member comes back is not among them, because a replacement
    /// must end without it.
    edges: Vec<(u32, u32)>,
    returns: usize,
}

impl Search {
    fn new(begin: World, mutant: Mutant) -> Self {
        Self {
            mutant,
            numbers: std::iter::once((begin, 0)).collect(),
            worlds: vec![begin],
            parents: vec![0],
            edges: Vec::new(),
            returns: 0,
        }
    }

    fn run(mut self) -> Outcome {
        let mut outcome = Outcome::default();
        let mut at = 0;
        while outcome.wrong.is_none() && at < self.worlds.len() {
            let (world, from) = (self.worlds[at], u32::try_from(at).unwrap_or(u32::MAX));
            let mutant = self.mutant;
            moves::each(&world, mutant, |what, next| match next {
                Ok(next) => self.reach(from, next.in_order(), what == moves::RETURNS),
                Err(wrong) if outcome.wrong.is_none() => {
                    outcome.wrong = Some((wrong, [self.way(from), vec![what.to_owned()]].concat()));
                }
                Err(_) => {}
            });
            at += 1;
        }
        if outcome.wrong.is_none() {
            outcome.endless = self.endless();
        }
        Outcome { states: self.worlds.len(), transitions: self.edges.len() + self.returns, ..outcome }
    }

    fn reach(&mut self, from: u32, next: World, is_return: bool) {
        let number = u32::try_from(self.worlds.len()).unwrap_or(u32::MAX);
        let to = match self.numbers.entry(next) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(place) => {
                place.insert(number);
                self.worlds.push(next);
                self.parents.push(from);
                number
            }
        };
        if is_return {
            self.returns += 1;
        } else {
            self.edges.push((from, to));
        }
    }

    /// Returns the events that lead from the initial state to the state `to`.
    fn way(&self, to: u32) -> Vec<String> {
        let mut numbers = vec![to];
        while let Some(last) = numbers.last().copied().filter(|last| *last != 0) {
            numbers.push(self.parents[last as usize]);
        }
        numbers.reverse();
        let step = |pair: &[u32]| {
            let (from, to) = (&self.worlds[pair[0] as usize], self.worlds[pair[1] as usize]);
            let mut what = String::new();
            moves::each(from, self.mutant, |told, next| {
                if what.is_empty() && next.is_ok_and(|next| next.in_order() == to) {
                    told.clone_into(&mut what);
                }
            });
            what
        };
        numbers.windows(2).map(step).collect()
    }

    /// Returns the events that lead to a state from which some replacement cannot end unless the lost member comes back; `None` if
    /// there is no such state.
    fn endless(&self) -> Option<Vec<String>> {
        let count = self.worlds.len();
        let mut sizes = vec![0_u32; count + 1];
        self.edges.iter().for_each(|(_, to)| sizes[*to as usize + 1] += 1);
        let mut begins: Vec<u32> = sizes.iter().scan(0, |sum, size| Some((*sum += size, *sum).1)).collect();
        let first = begins.clone();
        let mut before = vec![0_u32; self.edges.len()];
        for (from, to) in &self.edges {
            let place = &mut begins[*to as usize];
            before[*place as usize] = *from;
            *place += 1;
        }
        let ends = |world: &World| (0..TOOLS).all(|tool| moves::has_ended(world, tool));
        let mut reaches: Vec<bool> = self.worlds.iter().map(ends).collect();
        let mut open: Vec<usize> = (0..count).filter(|at| reaches[*at]).collect();
        while let Some(at) = open.pop() {
            for from in &before[first[at] as usize..first[at + 1] as usize] {
                let from = *from as usize;
                if !reaches[from] {
                    reaches[from] = true;
                    open.push(from);
                }
            }
        }
        let lost = reaches.iter().position(|reaches| !reaches)?;
        Some(self.way(u32::try_from(lost).unwrap_or_default()))
    }
}
