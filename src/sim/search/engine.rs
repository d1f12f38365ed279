//! The search itself. Each thread owns a share of the states, chosen by a digest of the state, and all go through them
//! level by level together. A thread hands a state that belongs to another thread over to it. After every few thousand
//! states all threads wait for each other, and take what they were handed in a fixed order. So every run finds the same
//! states in the same way, whichever thread is faster.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Barrier, Mutex, PoisonError};
use std::time::Duration;

use super::shard::{NOWHERE, Parcel, Place, Share};
use crate::os::clock::Deadline;
use crate::sim::model::initial_states;
use crate::sim::model::world::World;
use crate::sim::moves::{self, Move};
use crate::sim::reduce::atomic_steps::{Passing, passing};
use crate::sim::reduce::symmetry::canonical;
use crate::sim::reduce::symmetry::rename::{self, Renaming};
use crate::sim::store::hash::{self, Found};
use crate::sim::store::packed::Packed;
use crate::sim::{Sim, Violation};

/// The number of states that a thread expands before all threads exchange the states that they found.
const TURN: usize = 4096;
/// The number of states for itself that a thread collects before it adds them to its share.
const ENOUGH: usize = 256;

/// The limits at which a search ends early, and the number of its threads.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub states: usize,
    pub time: Duration,
    /// True if the search ends at the first violation of an invariant.
    pub stop_at_first: bool,
    /// The number of threads of the search. The result does not depend on it.
    pub threads: usize,
}

/// The states that follow from one state of the search. The search keeps those without unfinished work (see [`Passing`]), and only
/// passes through the others.
#[derive(Debug, Default)]
pub(in crate::sim) struct Reached {
    /// All states that were reached.
    all: Found<World>,
    /// For each reached state, the last move that led to it, and the number of the state from which this move began.
    steps_to: Vec<(Move, u32)>,
    /// The numbers of the reached states that the search keeps.
    lasting: Vec<u32>,
    /// True if there is a reached state in which rules can distinguish the nodes by name.
    pub(in crate::sim) names_count: bool,
    /// The violations. Each has the move that broke an invariant, and the number of the state from which this move began.
    pub(in crate::sim) broken: Vec<(Violation, Move, u32)>,
    /// The number of moves that were made.
    pub(in crate::sim) steps: u64,
    /// The set of kinds of the moves that were made: see [`Move::kind`].
    kinds: u128,
    /// The reached states that are still to be expanded, each with its unfinished work.
    open: Vec<(u32, Option<Passing>)>,
}

/// The number of the state from which the moves begin. No reached state has this number.
const BEGINNING: u32 = u32::MAX;

impl Reached {
    /// Finds the next states after `from` that the search keeps. These are the states without unfinished work (see [`Passing`]). The
    /// search only passes through states with unfinished work.
    pub(in crate::sim) fn from(&mut self, sim: &mut Sim, from: &World) {
        self.clear();
        self.go_on(sim, from, (BEGINNING, passing(sim, from)));
        while let Some(at) = self.open.pop() {
            let world = self.all.values[at.0 as usize];
            self.go_on(sim, &world, at);
        }
    }

    fn clear(&mut self) {
        self.all.clear();
        self.steps_to.clear();
        self.lasting.clear();
        self.names_count = false;
        self.broken.clear();
        self.steps = 0;
    }

    fn go_on(&mut self, sim: &mut Sim, world: &World, (at, passing): (u32, Option<Passing>)) {
        moves::apply_passing(sim, world, passing, |sim, what, result| {
            self.steps += 1;
            self.kinds |= 1 << what.kind();
            match result {
                Err(violation) => self.broken.push((violation, what, at)),
                Ok(next) => self.add(sim, next, (what, at)),
            }
        });
    }

    fn add(&mut self, sim: &mut Sim, next: &World, step: (Move, u32)) {
        let (number, is_new) = self.all.add(*next, hash::hash(next));
        if !is_new {
            return;
        }
        self.steps_to.push(step);
        // Only an effect makes a fork.
        self.names_count |= matches!(step.0, Move::Effect(_) | Move::GiveUp(_)) && canonical::names_count(sim, next);
        match passing(sim, next) {
            None => self.lasting.push(number),
            passing => self.open.push((number, passing)),
        }
    }

    /// Returns the reached states that the search keeps, with their numbers.
    pub(in crate::sim) fn lasting(&self) -> impl Iterator<Item = (u32, &World)> {
        self.lasting.iter().map(|number| (*number, &self.all.values[*number as usize]))
    }

    /// Returns all reached states, including those that the search only passes through.
    #[cfg(test)]
    pub(in crate::sim) fn all(&self) -> &[World] {
        &self.all.values
    }

    /// Returns the moves that lead to the reached state `number`.
    pub(in crate::sim) fn way_to(&self, number: u32) -> Vec<Move> {
        let mut way = Vec::new();
        let mut at = number;
        while let Some((what, from)) = self.steps_to.get(at as usize) {
            way.push(*what);
            at = *from;
        }
        way.reverse();
        way
    }

