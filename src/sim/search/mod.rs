//! The search: every order of what can happen, or random runs.

pub mod check;
pub(in crate::sim) mod engine;
pub mod explore;
pub(in crate::sim) mod shard;

pub use engine::Limits;
