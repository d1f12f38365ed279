//! The exhaustive search: every order of all moves, with the fewest faults first, so that the ways that it finds are
//! short.
//!
//! The search steps from one state that lasts to the next. In between are the states after one effect of a round, or
//! one entry that goes from one etcd to the other. The search passes through these each time and does not keep them.
//! Every fault comes between any two of those steps. A state that was reached with fewer faults is not expanded again
//! with more, because its successors are known already.

use std::time::Duration;

use super::engine::{self, Limits, Reached};
use super::shard::{About, NOWHERE, Place, Share};
use crate::os::clock::Deadline;
use crate::sim::model::etcd;
use crate::sim::model::initial_states::{self, Beginning};
use crate::sim::model::world::World;
use crate::sim::moves::kinds::KEPT;
use crate::sim::moves::scenario::Trace;
use crate::sim::moves::{self, Move};
use crate::sim::reduce::atomic_steps;
use crate::sim::reduce::symmetry::canonical;
use crate::sim::reduce::symmetry::rename::{self, Renaming};
use crate::sim::store::packed::Packed;
use crate::sim::{Sim, Violation};

/// The result of an exhaustive search of the model's states.
#[derive(Debug)]
pub struct Outcome {
    pub states: usize,
    pub transitions: u64,
    /// The set of kinds of moves that happened: see [`Move::kind`].
    pub kinds: u128,
    pub elapsed: Duration,
    /// The number of moves that broke an invariant. `first_violation` is the first broken invariant, with the run that leads to it.
    pub violations: u64,
    pub first_violation: Option<(Violation, Trace)>,
    /// The number of states from which two voters cannot come back without a further fault. `first_dead` is the run that leads to the
    /// first of these states.
    pub dead: usize,
    pub first_dead: Option<Trace>,
    /// The reason why the search ended before it had found all states; `None` if it found all.
    pub cut_short: Option<String>,
}

/// The moves from one state of the search, or from its mirror image, to the next one. States with unfinished work (see
/// [`Passing`](atomic_steps::Passing)) may be between them.
#[derive(Debug, Default)]
struct SearchStep {
    way: Vec<Move>,
    is_mirrored: bool,
    /// True if the canonical form of the next state exchanges the two nodes.
    ends_swapped: bool,
    /// True if only these two nodes can make these moves, and not the same nodes with exchanged names.
    names_count: bool,
}

/// The states that all threads of a search have found.
struct All {
    shares: Vec<Share>,
}

/// Searches all states that the moves within the bounds of `sim` can reach.
pub fn check(sim: &mut Sim, limits: Limits) -> Outcome {
    let deadline = Deadline::after(limits.time);
    let roots = beginnings(sim);
    let (shares, cut_short) = engine::search(sim, &roots, &limits, &deadline);
    let all = All { shares };
    let violations = all.shares.iter().map(|share| share.violations).sum();
    let dead = if cut_short.is_none() && violations == 0 { all.dead() } else { Vec::new() };
    let broken = all.shares.iter().filter_map(|share| share.broken).min();
    Outcome {
        states: all.shares.iter().map(|share| share.about.len()).sum(),
        transitions: all.shares.iter().map(|share| share.transitions).sum(),
        kinds: all.shares.iter().fold(0, |kinds, share| kinds | share.kinds),
        elapsed: deadline.elapsed(),
        violations,
        first_dead: dead.first().map(|state| all.trace(sim, *state, SearchStep::default())),
        dead: dead.len(),
        first_violation: broken.and_then(|(_, _, from)| all.violation(sim, from)),
        cut_short,
    }
}

impl All {
    fn share(&self, place: Place) -> (&Share, usize) {
        let count = self.shares.len();
        (&self.shares[place as usize % count], place as usize / count)
    }

    fn about(&self, place: Place) -> About {
        let (share, state) = self.share(place);
        share.about[state]
    }

    fn world(&self, sim: &Sim, place: Place) -> World {
        let (share, state) = self.share(place);
        World { faults: sim.bounds.faults - share.about[state].spent, ..share.found.values[state].world() }
    }

    fn violation(&self, sim: &mut Sim, from: Place) -> Option<(Violation, Trace)> {
        let world = self.world(sim, from);
        let mirrored = rename::renamed(sim, &world, &Renaming::swap());
        let mut reached = Reached::default();
        let images = if sim.bounds.primary.is_some() { 1 } else { 2 };
        for (from_world, is_mirrored) in [(world, false), (mirrored, true)].into_iter().take(images) {
            reached.from(sim, &from_world);
            let ways = reached.broken.iter().map(|(violation, what, at)| (violation, reached.way_over(*at, *what)));
            if let Some((violation, way)) = ways.min_by_key(|(_, way)| way.len()) {
                let last = SearchStep { way, is_mirrored, ends_swapped: false, names_count: reached.names_count };
                return Some((violation.clone(), self.trace(sim, from, last)));
            }
        }
        None
    }

