//! Random numbers, drawn many at a time, because a system call for each number would be one for each datagram.

use std::fmt;

use ring::rand::{SecureRandom, SystemRandom};
use zeroize::Zeroize;

use crate::os::clock;

/// The number of random numbers that are drawn at once.
const MANY: usize = 64;
const SIZE: usize = size_of::<u64>();

/// Random numbers that no other node can guess. Each is used once and then wiped from memory.
pub(super) struct Draws {
    bytes: [u8; MANY * SIZE],
    /// The number of drawn numbers that are still unused.
    left: usize,
}

impl Default for Draws {
    fn default() -> Self {
        Self { bytes: [0; MANY * SIZE], left: 0 }
    }
}

impl fmt::Debug for Draws {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Draws").field("left", &self.left).finish_non_exhaustive()
    }
}

impl Draws {
    pub(super) fn next(&mut self) -> u64 {
        if self.left == 0 {
            // If the kernel has no random bytes, the time is a number that was not used before.
            if SystemRandom::new().fill(&mut self.bytes).is_err() {
                return clock::boot_nanoseconds();
            }
            self.left = MANY;
        }
        self.left -= 1;
        let (numbers, _) = self.bytes.as_chunks_mut::<SIZE>();
        let Some(bytes) = numbers.get_mut(self.left) else { return clock::boot_nanoseconds() };
        let number = u64::from_ne_bytes(*bytes);
        bytes.zeroize();
        number
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_number_comes_twice() {
        let mut draws = Draws::default();
        let numbers: BTreeSet<u64> = (0..3 * MANY).map(|_| draws.next()).collect();
        assert_eq!(numbers.len(), 3 * MANY);
        assert!(!numbers.contains(&0), "a wiped number was handed out");
        assert_eq!(draws.bytes, [0; MANY * SIZE], "a number that was handed out is kept");
    }
}
