//! `tandem member` on a pair that `tandem setup` made with pcs and pcsd: a node is replaced by another machine.

mod aborted;
mod killed;
mod one_voter;
mod openshift;
mod replaced;
mod world;

use super::needs::Needs;
use super::table::{Scenario, scenario};

/// The scenarios of this folder, in the order in which they run.
pub(super) const SCENARIOS: &[Scenario] = &[
    scenario(
        "third_voter",
        "a third etcd votes outside of the pair: with either host cut the other two go on, and no agent stops etcd",
        super::third_voter::run,
    )
    .nightly(),
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
    ).nightly()
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
        "member_replaced_further_link",
        "the same over IPv6, where Corosync has two links",
        replaced::planned_with_a_further_link,
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
    scenario(
        "member_replaced_beside_a_third_voter",
        "a node's power is cut for good beside a third voter: the dead member goes first, and another machine takes its place",
        replaced::beside_a_third_voter,
    )
    .needs(Needs::Nothing)
    .leaves_a_mess()
    .nightly(),
    scenario(
        "member_replaced_old_is_off",
        "a node is lost with its BMC, somebody has seen that it is off, and a machine of another name takes its place",
        replaced::old_is_off,
    )
    .needs(Needs::Nothing)
    .leaves_a_mess()
    .nightly(),
    scenario(
        "member_replaced_killed",
        "the command is killed after each of its steps, and goes on where it stands when it is typed again",
        killed::after_each_step,
    )
    .needs(Needs::Nothing)
    .leaves_a_mess()
    .nightly(),
    scenario(
        "member_removed_and_added",
        "one command makes one node of two, and another two of one",
        one_voter::two_one_two,
    )
    .needs(Needs::Nothing)
    .leaves_a_mess()
    .nightly(),
    scenario(
        "member_aborted",
        "of two commands at once one is refused; a replacement is taken back before and after the old node is forgotten",
        aborted::run,
    )
    .needs(Needs::Nothing)
    .leaves_a_mess()
    .nightly(),
    scenario(
        "member_replaced_openshift",
        "OpenShift's part of a replacement, against a stand-in for its API; the command is killed after each of its steps",
        openshift::replaced_after_a_cut,
    )
    .needs(Needs::NoEtcd)
    .leaves_a_mess()
    .nightly(),
    scenario(
        "member_replaced_openshift_planned",
        "the same of a node that still runs",
        openshift::replaced_planned,
    )
    .needs(Needs::NoEtcd)
    .leaves_a_mess()
    .nightly(),
    scenario(
        "member_removed_openshift",
        "OpenShift deletes the Machine of a voter: that waits, and is told, until 'tandem member remove' takes the member out",
        openshift::removed,
    )
    .needs(Needs::NoEtcd)
    .leaves_a_mess()
    .nightly(),
];
