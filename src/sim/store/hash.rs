//! A hash that is fast on small states, and a set of states that keeps each once.

use std::hash::{Hash, Hasher};

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

/// An odd number with bits that look random. They are those of the golden ratio.
const ODD: u64 = 0x9e37_79b9_7f4a_7c15;

/// A hash function that multiplies and rotates. It does not resist input that was chosen by an attacker, because the states come only
/// from the search.
#[derive(Clone, Copy, Debug, Default)]
pub struct Fast(u64);

impl Fast {
    fn add(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(26) ^ word).wrapping_mul(ODD);
    }
}

impl Hasher for Fast {
    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 29)
    }

    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            self.add(u64::from_be_bytes(*word));
        }
        if !rest.is_empty() {
            self.add(rest.iter().fold(0, |word, byte| (word << 8) | u64::from(*byte)));
        }
    }

    fn write_u8(&mut self, value: u8) {
        self.add(value.into());
    }

    fn write_u16(&mut self, value: u16) {
        self.add(value.into());
    }

    fn write_u32(&mut self, value: u32) {
        self.add(value.into());
    }

    fn write_u64(&mut self, value: u64) {
        self.add(value);
    }

    fn write_usize(&mut self, value: usize) {
        self.add(value as u64);
    }

    fn write_isize(&mut self, value: isize) {
        self.add(value.cast_unsigned() as u64);
    }
}

/// Returns the hash of a value by the hash function [`Fast`].
pub fn hash(value: &impl Hash) -> u64 {
    let mut hasher = Fast::default();
    value.hash(&mut hasher);
    hasher.finish()
}

/// Returns whether two arrays of words are equal. It compares all words, which is faster here than a search for the first difference,
/// because the arrays are mostly equal.
pub fn are_equal<const WORDS: usize>(a: &[u64; WORDS], b: &[u64; WORDS]) -> bool {
    a.iter().zip(b).fold(0, |differences, (a, b)| differences | (a ^ b)) == 0
}

/// A set of values. It numbers them in the order in which they are added. The caller passes the hash of each value.
#[derive(Clone, Debug)]
pub struct Found<T> {
    pub values: Vec<T>,
    /// A number for each value, with the upper half of the value's hash in its upper half, and the value's number in its lower half.
    slots: HashTable<u64>,
}

impl<T: Eq + Copy> Default for Found<T> {
    fn default() -> Self {
        Self { values: Vec::new(), slots: HashTable::new() }
    }
}

impl<T: Eq + Copy> Found<T> {
    /// Adds `value` if it is new. Returns its number, and whether it is new.
    pub fn add(&mut self, value: T, hash: u64) -> (u32, bool) {
        let hash = spread(hash);
        let values = &self.values;
        let is_it = |slot: &u64| upper(*slot) == upper(hash) && values[number(*slot) as usize] == value;
        match self.slots.entry(folded(hash), is_it, |slot| folded(*slot)) {
            Entry::Occupied(slot) => (number(*slot.get()), false),
            Entry::Vacant(slot) => {
                let number = u32::try_from(values.len()).unwrap_or(u32::MAX - 1);
                slot.insert(upper(hash) | u64::from(number));
                self.values.push(value);
                (number, true)
            }
        }
    }

    /// Returns the number of a value with a hash that has the same upper half as `hash`; `None` if there is none.
    pub fn near(&self, hash: u64) -> Option<u32> {
        let hash = spread(hash);
        self.slots.find(folded(hash), |slot| upper(*slot) == upper(hash)).map(|slot| number(*slot))
    }

    /// Returns the number of `value`; `None` if it was not added.
    pub fn find(&self, value: &T, hash: u64) -> Option<u32> {
        let hash = spread(hash);
        let is_it = |slot: &u64| upper(*slot) == upper(hash) && self.values[number(*slot) as usize] == *value;
        self.slots.find(folded(hash), is_it).map(|slot| number(*slot))
    }

    /// Removes all values, so that numbers begin at 0 again.
    pub fn clear(&mut self) {
        self.values.clear();
        self.slots.clear();
    }
}

/// Returns a hash with evenly distributed bits. The fingerprint of a state is the smaller one of two fingerprints, so its bits are not
/// evenly distributed.
fn spread(hash: u64) -> u64 {
    hash.wrapping_mul(ODD)
}

fn upper(hash: u64) -> u64 {
    hash >> 32 << 32
}

/// Returns a hash that has the upper half of `hash` in both its halves. The hash table reads bits of both halves, but a slot has only
/// the upper half.
fn folded(hash: u64) -> u64 {
    upper(hash) | (hash >> 32)
}

fn number(slot: u64) -> u32 {
    u32::try_from(slot & u64::from(u32::MAX)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    /// Asserts that each added value is found again with its number, and that no other value is found. This also holds if two hashes
    /// have equal parts, and after the table was cleared.
    #[test]
    fn what_was_found_is_found_again_and_nothing_else() {
        let mut found = Found::default();
        for hash in [|value: u64| value, |value| value / 100, |value| value << 32, |_| 7] {
            found.clear();
            let mut known = HashMap::new();
            for value in (0..2_000_u64).map(|index| index * index % 1_009) {
                let number = u32::try_from(known.len()).unwrap();
                assert_eq!(found.find(&value, hash(value)), known.get(&value).copied());
                let expected = known.get(&value).map_or((number, true), |number| (*number, false));
                assert_eq!(found.add(value, hash(value)), expected);
                known.entry(value).or_insert(number);
                assert!(found.near(hash(value)).is_some());
            }
            assert!(known.iter().all(|(value, number)| found.values[*number as usize] == *value));
        }
    }
}
