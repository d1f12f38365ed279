//! `tandem member` on a pair that 'tandem setup' made, with pcs and pcsd themselves: a node is replaced by another machine.

mod replaced;
mod world;

use super::table::{Needs, Scenario, scenario};

/// In the order in which they run.
pub(super) const SCENARIOS: &[Scenario] = &[
    scenario(
        "member_replaced_after_a_cut",
        "a node's power is cut for good, and one command puts a machine of another name in its place",
        replaced::after_a_cut,
    )
    .needs(Needs::Nothing)
    .leaves_a_mess()
    .nightly(),
    scenario(
        "member_replaced_planned",
        "one command takes a node that runs out, and puts a new machine of the same name and address in its place",
        replaced::planned,
    )
    .needs(Needs::Nothing)
    .leaves_a_mess(),
    scenario(
        "member_replaced_planned_other_name",
        "the same with a machine of another name, address and BMC",
        replaced::planned_other_name,
    )
    .needs(Needs::Nothing)
    .leaves_a_mess()
    .nightly(),
    scenario(
        "member_replaced_after_a_cut_same_name",
        "a node's power is cut for good, and one command puts a machine of its name in its place",
        replaced::after_a_cut_same_name,
    )
    .needs(Needs::Nothing)
    .leaves_a_mess()
    .nightly(),
];
