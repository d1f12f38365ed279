//! Tests of the way from the members' answers to the facts of the rules, and to a plan.

use super::judge::{Planned, Wanted, plan};
use super::look::{self, MembersSeen, assemble};
use super::samples::{at, heard, listed, new_node, one_of_three_dead, pair, said, source, three_and_a_learner};
use crate::adapters::etcd::members::{Heard, Listed, Said};
use crate::decide::members::{Health, MachineState};
use crate::operate::health::{outlook, samples};

fn planned(wanted: &Wanted, seen: &MembersSeen) -> Planned {
    plan(wanted, seen, None).unwrap()
}

#[test]
fn a_pair_is_asked_by_its_own_rules() {
    let cluster = samples::read("healthy");
    let outlook = outlook(&cluster, "node2");
    let stop = plan(&Wanted::Stop("node2".to_owned()), &pair(), Some(&outlook)).unwrap();
    assert!(stop.allowed, "{stop:?}");
    assert_eq!((stop.after.voters(), stop.after.tolerates()), (1, 0));
    let replace = plan(&Wanted::Replace { old: "node2".to_owned(), new: None }, &pair(), Some(&outlook)).unwrap();
    assert!(replace.allowed && replace.steps.len() == 10, "{replace:?}");
    assert_eq!(replace.seconds_with_one_voter, Some(4));
    let add = planned(&Wanted::Add(new_node()), &pair());
    assert_eq!((add.allowed, add.rule), (false, Some("M1")));
    let remove = planned(&Wanted::Remove { node: "node2".to_owned(), allow_fewer: false }, &pair());
    assert_eq!(remove.rule, Some("M4"));
    let promote = planned(&Wanted::Promote("node2".to_owned()), &pair());
    assert_eq!((promote.allowed, promote.rule, promote.after.voters()), (false, Some("M7"), 2), "it votes already");
    let held = samples::read("cluster-maintenance");
    let outlook = crate::operate::health::outlook(&held, "node2");
    let refused = plan(&Wanted::Stop("node2".to_owned()), &pair(), Some(&outlook)).unwrap();
    assert_eq!((refused.allowed, refused.rule), (false, Some("M14")));
}

/// Asserts that only `decide::may_stop` judges a stop of a pair's node. If a fact is missing, the plan is marked as unknown.
#[test]
fn a_stop_in_a_pair_is_judged_by_its_own_rule() {
    use crate::decide::may_stop::{Answer, may_stop};
    for state in ["healthy", "learner", "peer-off", "peer-unclean", "cluster-maintenance", "pacemaker-hangs"] {
        let cluster = samples::read(state);
        for node in ["node1", "node2"] {
            let outlook = outlook(&cluster, node);
            let stop = plan(&Wanted::Stop(node.to_owned()), &pair(), Some(&outlook)).unwrap();
            let answer = may_stop(&outlook);
            assert_eq!(stop.allowed, answer == Answer::Yes, "{state}, {node}");
            assert_eq!(stop.is_known, !matches!(answer, Answer::Unknown(_)), "{state}, {node}");
        }
    }
}

#[test]
fn healthy_is_only_who_answers_here_with_this_leader() {
    let list = [listed(1), listed(2)];
    let of = |said: Said| {
        let answers = [heard(1, &list), (at(2), Heard::Said(Box::new(said)))];
        assemble(&source(false), &super::samples::said(1, &list), &answers).membership.members[1].health.clone()
    };
    let second = || said(2, &list);
    assert_eq!(of(second()), Health::Yes);
    let sick = [
        Said { cluster_id: 0xc2, ..second() },
        Said { member_id: 7, ..second() },
        Said { leader: None, ..second() },
        Said { leader: Some(listed(2).id), ..second() },
        Said { is_corrupt: true, ..second() },
        Said { confirmed: Err("timed out".to_owned()), ..second() },
    ];
    for said in sick {
        assert!(matches!(of(said.clone()), Health::No(_)), "{said:?}");
    }
    let unknown = assemble(&source(false), &said(1, &list), &[heard(1, &list)]);
    let silent_one = Listed { client_urls: Vec::new(), ..listed(2) };
    assert!(matches!(unknown.membership.members[1].health, Health::Unknown(_)));
    let unstarted = [listed(1), Listed { name: String::new(), is_learner: true, ..silent_one }];
    let new = assemble(&source(false), &said(1, &unstarted), &[heard(1, &unstarted)]);
    assert!(matches!(new.membership.members[1].health, Health::No(_)));
}

#[test]
fn a_plan_sees_the_alarm_that_the_command_would_meet() {
    let list = [listed(1), listed(2), listed(3)];
    let full = Said { has_no_space: true, ..said(1, &list) };
    let seen = assemble(&source(false), &full, &[heard(1, &list), heard(2, &list), heard(3, &list)]);
    let add = planned(&Wanted::Add(new_node()), &seen);
    assert_eq!((add.allowed, add.rule), (false, Some("M9")));
    assert!(add.because.is_some_and(|why| why.contains("NOSPACE")));
    assert!(add.instead.is_some_and(|way| way.contains("etcdctl alarm disarm")));
    assert!(planned(&Wanted::Stop("node2".to_owned()), &seen).allowed, "what stops takes no lock");
}