    /// Returns the moves that lead to the reached state `number`, and `what` after them.
    pub(in crate::sim) fn way_over(&self, number: u32, what: Move) -> Vec<Move> {
        let mut way = self.way_to(number);
        way.push(what);
        way
    }
}

/// The values that the threads of a search share.
struct Meeting<'a> {
    barrier: Barrier,
    /// The states that threads hand over to each other. The first index is the thread that hands them over, and the second index is the
    /// thread that gets them.
    mail: Vec<Vec<Mutex<Vec<Parcel>>>>,
    states: Vec<AtomicUsize>,
    has_more: Vec<AtomicBool>,
    is_broken: AtomicBool,
    is_late: AtomicBool,
    limits: &'a Limits,
    deadline: &'a Deadline,
}

/// Searches from the states `roots` within the bounds of `sim`, on as many threads as `limits` has. Returns the states that each thread
/// keeps. Also returns the reason if the search ended early.
pub(in crate::sim) fn search(
    sim: &mut Sim,
    roots: &[World],
    limits: &Limits,
    deadline: &Deadline,
) -> (Vec<Share>, Option<String>) {
    let count = limits.threads.max(1);
    let meeting = Meeting {
        barrier: Barrier::new(count),
        mail: (0..count).map(|_| (0..count).map(|_| Mutex::default()).collect()).collect(),
        states: (0..count).map(|_| AtomicUsize::new(0)).collect(),
        has_more: (0..count).map(|_| AtomicBool::new(false)).collect(),
        is_broken: AtomicBool::new(false),
        is_late: AtomicBool::new(false),
        limits,
        deadline,
    };
    // Before the workers are made, because each gets a copy of the tables of values.
    let roots: Vec<(World, u64)> = roots
        .iter()
        .map(|root| {
            let mut root = *root;
            let digest = canonical::canonical(sim, &mut root).digest;
            (root, digest)
        })
        .collect();
    let mut workers: Vec<Worker> = (0..count).map(|me| Worker::new(sim.clone(), me, &meeting)).collect();
    for (root, digest) in roots {
        workers[owner(digest, count)].begin(&root, digest);
    }
    let mut ends: Vec<(Share, Option<String>)> = if count == 1 {
        workers.into_iter().map(Worker::run).collect()
    } else {
        std::thread::scope(|scope| {
            let threads: Vec<_> = workers.into_iter().map(|worker| scope.spawn(move || worker.run())).collect();
            threads.into_iter().filter_map(|thread| thread.join().ok()).collect()
        })
    };
    sim.catch_up();
    let cut_short = ends.first_mut().and_then(|(_, cut_short)| cut_short.take());
    (ends.into_iter().map(|(share, _)| share).collect(), cut_short)
}

/// Returns the index of the thread that keeps a state, from the fingerprint of its canonical form.
pub(in crate::sim) fn owner(digest: u64, count: usize) -> usize {
    usize::try_from(digest >> 32).unwrap_or_default() % count
}

struct Worker<'a> {
    sim: Sim,
    me: usize,
    reached: Reached,
    /// The states that this thread has found and not yet added or handed over. The index is the thread that is to keep them.
    found: Vec<Vec<Parcel>>,
    share: Share,
    meeting: &'a Meeting<'a>,
}

impl<'a> Worker<'a> {
    fn new(sim: Sim, me: usize, meeting: &'a Meeting<'a>) -> Self {
        let ahead = vec![Vec::new(); usize::from(sim.bounds.faults) + 1];
        let share = Share { ahead, ..Share::default() };
        let found = vec![Vec::new(); meeting.states.len()];
        Self { sim, me, reached: Reached::default(), found, share, meeting }
    }

    fn count(&self) -> usize {
        self.meeting.states.len()
    }

    fn begin(&mut self, root: &World, digest: u64) {
        let (state, good, overridden) = (
            Packed::of(root),
            initial_states::is_good(&self.sim, root),
            initial_states::needs_a_human(&self.sim, root),
        );
        let spent = self.sim.bounds.faults - root.faults;
        self.share.take_all(&[Parcel { state, digest, from: NOWHERE, spent, is_free: false, good, overridden }]);
    }

    /// Runs this thread's part of the search. It first expands the states that are reached with fewer faults. Among these, it first
    /// expands those that are reached in fewer steps.
    fn run(mut self) -> (Share, Option<String>) {
        for spent in 0..self.share.ahead.len() {
            for depth in 0.. {
                self.share.level = std::mem::take(&mut self.share.ahead[spent]);
                if let Some(why) = self.go_through_level(spent, depth) {
                    return (self.share, Some(why));
                }
                let more = !self.share.ahead[spent].is_empty();
                if !self.agree(more) {
                    break;
                }
            }
        }
        (self.share, None)
    }

