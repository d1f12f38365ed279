//! How the number of states is kept down, by the textbook names.

pub mod atomic_steps;
pub mod dead_variables;
pub mod symmetry;