    /// Returns the run that leads to a state, with the step `last` at its end.
    ///
    /// The search keeps only the canonical form of each state, in which the nodes may be exchanged. So this function takes every step
    /// again to find out which node is which. If rules distinguish the nodes by name in a step, it gives the nodes the names for the
    /// whole run that this step needs.
    fn trace(&self, sim: &mut Sim, to: Place, last: SearchStep) -> Trace {
        let mut states = vec![to];
        while let Some(parent) = states.last().map(|at| self.about(*at).parent).filter(|at| *at != NOWHERE) {
            states.push(parent);
        }
        states.reverse();
        let mut steps: Vec<SearchStep> = states
            .windows(2)
            .filter_map(|pair| Self::step(sim, &self.world(sim, pair[0]), &self.world(sim, pair[1])))
            .collect();
        steps.push(last);
        let first = self.world(sim, states[0]);
        let mut moves: Vec<(Move, bool)> = Vec::new();
        let (mut is_swapped, mut is_told_mirrored) = (false, false);
        for step in steps {
            let told = is_swapped ^ step.is_mirrored;
            moves.extend(step.way.into_iter().map(|what| (what, told)));
            is_told_mirrored = if step.names_count { told } else { is_told_mirrored };
            is_swapped = told ^ step.ends_swapped;
        }
        let name = |(what, told): (Move, bool)| if told == is_told_mirrored { what } else { what.of_the_other() };
        let is_blank = first.nodes.iter().all(|node| node.data.is_blank());
        // The third voter's promotion is not in each log yet.
        let is_promoted = first.nodes[0].data.log != first.nodes[1].data.log;
        let second_leads = is_told_mirrored ^ (etcd::leader(&first) == Some(1));
        let is_learners = sim.bounds.two_histories && first.words == 3;
        let begin = match (is_blank, etcd::have_parted(sim, &first), second_leads) {
            (false, false, false) if first.third_voter && is_promoted => Beginning::ThirdVoterPromoted,
            (false, false, true) if first.third_voter && is_promoted => Beginning::ThirdVoterPromotedSecondLeads,
            (false, false, false) if first.third_voter => Beginning::ThirdVoter,
            (false, false, true) if first.third_voter => Beginning::ThirdVoterSecondLeads,
            (false, _, false) if sim.bounds.puts_back => Beginning::Joined,
            (false, _, true) if sim.bounds.puts_back => Beginning::JoinedSecondLeads,
            (true, _, _) => Beginning::Blank,
            (false, true, _) if first.nodes[1].etcd.is_led() => Beginning::PartedServing,
            (false, true, _) => Beginning::Parted,
            (false, false, _) if is_learners => Beginning::PartedLearner,
            (false, false, false) => Beginning::Voters,
            (false, false, true) => Beginning::SecondLeads,
        };
        // A scenario begins with parameters that agree.
        let configured = (0..2).map(|n| Move::Keep(n, first.kept[n])).filter(|kept| kept.is_fault());
        Trace {
            begin,
            vote_proxies: sim.bounds.vote_proxies,
            terms: sim.bounds.terms,
            primary: sim.bounds.primary,
            two_histories: sim.bounds.two_histories,
            lone_boot: sim.bounds.lone_boot,
            moves: configured.chain(moves.into_iter().map(name)).collect(),
        }
    }

    /// Returns the shortest way from one kept state to another; `None` if no moves lead there.
    fn step(sim: &mut Sim, from: &World, to: &World) -> Option<SearchStep> {
        let mut ways = Vec::new();
        let mut reached = Reached::default();
        let mirrored = rename::renamed(sim, from, &Renaming::swap());
        let images = if sim.bounds.primary.is_some() { 1 } else { 2 };
        for (from, is_mirrored) in [(from, false), (&mirrored, true)].into_iter().take(images) {
            let is_named = canonical::names_count(sim, from);
            reached.from(sim, from);
            for (number, next) in reached.lasting() {
                let form = canonical::form(sim, &mut next.clone());
                // The search found the state with exactly this number of faults.
                if next.faults == to.faults && form.state == Packed::of(to) {
                    let names_count = is_named || form.names_count;
                    ways.push(SearchStep {
                        way: reached.way_to(number),
                        is_mirrored,
                        ends_swapped: form.is_swapped,
                        names_count,
                    });
                }
            }
        }
        ways.into_iter().min_by_key(|step| (step.is_mirrored, step.way.len()))
    }

