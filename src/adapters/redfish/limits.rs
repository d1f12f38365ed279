//! How much of an answer is taken in.

/// More than any answer that a fence agent reads; a larger one is a fault.
pub const BODY_LIMIT: u64 = 1024 * 1024;
pub const HEADER_LIMIT: usize = 32 * 1024;
/// How much of a service's own words goes into a sentence.
pub const WORDS: usize = 300;