    /// Expands the states of one level. Returns the reason if the search ends there; `None` if it continues.
    fn go_through_level(&mut self, spent: usize, depth: usize) -> Option<String> {
        let level = std::mem::take(&mut self.share.level);
        let mut turns = level.chunks(TURN);
        loop {
            let turn = turns.next().unwrap_or_default();
            for state in turn {
                self.expand(*state, spent, depth);
            }
            if self.me == 0 && self.meeting.deadline.has_passed() {
                self.meeting.is_late.store(true, Ordering::SeqCst);
            }
            self.hand_over();
            let more = self.agree(turns.len() > 0);
            self.collect();
            if let Some(why) = self.cut_short() {
                return Some(why);
            }
            if !more {
                return None;
            }
        }
    }

    /// Returns whether any thread has more work (`more`). The result is the same on all threads.
    fn agree(&self, more: bool) -> bool {
        self.meeting.has_more[self.me].store(more, Ordering::SeqCst);
        self.meeting.barrier.wait();
        let any = self.meeting.has_more.iter().any(|more| more.load(Ordering::SeqCst));
        self.meeting.barrier.wait();
        any
    }

    /// Adds the found states that this thread keeps, and hands each other one over to the thread that keeps it.
    fn hand_over(&mut self) {
        self.take_own(0);
        for (taker, parcels) in self.found.iter_mut().enumerate() {
            std::mem::swap(parcels, &mut lock(&self.meeting.mail[self.me][taker]));
        }
    }

    /// Adds the found states that this thread keeps, if there are `enough` or more.
    fn take_own(&mut self, enough: usize) {
        let own = &mut self.found[self.me];
        if own.len() >= enough {
            self.share.take_all(own);
            own.clear();
        }
    }

    /// Adds the states that other threads have handed over to this one. Returns only once all threads have done so.
    fn collect(&mut self) {
        self.sim.catch_up();
        for giver in 0..self.count() {
            let mut parcels = lock(&self.meeting.mail[giver][self.me]);
            self.share.take_all(&parcels);
            parcels.clear();
        }
        self.meeting.states[self.me].store(self.share.found.values.len(), Ordering::SeqCst);
        self.meeting.barrier.wait();
    }

    fn cut_short(&self) -> Option<String> {
        let limits = self.meeting.limits;
        let states: usize = self.meeting.states.iter().map(|count| count.load(Ordering::SeqCst)).sum();
        if states > limits.states {
            return Some(format!("more than {} states", limits.states));
        }
        if limits.stop_at_first && self.meeting.is_broken.load(Ordering::SeqCst) {
            return Some("the first violation is enough".to_owned());
        }
        let is_late = self.meeting.is_late.load(Ordering::SeqCst);
        is_late.then(|| format!("more than {} s", limits.time.as_secs()))
    }

    fn expand(&mut self, state: u32, spent: usize, depth: usize) {
        let about = self.share.about[state as usize];
        if usize::from(about.spent) != spent {
            return;
        }
        let faults = self.sim.bounds.faults - about.spent;
        let world = World { faults, ..self.share.found.values[state as usize].world() };
        let from = self.place(state);
        let names_count = self.go_on_from(&world, about.spent, from, depth);
        // A state represents its mirror image, too. If rules read names, both are expanded.
        if names_count && !canonical::names_count(&mut self.sim, &world) {
            let mirrored = rename::renamed(&mut self.sim, &world, &Renaming::swap());
            self.go_on_from(&mirrored, about.spent, from, depth);
        }
        self.take_own(ENOUGH);
    }

    /// Adds the successors of `world`, which is the state at `from` or its mirror image. Returns whether there is a successor in which
    /// rules can distinguish the nodes by name.
    fn go_on_from(&mut self, world: &World, spent: u8, from: Place, depth: usize) -> bool {
        let mut reached = std::mem::take(&mut self.reached);
        reached.from(&mut self.sim, world);
        self.share.transitions += reached.steps;
        self.share.kinds |= reached.kinds;
        self.share.violations += reached.broken.len() as u64;
        if !reached.broken.is_empty() {
            self.share.broken.get_or_insert((usize::from(spent), depth, from));
            self.meeting.is_broken.store(true, Ordering::SeqCst);
        }
        let mut names_count = reached.names_count;
        for (_, next) in reached.lasting() {
            let mut next = *next;
            let cost = world.faults - next.faults;
            let form = canonical::form(&mut self.sim, &mut next);
            names_count |= form.names_count;
            let parcel = Parcel {
                state: form.state,
                digest: form.digest,
                from,
                spent: spent + cost,
                // The etcds' network may never be repaired.
                is_free: cost == 0 && (next.etcd_parted || !world.etcd_parted),
                good: initial_states::is_good(&self.sim, &next),
                overridden: initial_states::needs_a_human(&self.sim, &next),
            };
            let owner = owner(form.digest, self.count());
            self.found[owner].push(parcel);
        }
        self.reached = reached;
        names_count && !self.sim.bounds.names_nodes()
    }

    fn place(&self, state: u32) -> Place {
        let count = Place::try_from(self.count()).unwrap_or(1);
        state * count + Place::try_from(self.me).unwrap_or_default()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
