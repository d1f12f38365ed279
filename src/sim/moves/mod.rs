//! Everything that can happen, as a list: each move has a line of text, which is what scenario files are made of.

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
