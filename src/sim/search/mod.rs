//! The search. The engine goes from the initial states ([`crate::sim::initial_states`]) level by level through the
//! successors ([`crate::sim::moves`]), brings each into its canonical form ([`crate::sim::reduce`]), and keeps them in
//! shards.

pub mod check;
pub(in crate::sim) mod engine;
pub mod explore;
pub(in crate::sim) mod shard;

pub use engine::Limits;
