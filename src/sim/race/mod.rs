//! A model of the race of two fence agents: the real rules of [`crate::fence::race`] on two nodes, and every order of
//! their requests with two faults. See `docs/design/model.md`.

mod moves;
pub mod mutant;
mod world;

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::BuildHasherDefault;
use std::time::{Duration, Instant};

use self::moves::Course;
use super::store::hash::Fast;
use mutant::Mutant;
use world::World;

/// The options of an exhaustive search of the race between two fence agents.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The number of faults that may happen in one run.
    pub faults: u8,
    /// True if the BMCs keep a session's `Context`. By it a node recognizes mark sessions that its own earlier agents left open.
    pub context: bool,
    /// True if each BMC answers within `race_delay`. The search then asserts how often a node waits for `race_delay` in one race: at
    /// most twice, or at most four times with `learner`.
    pub timely: bool,
    /// True if the preferred node may have no vote. Its agent may find at each call that it has none. In that case the node is not
    /// preferred in this race, and waits longer than the other node.
    pub learner: bool,
    pub mutant: Mutant,
}

/// The largest number of times that a node waits for `race_delay` in one race in which no agent is killed and no message is lost.
const MOST_DELAYS: u8 = 2;
/// The largest number of times that a node waits for `race_delay` next to a preferred node without a vote. One wait of the node without
/// a vote lasts twice as long.
const MOST_DELAYS_OF_LEARNER: u8 = 4;

impl Options {
    fn most_delays(self) -> u8 {
        if self.learner { MOST_DELAYS_OF_LEARNER } else { MOST_DELAYS }
    }
}

/// The result of an exhaustive search of the race between two fence agents.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    pub states: usize,
    pub transitions: usize,
    pub elapsed: Duration,
    /// The broken invariant, with the events that led to it; `None` if no invariant was broken.
    pub wrong: Option<(String, Vec<String>)>,
}

/// Searches all orders of requests. The initial states differ in which BMCs the nodes reach, which BMCs list sessions, and which BMCs
/// answer too late.
pub fn check(options: Options) -> Outcome {
    let began = Instant::now();
    let mut search = Search::new(options);
    for reach in 0..16 {
        // A BMC is late for the node that reaches it. With two faults there are enough states without late BMCs.
        let lates = if reach == 15 && options.faults < 2 { 4 } else { 1 };
        for lists in 0..4 {
            for late in 0..lates {
                search.reach(None, World::new(reach, lists, late, options.faults), Course::Normal);
            }
        }
    }
    let wrong = search.run();
    let transitions = search.edges.len() + search.chances;
    Outcome { states: search.worlds.len(), transitions, elapsed: began.elapsed(), wrong }
}

struct Search {
    options: Options,
    numbers: HashMap<World, u32, BuildHasherDefault<Fast>>,
    worlds: Vec<World>,
    /// For each state, the index of the state from which it was first reached; `None` for an initial state.
    parents: Vec<Option<u32>>,
    /// The moves between states, as pairs (from, to), except those that may never happen (see [`Course`]).
    edges: Vec<(u32, u32)>,
    chances: usize,
}

impl Search {
    fn new(options: Options) -> Self {
        let (numbers, worlds, parents, edges) = Default::default();
        Self { options, numbers, worlds, parents, edges, chances: 0 }
    }

    fn run(&mut self) -> Option<(String, Vec<String>)> {
        let mut at = 0;
        while at < self.worlds.len() {
            let (world, from) = (self.worlds[at], u32::try_from(at).unwrap_or(u32::MAX));
            if let Some(what) = self.fault(&world) {
                return Some((what.to_owned(), self.way(from)));
            }
            let options = self.options;
            moves::each(&world, options, |course, _, next| self.reach(Some(from), next, course));
            at += 1;
        }
        let lost = self.endless()?;
        Some(("no node is ever reset".to_owned(), self.way(lost)))
    }

    fn fault(&self, world: &World) -> Option<&'static str> {
        let waits = world.nodes.iter().any(|node| node.delays > self.options.most_delays());
        match () {
            () if world.are_both_off() => Some("both nodes are off"),
            () if self.options.timely && waits => Some("a node waits for race_delay too often"),
            () => None,
        }
    }

    fn reach(&mut self, from: Option<u32>, next: World, course: Course) {
        let next = next.reduced();
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
        match (from, course) {
            (Some(from), Course::Normal) => self.edges.push((from, to)),
            _ => self.chances += 1,
        }
    }

    /// Returns the events that lead from an initial state to the state `to`.
    fn way(&self, to: u32) -> Vec<String> {
        let mut numbers = vec![to];
        while let Some(parent) = numbers.last().and_then(|last| self.parents[*last as usize]) {
            numbers.push(parent);
        }
        numbers.reverse();
        let begin = &self.worlds[numbers[0] as usize];
        let reach = begin.nodes.map(|node| node.reaches);
        let mut way = vec![format!(
            "P reaches {:?}, N reaches {:?}, lists {:?}, late {:?}",
            reach[0],
            reach[1],
            begin.bmcs.map(|bmc| bmc.habits.lists),
            begin.bmcs.map(|bmc| bmc.habits.is_late)
        )];
        for pair in numbers.windows(2) {
            let to = self.worlds[pair[1] as usize];
            let mut what = None;
            moves::each(&self.worlds[pair[0] as usize], self.options, |_, words, next| {
                if next.reduced() == to {
                    what.get_or_insert(words);
                }
            });
            way.extend(what);
        }
        way
    }

    /// Returns a state in which an agent reaches its target's BMC, and from which no normal moves lead to a reset of either node;
    /// `None` if there is no such state.
    fn endless(&self) -> Option<u32> {
        let mut before: Vec<Vec<u32>> = vec![Vec::new(); self.worlds.len()];
        self.edges.iter().for_each(|(from, to)| before[*to as usize].push(*from));
        let mut reaches: Vec<bool> = self.worlds.iter().map(World::is_decided).collect();
        let mut open: Vec<usize> = (0..reaches.len()).filter(|at| reaches[*at]).collect();
        while let Some(at) = open.pop() {
            for from in &before[at] {
                let from = *from as usize;
                if !reaches[from] {
                    reaches[from] = true;
                    open.push(from);
                }
            }
        }
        let can_end = |world: &World| (0..2).any(|node| world.nodes[node].reaches[1 - node]);
        let lost = (0..reaches.len()).find(|at| !reaches[*at] && can_end(&self.worlds[*at]))?;
        u32::try_from(lost).ok()
    }
}
