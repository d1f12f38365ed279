//! Limits on the size of an answer.

/// The greatest size of a BMC's answer in bytes. It is larger than any that the agent needs, so a larger answer is a fault.
pub const BODY_LIMIT: u64 = 1024 * 1024;
pub const HEADER_LIMIT: usize = 32 * 1024;
/// The greatest length of a BMC's text in a sentence of the agent, in characters.
pub const WORDS: usize = 300;
