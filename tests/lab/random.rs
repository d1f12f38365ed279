//! Pseudo-random numbers that are reproducible from their seed.

use std::time::Duration;

/// The random number generator `SplitMix64` of Steele, Lea and Flood. All seeds are equally good, so a series of runs
/// can use consecutive seeds.
#[derive(Debug)]
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a random number below `limit`.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    /// Returns a random time of at most `longest`, in whole milliseconds.
    pub fn up_to(&mut self, longest: Duration) -> Duration {
        let millis = u64::try_from(longest.as_millis()).unwrap_or(u64::MAX - 1);
        Duration::from_millis(self.below(millis + 1))
    }
}
