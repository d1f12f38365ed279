//! Seeded random runs, far longer than a search can be: many episodes, each from an initial state, with a fault now and
//! then. A run that breaks an invariant is shrunk to the moves that it needs.

use crate::sim::model::initial_states::Beginning;
use crate::sim::model::world::World;
use crate::sim::moves::scenario::Trace;
use crate::sim::moves::{self, Move};
use crate::sim::{Sim, Violation};

/// The number of moves in one random run. It is large enough for several recoveries, and small enough for the few member ids of the
/// model.
const EPISODE: u64 = 400;
/// The average number of moves between two faults of a random run.
const FAULT_IN: u64 = 12;

/// A generator of pseudo-random numbers. They depend only on the seed.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (word ^ (word >> 31)) % bound.max(1)
    }
}

/// Makes `steps` random moves, and ends at the first violation. Returns the number of moves, or the violation with the shortest run
/// that was found for it.
pub fn explore(sim: &mut Sim, seed: u64, steps: u64) -> Result<u64, (Violation, Trace)> {
    let mut random = Random(seed);
    let mut done = 0;
    while done < steps {
        let begin = if random.below(4) == 0 { Beginning::Blank } else { Beginning::Voters };
        let mut world = first(sim, begin);
        let mut trace = Trace {
            begin,
            vote_proxies: sim.bounds.vote_proxies,
            terms: sim.bounds.terms,
            primary: sim.bounds.primary,
            two_histories: sim.bounds.two_histories,
            lone_boot: sim.bounds.lone_boot,
            moves: Vec::new(),
        };
        for _ in 0..EPISODE {
            let mut next = Vec::new();
            let mut broken = None;
            moves::apply_all(sim, &world, |what, result| match result {
                Ok(world) => next.push((what, world)),
                Err(violation) => broken = Some((what, violation)),
            });
            done += 1;
            if let Some((what, violation)) = broken {
                trace.moves.push(what);
                return Err((violation.clone(), shrink(sim, trace, &violation)));
            }
            let wants_a_fault = random.below(FAULT_IN) == 0;
            let mut choices: Vec<_> = next.iter().filter(|(what, _)| what.is_fault() == wants_a_fault).collect();
            if choices.is_empty() {
                choices = next.iter().collect();
            }
            if choices.is_empty() {
                break;
            }
            let index = usize::try_from(random.below(choices.len() as u64)).unwrap_or_default();
            trace.moves.push(choices[index].0);
            world = choices[index].1;
        }
    }
    Ok(done)
}

fn first(sim: &mut Sim, begin: Beginning) -> World {
    World { faults: u8::MAX, ..begin.world(sim) }
}

/// Removes moves from a run one by one, as long as the run without them breaks the same invariant.
fn shrink(sim: &mut Sim, mut trace: Trace, violation: &Violation) -> Trace {
    let mut at = trace.moves.len();
    while at > 0 {
        at -= 1;
        let mut fewer = trace.moves.clone();
        fewer.remove(at);
        if let Some(moves) = breaks(sim, trace.begin, &fewer, violation) {
            trace.moves = moves;
            at = at.min(trace.moves.len());
        }
    }
    trace
}

/// Returns those of `moves` that can happen, if together they lead to the violation; `None` if they do not.
fn breaks(sim: &mut Sim, begin: Beginning, moves: &[Move], violation: &Violation) -> Option<Vec<Move>> {
    let mut world = first(sim, begin);
    let mut happened = Vec::new();
    for what in moves {
        match moves::apply(sim, &world, *what) {
            Ok(None) => {}
            Ok(Some(next)) => {
                happened.push(*what);
                world = next;
            }
            Err(found) => {
                happened.push(*what);
                return (found == *violation).then_some(happened);
            }
        }
    }
    None
}
