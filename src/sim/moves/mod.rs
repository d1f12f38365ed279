//! The list of all moves, with a line of text for each, of which scenario files are made.

pub(in crate::sim) mod apply;
mod faults;
pub mod kinds;
mod line;
mod operators;
mod possible;
pub mod scenario;
#[cfg(test)]
mod tests;

pub(in crate::sim) use apply::apply_passing;
pub use apply::{apply, apply_all};
pub use kinds::{Move, all, is_pending};
