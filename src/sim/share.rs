//! One thread's share of the states that a search finds.

use super::hash::Found;
use super::packed::Packed;

/// A state's number: which thread owns it, and where it is there.
pub(super) type Place = u32;
pub(super) const NOWHERE: Place = Place::MAX;
/// How many states are looked up at once: each of them waits for memory, and so they wait together.
const BATCH: usize = 32;

/// A state that one thread hands to another.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parcel {
    pub(super) state: Packed,
    pub(super) digest: u64,
    pub(super) from: Place,
    pub(super) spent: u8,
    /// Whether the way there needs no fault.
    pub(super) is_free: bool,
    pub(super) good: bool,
    pub(super) overridden: bool,
}

/// What is known of a state beside itself.
#[derive(Clone, Copy, Debug)]
pub(super) struct About {
    pub(super) parent: Place,
    /// With how few faults it was reached.
    pub(super) spent: u8,
    pub(super) good: bool,
    pub(super) overridden: bool,
}

/// One thread's share.
#[derive(Debug, Default)]
pub(super) struct Share {
    pub(super) found: Found<Packed>,
    pub(super) about: Vec<About>,
    /// Ways that need no fault, by where they lead: the state here, and where the way comes from.
    pub(super) free: Vec<(u32, Place)>,
    pub(super) transitions: u64,
    /// Which kinds of moves there were: see [`super::moves::Move::kind`].
    pub(super) kinds: u64,
    pub(super) violations: u64,
    /// The first state from which a violation comes: its faults, its level, and where it is.
    pub(super) broken: Option<(usize, usize, Place)>,
    /// Where the search goes on: this level, and what each number of faults leads to.
    pub(super) level: Vec<u32>,
    pub(super) ahead: Vec<Vec<u32>>,
}

impl Share {
    /// Takes in what was found, in its order.
    pub(super) fn take_all(&mut self, parcels: &[Parcel]) {
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

    /// Whether `number` is the state in `parcel`, and was reached with as few faults.
    fn is_known(&self, number: u32, parcel: &Parcel) -> bool {
        let number = number as usize;
        self.about[number].spent <= parcel.spent && self.found.values[number] == parcel.state
    }

    /// A state is to be looked at where it is new, or was reached with more faults only.
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
