//! Tests of the answers, in both forms.

use super::list::List;
use crate::admin::report::{Report, golden};
use crate::decide::members::{Forbidden, MachineState};
use crate::operate::members::changed::Changed;
use crate::operate::members::judge::{Planned, Wanted, plan};
use crate::operate::members::look::{Detail, MembersSeen};
use crate::operate::members::samples::{new_node, one_of_three_dead, three_and_a_learner};

fn planned(wanted: &Wanted, seen: &MembersSeen) -> Planned {
    plan(wanted, seen, None).unwrap()
}

#[test]
fn every_plan_has_its_golden() {
    let dead = one_of_three_dead();
    golden::compare("member-list", &List::of(&three_and_a_learner()));
    golden::compare("member-plan-stop", &planned(&Wanted::Stop("node2".to_owned()), &dead));
    let removed = Wanted::Remove { node: "node3".to_owned(), allow_fewer: false };
    golden::compare("member-plan-remove", &planned(&removed, &dead));
    golden::compare("member-plan-promote", &planned(&Wanted::Promote("node4".to_owned()), &three_and_a_learner()));
    let replaced = Wanted::Replace { old: "node3".to_owned(), new: Some(new_node()) };
    golden::compare("member-plan-replace", &planned(&replaced, &dead));
    golden::compare("member-plan-add", &planned(&Wanted::Add(new_node()), &dead));
}

#[test]
fn every_change_has_its_golden() {
    let changed = |wish, node: &str, made: &[&str]| Changed {
        wish,
        node: node.to_owned(),
        done: true,
        rule: None,
        because: None,
        instead: None,
        made: made.iter().map(|&what| what.to_owned()).collect(),
        new_etcd: None,
        voters: 3,
        healthy_voters: 3,
        seconds: 12,
    };
    golden::compare("member-remove", &changed("remove", "node4", &["removed node4"]));
    golden::compare("member-promote", &changed("promote", "node3", &[]));
    let new_etcd = [("ETCD_NAME", "node5".to_owned()), ("ETCD_INITIAL_CLUSTER_STATE", "existing".to_owned())];
    let added = Changed { new_etcd: Some(new_etcd.into()), ..changed("add", "node5", &["listed node5 as a learner"]) };
    golden::compare("member-add", &added.forbidden(&Forbidden::NotStarted { member: "node5".to_owned() }));
    let replaced = ["listed node5 as a learner", "promoted node5", "handed leadership over to node2", "removed node3"];
    golden::compare("member-replace", &changed("replace", "node3", &replaced));
}

/// Asserts that `member list` shows a voter with a Machine that is being deleted, and that the deletion waits for the voter.
#[test]
fn the_deletion_of_a_machine_is_shown_with_what_it_waits_for() {
    let mut seen = three_and_a_learner();
    let voter = &mut seen.membership.members[2];
    voter.machine = MachineState::BeingDeleted;
    seen.details.insert(voter.id, Detail { is_protected: Some(true), ..Detail::default() });
    let told = serde_json::to_value(List::of(&seen)).unwrap();
    let voter = &told["members"][2];
    assert_eq!((&voter["machine"], &voter["protected"]), (&"deleting".into(), &true.into()), "{voter}");
    let text = List::of(&seen).text();
    let told = "which waits for 'tandem member replace node3', or 'tandem member remove node3 --allow-fewer-voters'";
    assert!(text.contains(told), "{text}");
}
