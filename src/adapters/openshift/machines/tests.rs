//! What holds a Machine's deletion up, against a stand-in for the API.

use serde_json::{Value, json};

use super::stand_in::StandIn;
use super::*;
use crate::adapters::openshift::kubeconfig::for_server;
use crate::adapters::openshift::machine::PATIENCE;

const NODE2: &[&str] = &["node2", "192.0.2.2"];

/// Two nodes with Machines of `api`.
fn two(api: Api, has_operator: bool) -> (StandIn, tempfile::TempDir) {
    let stand_in = StandIn::start(has_operator);
    stand_in.add(api, "node1", "192.0.2.1");
    stand_in.add(api, "node2", "192.0.2.2");
    (stand_in, tempfile::tempdir().unwrap())
}

fn read(stand_in: &StandIn, dir: &tempfile::TempDir) -> Machines {
    Machines::read(&for_server(dir, &stand_in.server), PATIENCE).unwrap()
}

#[test]
fn a_deletion_waits_until_the_hook_is_taken_off() {
    for api in [Api::Machine, Api::Cluster] {
        let (stand_in, dir) = two(api, false);
        let mut machines = read(&stand_in, &dir);
        assert!(machines.is_of_use() && !machines.has_operator);
        assert_eq!(machines.write(NODE2, None, true), Ok(Written::Yes));
        let mut machines = read(&stand_in, &dir);
        assert_eq!(machines.write(NODE2, None, true), Ok(Written::Already));
        assert!(machines.of(NODE2).unwrap().is_protected() && !machines.of(&["node1"]).unwrap().is_protected());
        stand_in.delete(api, "node2");
        for _ in 0..3 {
            stand_in.controller();
        }
        let mut machines = read(&stand_in, &dir);
        assert!(machines.of(NODE2).unwrap().is_being_deleted(), "it waits");
        assert_eq!(machines.write(NODE2, None, false), Ok(Written::Yes));
        stand_in.controller();
        assert!(stand_in.machine(api, "node2").is_none() && stand_in.machine(api, "node1").is_some());
        assert_eq!(read(&stand_in, &dir).write(NODE2, None, true), Ok(Written::NoMachine));
    }
}

#[test]
fn a_hook_that_was_taken_off_a_machine_that_is_being_deleted_is_never_put_back() {
    let (stand_in, dir) = two(Api::Cluster, false);
    read(&stand_in, &dir).write(NODE2, None, true).unwrap();
    stand_in.delete(Api::Cluster, "node2");
    // A second writer, who means it.
    stand_in.change(Api::Cluster, "node2", |machine| machine["metadata"]["annotations"] = json!({}));
    let patches = stand_in.patches();
    assert_eq!(read(&stand_in, &dir).write(NODE2, None, true), Ok(Written::BeingDeleted));
    assert_eq!(stand_in.patches(), patches);
    stand_in.controller();
    assert!(stand_in.machine(Api::Cluster, "node2").is_none());
}

#[test]
fn a_change_rests_on_one_version_and_nobodys_fight_is_endless() {
    let (stand_in, dir) = two(Api::Machine, false);
    stand_in.change(Api::Machine, "node2", |machine| {
        machine["spec"]["lifecycleHooks"]["preDrain"] = json!([{"name": "another", "owner": "somebody"}]);
    });
    let mut machines = read(&stand_in, &dir);
    stand_in.writes_before(2);
    assert_eq!(machines.write(NODE2, None, true), Ok(Written::Yes));
    assert_eq!(stand_in.patches(), 3, "two met another version");
    let hooks = |machine: Value| machine.pointer("/spec/lifecycleHooks/preDrain").unwrap().as_array().unwrap().len();
    assert_eq!(hooks(stand_in.machine(Api::Machine, "node2").unwrap()), 2, "the other hook stays");
    let mut machines = read(&stand_in, &dir);
    stand_in.fail(1, "403 Forbidden");
    assert_eq!(machines.write(NODE2, None, false), Err("the API answers 403".to_owned()));
    stand_in.writes_before(usize::MAX);
    let why = read(&stand_in, &dir).write(NODE2, None, false).unwrap_err();
    assert!(why.contains("somebody else writes"), "{why}");
    assert_eq!(stand_in.patches(), 3 + TRIES);
}

#[test]
fn a_machine_is_found_by_its_node_or_its_address_and_in_the_api_that_is_meant() {
    let (stand_in, dir) = two(Api::Machine, true);
    stand_in.add(Api::Cluster, "node2", "192.0.2.2");
    stand_in.change(Api::Machine, "node1", |machine| machine["status"]["nodeRef"] = Value::Null);
    let mut machines = read(&stand_in, &dir);
    assert!(machines.has_operator);
    assert_eq!(machines.of(&["nobody", "192.0.2.1"]).unwrap().name(), "node1-machine");
    assert!(machines.of(&["nobody"]).is_none());
    assert_eq!(machines.write(NODE2, Some(Api::Cluster), true), Ok(Written::Yes));
    let annotations = stand_in.machine(Api::Cluster, "node2").unwrap()["metadata"]["annotations"].clone();
    assert_eq!(annotations, json!({ANNOTATION: ""}));
    assert!(stand_in.machine(Api::Machine, "node2").unwrap()["spec"]["lifecycleHooks"].is_null());
}

/// An API server takes a patch that names no version for one of whatever there is.
#[test]
fn a_machine_without_a_version_is_not_written_to() {
    let metadata = json!({"namespace": "n", "name": "m", "resourceVersion": "7"});
    let mut machine = Machine { api: Api::Machine, object: json!({ "metadata": metadata }) };
    assert_eq!(machine.path().as_deref(), Some("/apis/machine.openshift.io/v1beta1/namespaces/n/machines/m"));
    machine.object["metadata"]["resourceVersion"] = Value::Null;
    assert_eq!(machine.path(), None);
}

#[test]
fn machines_that_nobody_made_into_any_are_of_no_use() {
    let (stand_in, dir) = two(Api::Machine, false);
    for node in ["node1", "node2"] {
        stand_in.change(Api::Machine, node, |machine| machine["status"]["phase"] = json!("Provisioning"));
    }
    assert!(!read(&stand_in, &dir).is_of_use());
}

/// The operator keeps its hook while the node has a member: a voter's Machine goes once somebody removed the member.
#[test]
fn the_etcd_operators_hook_goes_with_the_member() {
    let (stand_in, dir) = two(Api::Machine, true);
    stand_in.operator(&["node1", "node2"]);
    stand_in.delete(Api::Machine, "node2");
    for _ in 0..3 {
        stand_in.operator(&["node1", "node2"]);
        stand_in.controller();
    }
    let machines = read(&stand_in, &dir);
    let machine = machines.of(NODE2).unwrap();
    assert!(machine.is_being_deleted() && machine.is_protected());
    stand_in.operator(&["node1"]);
    stand_in.controller();
    assert!(read(&stand_in, &dir).of(NODE2).is_none());
}
