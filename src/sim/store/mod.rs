//! How states and decisions are kept, by the million.

pub mod decided;
pub mod hash;
pub mod intern;
pub mod packed;
