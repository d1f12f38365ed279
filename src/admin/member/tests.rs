//! What is heard becomes the facts of the rules, and their answer a plan.

use super::changed::Changed;
use super::judge::{Planned, Wanted, plan};
use super::list::List;
use super::look::{self, Seen, assemble};
use super::source::{Pair, Source, endpoint};
use crate::adapters::etcd::client::{Credentials, Endpoint};
use crate::adapters::etcd::members::{Heard, Listed, Said};
use crate::admin::report::golden;
use crate::decide::members::{Forbidden, Health, MachineState, Newcomer};
use crate::operate::health::{outlook, samples};

fn url(id: u64, port: u16) -> String {
    format!("https://192.0.2.{id}:{port}")
}

fn at(id: u64) -> Endpoint {
    endpoint(&url(id, 2379)).unwrap()
}

pub(super) fn source(pair: bool) -> Source {
    let nodes = (1..=2).map(|id| (format!("node{id}"), url(id, 2380))).collect();
    Source {
        endpoints: vec![at(1)],
        credentials: Credentials { trusted_ca_file: "/ca".into(), cert_file: "/cert".into(), key_file: "/key".into() },
        pair: pair.then_some(Pair { nodes }),
        wanted: pair.then_some(2),
        promote_max_lag: 100,
        kubeconfig: None,
        own_lock: None,
    }
}

fn listed(id: u64) -> Listed {
    Listed {
        id: 0xa000_0000_0000_0000 + id,
        name: format!("node{id}"),
        peer_urls: vec![url(id, 2380)],
        client_urls: vec![url(id, 2379)],
        is_learner: false,
    }
}

fn said(id: u64, list: &[Listed]) -> Said {
    Said {
        cluster_id: 0xc1,
        member_id: listed(id).id,
        leader: Some(listed(1).id),
        is_learner: false,
        index: 900,
        applied: 900,
        db_bytes: 350_000_000,
        is_corrupt: false,
        confirmed: Ok(()),
        list: Some(list.to_vec()),
        change: None,
    }
}

fn heard(id: u64, list: &[Listed]) -> (Endpoint, Heard) {
    (at(id), Heard::Said(Box::new(said(id, list))))
}

fn silent(id: u64) -> (Endpoint, Heard) {
    (at(id), Heard::Nothing(format!("cannot connect to 192.0.2.{id}:2379: connection refused")))
}

/// Three voters, and a learner that lacks some entries.
pub(super) fn three_and_a_learner() -> Seen {
    let learner = Listed { is_learner: true, ..listed(4) };
    let list = [listed(1), listed(2), listed(3), learner];
    let behind = Said { is_learner: true, index: 840, applied: 840, list: None, ..said(4, &list) };
    let unknown = (at(3), Heard::Unknown("cannot read /key: permission denied".to_owned()));
    let answers = [heard(1, &list), heard(2, &list), unknown, (at(4), Heard::Said(Box::new(behind)))];
    assemble(&source(false), &said(1, &list), &answers)
}

/// Three voters, of which the last does not answer.
pub(super) fn one_of_three_dead() -> Seen {
    let list = [listed(1), listed(2), listed(3)];
    assemble(&source(false), &said(1, &list), &[heard(1, &list), heard(2, &list), silent(3)])
}

fn pair() -> Seen {
    let list = [listed(1), listed(2)];
    assemble(&source(true), &said(1, &list), &[heard(1, &list), heard(2, &list)])
}

pub(super) fn new_node() -> Newcomer {
    Newcomer { name: "node5".to_owned(), peer_url: url(5, 2380) }
}

fn planned(wanted: &Wanted, seen: &Seen) -> Planned {
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
    let held = samples::read("cluster-maintenance");
    let outlook = crate::operate::health::outlook(&held, "node2");
    let refused = plan(&Wanted::Stop("node2".to_owned()), &pair(), Some(&outlook)).unwrap();
    assert_eq!((refused.allowed, refused.rule), (false, Some("M14")));
}

/// What the two commands rest on is one function, so they say the same of each state.
#[test]
fn a_stop_is_judged_as_the_status_command_judges_it() {
    use crate::decide::may_stop::{Answer, may_stop};
    for state in ["healthy", "learner", "peer-off", "peer-unclean", "cluster-maintenance", "pacemaker-hangs"] {
        let cluster = samples::read(state);
        for node in ["node1", "node2"] {
            let outlook = outlook(&cluster, node);
            let stop = plan(&Wanted::Stop(node.to_owned()), &pair(), Some(&outlook)).unwrap();
            assert_eq!(stop.allowed, may_stop(&outlook) == Answer::Yes, "{state}, {node}");
        }
    }
}

#[test]
fn healthy_is_only_who_answers_here_with_this_leader() {
    let list = [listed(1), listed(2)];
    let of = |said: Said| {
        let answers = [heard(1, &list), (at(2), Heard::Said(Box::new(said)))];
        assemble(&source(false), &super::tests::said(1, &list), &answers).membership.members[1].health.clone()
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

/// The rules, with what a stand-in for the Kubernetes API says of Machines.
#[test]
fn the_deletion_of_a_machine_is_told_and_keeps_its_learner_from_voting() {
    use crate::adapters::openshift::machines::{Api, Machines, stand_in::StandIn};
    let (dir, stand_in) = (tempfile::tempdir().unwrap(), StandIn::start(true));
    for id in 1..=4 {
        stand_in.add(Api::Machine, &format!("node{id}"), &format!("192.0.2.{id}"));
    }
    let kubeconfig = crate::adapters::openshift::kubeconfig::for_server(&dir, &stand_in.server);
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
    stand_in.operator(&["node1", "node2", "node3"]);
    let because = planned(&promoted, &seen()).because.unwrap();
    assert!(because.contains("node4 has no hook"), "{because}");
    stand_in.operator(&["node1", "node2", "node3", "node4"]);
    assert_eq!(rule(&promoted), None);
    stand_in.delete(Api::Machine, "node4");
    stand_in.delete(Api::Machine, "node3");
    let because = planned(&promoted, &seen()).because.unwrap();
    assert!(because.contains("the Machine of node4 is being deleted"), "{because}");
    assert_eq!(rule(&Wanted::Remove { node: learner, allow_fewer: false }), None, "a learner goes at once");
    let told = serde_json::to_value(List::of(&seen())).unwrap();
    let voter = &told["members"][2];
    assert_eq!((&voter["machine"], &voter["protected"]), (&"deleting".into(), &true.into()), "{voter}");
    let text = crate::admin::report::Report::text(&List::of(&seen()));
    let told = "which waits for 'tandem member replace node3', or 'tandem member remove node3 --allow-fewer-voters'";
    assert!(text.contains(told), "{text}");
    let removed = |allow_fewer| Wanted::Remove { node: "node3".to_owned(), allow_fewer };
    assert_eq!((rule(&removed(false)), rule(&removed(true))), (Some("M4"), None), "a voter goes at an operator's word");
    let nowhere = dir.path().join("none");
    let mut unknown = three_and_a_learner();
    look::of_machines(&mut unknown, Machines::read(&nowhere, crate::adapters::openshift::machine::PATIENCE));
    let machine = &unknown.membership.members[0].machine;
    assert!(matches!(machine, MachineState::Unknown(_)), "what is not known is not gone: {machine:?}");
}
