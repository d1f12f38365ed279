//! The storage of states and decisions by the million: packed into a few words, found by their hash, and with small
//! numbers in place of large values.

pub mod decided;
pub mod hash;
pub mod intern;
pub mod packed;