    /// Returns the states from which no moves except faults lead to a good state. Leaves out states that need a human.
    fn dead(&self) -> Vec<Place> {
        let count = self.shares.len();
        let mut alive: Vec<Vec<bool>> =
            self.shares.iter().map(|share| share.about.iter().map(|about| about.good).collect()).collect();
        // In the reverse order of their discovery, one pass settles most states.
        let mut is_news = true;
        while std::mem::take(&mut is_news) {
            for (me, share) in self.shares.iter().enumerate() {
                for (to, from) in share.free.iter().rev() {
                    if alive[me][*to as usize] {
                        let was_alive =
                            std::mem::replace(&mut alive[*from as usize % count][*from as usize / count], true);
                        is_news |= !was_alive;
                    }
                }
            }
        }
        let is_dead =
            |place: &Place| !alive[*place as usize % count][*place as usize / count] && !self.about(*place).overridden;
        let mut dead: Vec<Place> = self.places().filter(is_dead).collect();
        // The states with the fewest faults come first, and among these the ones that were found first.
        dead.sort_by_key(|place| (self.about(*place).spent, *place));
        dead
    }

    fn places(&self) -> impl Iterator<Item = Place> {
        let count = self.shares.len();
        let share = move |(me, share): (usize, &Share)| {
            let states = share.about.len();
            (0..states).map(move |state| Place::try_from(state * count + me).unwrap_or(NOWHERE))
        };
        self.shares.iter().enumerate().flat_map(share)
    }
}

/// Replays `traces`, and checks that a search within the same bounds finds their states. This tests the search itself. Skips the states
/// that a search only passes through (see [`Passing`](atomic_steps::Passing)). Returns the number of checked states, and the run that
/// leads to the first one that the search did not find.
pub fn missed(sim: &mut Sim, limits: Limits, traces: &[Trace]) -> (usize, Option<Trace>) {
    let deadline = Deadline::after(limits.time);
    let roots = beginnings(sim);
    let (shares, _) = engine::search(sim, &roots, &limits, &deadline);
    let mut lasting = 0;
    for trace in traces {
        let mut world = World { faults: sim.bounds.faults, ..trace.begin.world(sim) };
        for (index, what) in trace.moves.iter().enumerate() {
            let Ok(Some(next)) = moves::apply(sim, &world, *what) else { continue };
            world = next;
            if atomic_steps::passing(sim, &world).is_some() {
                continue;
            }
            lasting += 1;
            // In the search, writes that both nodes hold are part of the history, even if one node loses its disk
            // later.
            canonical::absorb_writes(sim, &mut world);
            let form = canonical::form(sim, &mut world.clone());
            let share = &shares[engine::owner(form.digest, shares.len())];
            if share.found.find(&form.state, form.digest).is_none() {
                return (lasting, Some(Trace { moves: trace.moves[..=index].to_vec(), ..trace.clone() }));
            }
        }
    }
    (lasting, None)
}

fn beginnings(sim: &mut Sim) -> Vec<World> {
    let healthy = match (sim.bounds.third_voter, sim.bounds.puts_back) {
        (true, _) => initial_states::with_third_voter(sim),
        (false, true) => initial_states::joined(sim),
        (false, false) => initial_states::healthy(sim),
    };
    let blank = initial_states::blank(sim);
    let is_blank = sim.bounds.blank;
    let parted = (sim.bounds.chooses || sim.bounds.two_histories).then(|| initial_states::parted(sim));
    let learner = sim.bounds.two_histories.then(|| initial_states::parted_learner(sim));
    let serving = sim.bounds.two_histories.then(|| initial_states::parted_serving(sim));
    // The promotion is an operator's action, and counts as a fault.
    let faults = sim.bounds.faults.checked_sub(1).filter(|_| sim.bounds.third_voter);
    let promoting = faults.map(|faults| World { faults, ..initial_states::promoting_the_third_voter(sim) });
    // Without a primary the two are mirror images.
    let second = sim.bounds.primary.map(|_| rename::renamed(sim, &healthy, &Renaming::swap()));
    let all = [Some(healthy), second, is_blank.then_some(blank), parted, promoting, learner, serving];
    let configured = parted.into_iter().filter(|_| sim.bounds.two_histories).flat_map(otherwise);
    all.into_iter().flatten().chain(configured).collect()
}

/// Returns copies of `world` that differ from it in the history that the nodes' parameters keep. There is one copy for each other
/// combination on the two nodes.
fn otherwise(world: World) -> impl Iterator<Item = World> {
    let pairs = KEPT.into_iter().flat_map(|one| KEPT.map(|other| [one, other]));
    pairs.filter(move |kept| *kept != world.kept).map(move |kept| World { kept, ..world })
}
