//! Symmetry reduction: states that differ by names only are one.

pub mod canonical;
pub(in crate::sim) mod fingerprint;
pub mod known;
#[cfg(test)]
mod mirror;
pub mod rename;