#[test]
fn a_member_is_asked_at_all_of_its_addresses() {
    let everywhere = "https://127.0.0.1:2379".to_owned();
    let list = [1, 2, 3].map(|id| {
        let own = listed(id);
        Listed { client_urls: [std::slice::from_ref(&everywhere), &own.client_urls].concat(), ..own }
    });
    let typed = [heard(1, &list)];
    let asked: Vec<String> = look::not_asked_yet(&list, &typed).into_iter().map(|endpoint| endpoint.url).collect();
    let own = |id| listed(id).client_urls[0].clone();
    assert_eq!(asked, [everywhere.clone(), own(2), own(3)], "each address once, and no member that has answered");
    // The first member answers at the address that all members advertise.
    let at_everywhere = look::not_asked_yet(&list, &typed).remove(0);
    let Heard::Said(first) = heard(1, &list).1 else { panic!("it has answered") };
    let answers = [heard(1, &list), (at_everywhere, Heard::Said(first)), heard(2, &list), heard(3, &list)];
    let seen = assemble(&source(false), &said(1, &list), &answers);
    assert!(seen.membership.members.iter().all(|member| member.health == Health::Yes), "{seen:?}");
}

#[test]
fn a_member_that_has_not_applied_the_last_change_is_seen_by_its_own_list() {
    let list = [listed(1), listed(2), listed(3)];
    let answers = [heard(1, &list), heard(2, &list[..2]), heard(3, &list)];
    let seen = assemble(&source(false), &said(1, &list), &answers);
    let knows: Vec<_> = seen.membership.members.iter().map(|member| member.knows_the_list).collect();
    assert_eq!(knows, [Some(true), Some(false), Some(true)]);
    let removed = Wanted::Remove { node: "node3".to_owned(), allow_fewer: true };
    assert_eq!(planned(&removed, &seen).rule, Some("M9"));
}

#[test]
fn a_member_is_found_by_any_of_its_names_and_another_is_told_who_there_is() {
    let seen = one_of_three_dead();
    for name in ["node3", "a000000000000003", "https://192.0.2.3:2380"] {
        let removed = Wanted::Remove { node: name.to_owned(), allow_fewer: false };
        assert!(planned(&removed, &seen).allowed, "{name}");
    }
    let unknown = plan(&Wanted::Promote("node7".to_owned()), &seen, None).unwrap_err().0;
    assert_eq!(unknown, "no member is called 'node7'; there are: node1, node2, node3");
}

/// Asserts that a Machine's deletion and its deletion hook decide whether the learner on it may be promoted. The Machines come from a
/// fake of the Kubernetes API.
#[test]
fn the_deletion_of_a_machine_is_told_and_keeps_its_learner_from_voting() {
    use crate::adapters::openshift::machines::{Api, Machines, fake_api::FakeApi};
    let (dir, fake_api) = (tempfile::tempdir().unwrap(), FakeApi::start(true));
    for id in 1..=4 {
        fake_api.add(Api::Machine, &format!("node{id}"), &format!("192.0.2.{id}"));
    }
    let kubeconfig = crate::adapters::kubernetes::kubeconfig::for_server(&dir, &fake_api.server);
    let seen = || {
        let mut seen = three_and_a_learner();
        look::of_machines(&mut seen, Machines::read(&kubeconfig, crate::adapters::openshift::machine::PATIENCE));
        for member in &mut seen.membership.members {
            (member.health, member.lag_before) = (Health::Yes, member.lag);
        }
        seen
    };
    let rule = |wanted: &Wanted| planned(wanted, &seen()).rule;
    let (promoted, learner) = (Wanted::Promote("node4".to_owned()), "node4".to_owned());
    assert_eq!(rule(&promoted), None, "no hooks are in use");
    fake_api.operator(&["node1", "node2", "node3"]);
    let because = planned(&promoted, &seen()).because.unwrap();
    assert!(because.contains("node4 has no hook"), "{because}");
    fake_api.operator(&["node1", "node2", "node3", "node4"]);
    assert_eq!(rule(&promoted), None);
    fake_api.delete(Api::Machine, "node4");
    fake_api.delete(Api::Machine, "node3");
    let because = planned(&promoted, &seen()).because.unwrap();
    assert!(because.contains("the Machine of node4 is being deleted"), "{because}");
    assert_eq!(rule(&Wanted::Remove { node: learner, allow_fewer: false }), None, "a learner goes at once");
    let seen_now = seen();
    let voter = &seen_now.membership.members[2];
    let is_protected = seen_now.details[&voter.id].is_protected;
    assert_eq!((&voter.machine, is_protected), (&MachineState::BeingDeleted, Some(true)));
    let removed = |allow_fewer| Wanted::Remove { node: "node3".to_owned(), allow_fewer };
    assert_eq!((rule(&removed(false)), rule(&removed(true))), (Some("M4"), None), "a voter goes at an operator's word");
    let nowhere = dir.path().join("none");
    let mut unknown = three_and_a_learner();
    look::of_machines(&mut unknown, Machines::read(&nowhere, crate::adapters::openshift::machine::PATIENCE));
    let machine = &unknown.membership.members[0].machine;
    assert!(matches!(machine, MachineState::Unknown(_)), "what is not known is not gone: {machine:?}");
}
