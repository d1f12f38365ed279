//! The reductions that keep the number of states down. A textbook on model checking explains each by its name. The
//! reason why it hides nothing here, or the price, is next to its code.
//!
//! - [`atomic_steps`]: a partial-order reduction. Only faults come between the steps that belong together.
//! - [`dead_variables`]: dead-variable reduction. A part that no later move reads gets one fixed value.
//! - [`symmetry`]: symmetry reduction. States that differ only in names which no rule reads are one.
//!
//! `--fine`, `--keep-dead` and `--count-forks` each switch one off: more states, and the verdict must be the same.

pub mod atomic_steps;
pub mod dead_variables;
pub mod symmetry;
