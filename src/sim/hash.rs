//! A hash that is fast on small states, and a set of states that keeps each once.

use std::hash::{Hash, Hasher};

/// Multiply and rotate: no defence against anybody, as nobody chooses our states.
#[derive(Clone, Copy, Debug, Default)]
pub struct Fast(u64);

impl Fast {
    fn add(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(26) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
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

/// Values in the order in which they were found, each once.
#[derive(Debug)]
pub struct Found<T> {
    pub values: Vec<T>,
    slots: Vec<u32>,
}

const FREE: u32 = u32::MAX;

impl<T: Hash + Eq + Copy> Default for Found<T> {
    fn default() -> Self {
        Self { values: Vec::new(), slots: vec![FREE; 1 << 16] }
    }
}

impl<T: Hash + Eq + Copy> Found<T> {
    /// The number of `value`, and whether it is new.
    pub fn add(&mut self, value: T) -> (u32, bool) {
        if self.values.len() * 2 > self.slots.len() {
            self.grow();
        }
        let slot = self.slot(&value);
        if self.slots[slot] != FREE {
            return (self.slots[slot], false);
        }
        let number = u32::try_from(self.values.len()).unwrap_or(FREE - 1);
        self.slots[slot] = number;
        self.values.push(value);
        (number, true)
    }

    /// The number of `value`, if it was added.
    pub fn find(&self, value: &T) -> Option<u32> {
        let number = self.slots[self.slot(value)];
        (number != FREE).then_some(number)
    }

    fn slot(&self, value: &T) -> usize {
        let mut hasher = Fast::default();
        value.hash(&mut hasher);
        let mask = self.slots.len() - 1;
        let mut slot = usize::try_from(hasher.finish()).unwrap_or_default() & mask;
        while self.slots[slot] != FREE && self.values[self.slots[slot] as usize] != *value {
            slot = (slot + 1) & mask;
        }
        slot
    }

    fn grow(&mut self) {
        self.slots = vec![FREE; self.slots.len() * 2];
        for number in 0..self.values.len() {
            let slot = self.slot(&self.values[number]);
            self.slots[slot] = u32::try_from(number).unwrap_or(FREE - 1);
        }
    }
}
