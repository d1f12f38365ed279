//! A shard: one thread's share of the states that a search finds.

use crate::sim::store::hash::Found;
use crate::sim::store::packed::Packed;

/// The number of a state in a search. It contains the index of the thread that keeps the state, and the state's index
/// there.
pub(in crate::sim) type Place = u32;
pub(in crate::sim) const NOWHERE: Place = Place::MAX;
/// The number of states that a thread looks up at once. Their accesses to memory then overlap.
const BATCH: usize = 32;

/// A found state that is on its way to the thread that will keep it.
#[derive(Clone, Copy, Debug)]
pub(in crate::sim) struct Parcel {
    pub(in crate::sim) state: Packed,
    pub(in crate::sim) digest: u64,
    pub(in crate::sim) from: Place,
    pub(in crate::sim) spent: u8,
    /// True if no fault is among the moves to this state.
    pub(in crate::sim) is_free: bool,
    pub(in crate::sim) good: bool,
    pub(in crate::sim) overridden: bool,
}

/// Facts about a found state that are stored next to it.
#[derive(Clone, Copy, Debug)]
pub(in crate::sim) struct About {
    pub(in crate::sim) parent: Place,
    /// The smallest number of faults with which the state was reached.
    pub(in crate::sim) spent: u8,
    pub(in crate::sim) good: bool,
    pub(in crate::sim) overridden: bool,
}

/// The states that one thread of a search keeps.
#[derive(Debug, Default)]
pub(in crate::sim) struct Share {
    pub(in crate::sim) found: Found<Packed>,
    pub(in crate::sim) about: Vec<About>,
    /// The steps without a fault. Each has the index of the state to which it leads, and the number of the state from which it comes.
    pub(in crate::sim) free: Vec<(u32, Place)>,
    pub(in crate::sim) transitions: u64,
    /// The set of kinds of moves that happened: see [`crate::sim::moves::Move::kind`].
    pub(in crate::sim) kinds: u128,
    pub(in crate::sim) violations: u64,
    /// The first state from which a move broke an invariant: its number of faults, its level, and its number; `None` if no invariant
    /// was broken.
    pub(in crate::sim) broken: Option<(usize, usize, Place)>,
    /// The states of this level that are still to be expanded.
    pub(in crate::sim) level: Vec<u32>,
    /// The states of later levels that are still to be expanded. The index is the number of faults with which they are reached.
    pub(in crate::sim) ahead: Vec<Vec<u32>>,
}

impl Share {
    /// Adds found states in the order of `parcels`.
    pub(in crate::sim) fn take_all(&mut self, parcels: &[Parcel]) {
        for batch in parcels.chunks(BATCH) {
            let mut known = [None; BATCH];
            for (known, parcel) in known.iter_mut().zip(batch) {
                *known = self.found.near(parcel.digest);
            }
            for (known, parcel) in known.iter_mut().zip(batch) {
                *known = known.filter(|number| self.is_known(*number, parcel));
            }
            for (known, parcel) in known.iter().zip(batch) {
                self.take(parcel, *known);
            }
        }
    }

    /// Returns whether the kept state `number` is the state in `parcel`, and was already reached with as few faults or fewer.
    fn is_known(&self, number: u32, parcel: &Parcel) -> bool {
        let number = number as usize;
        self.about[number].spent <= parcel.spent && self.found.values[number] == parcel.state
    }

    /// Adds a found state. The search expands it if it is new, or if it was reached before only with more faults.
    fn take(&mut self, parcel: &Parcel, known: Option<u32>) {
        let number = known.unwrap_or_else(|| self.add(parcel));
        if parcel.is_free {
            self.free.push((number, parcel.from));
        }
    }

    fn add(&mut self, parcel: &Parcel) -> u32 {
        let Parcel { state, digest, from: parent, spent, good, overridden, .. } = *parcel;
        let (number, is_new) = self.found.add(state, digest);
        if is_new {
            self.about.push(About { parent, spent, good, overridden });
        }
        let about = &mut self.about[number as usize];
        if is_new || spent < about.spent {
            (about.parent, about.spent) = (parent, spent);
            self.ahead[usize::from(spent)].push(number);
        }
        number
    }
}
