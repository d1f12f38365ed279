//! What keeps the number of states down. Each reduction has a name that a textbook on model checking explains; the reason
//! why it hides nothing here, or what it gives up, stands beside its code.
//!
//! - [`atomic_steps`]: a partial-order reduction. Nothing but a fault comes between the steps that belong together.
//! - [`dead_variables`]: dead-variable reduction. What no later move reads gets one fixed value.
//! - [`symmetry`]: symmetry reduction. States that differ only in names which no rule asks for are one.
//!
//! `--fine`, `--keep-dead` and `--count-forks` each switch one off: more states, and the verdict must be the same.

pub mod atomic_steps;
pub mod dead_variables;
pub mod symmetry;
