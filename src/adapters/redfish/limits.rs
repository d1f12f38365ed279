//! Limits on the size of an answer.

/// The largest answer in bytes, more than any that a fence agent reads. A larger answer is a fault.
pub const BODY_LIMIT: u64 = 1024 * 1024;
pub const HEADER_LIMIT: usize = 32 * 1024;
/// The part of a service's own words that goes into a sentence, in bytes.
pub const WORDS: usize = 300;
