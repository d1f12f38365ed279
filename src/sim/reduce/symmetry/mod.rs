//! Symmetry reduction. Of all states that differ only in names which no rule reads (members, forks, the two nodes), the
//! search keeps one, the canonical form. Renaming makes it. Of a state and its mirror image, the one with the smaller
//! fingerprint counts.

pub mod canonical;
pub(in crate::sim) mod fingerprint;
pub mod known;
#[cfg(test)]
mod mirror;
pub mod rename;
