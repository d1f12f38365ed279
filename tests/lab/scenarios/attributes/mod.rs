//! Attributes in the CIB that are outdated, or are missing although they are current.

mod erased;
mod stale;
mod stuck;

use super::table::{Scenario, scenario};

/// The scenarios of this folder, in the order in which they run.
pub(super) const SCENARIOS: &[Scenario] = &[
    scenario("stale_attributes", "attributes of another time are left by hand", stale::run),
    scenario(
        "stuck_attributes",
        "a node leaves, and Pacemaker up to 3.0.1 puts its attributes back into the CIB: nobody believes them",
        stuck::run,
    )
    .nightly(),
    scenario(
        "erased_attributes",
        "the survivor's record is gone from the CIB, as Pacemaker erases it, when its peer's power is cut: it goes on",
        erased::run,
    )
    .nightly(),
];
