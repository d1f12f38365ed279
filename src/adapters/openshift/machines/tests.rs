//! Tests of the hook that delays a Machine's deletion, against a fake API.

use serde_json::{Value, json};

use super::fake_api::FakeApi;
use super::*;
use crate::adapters::kubernetes::kubeconfig::for_server;
use crate::adapters::openshift::machine::PATIENCE;

const NODE2: &[&str] = &["node2", "192.0.2.2"];

/// Starts a fake API with two nodes and their Machines in `api`. Returns it with an empty directory.
fn two(api: Api, has_operator: bool) -> (FakeApi, tempfile::TempDir) {
    let fake_api = FakeApi::start(has_operator);
    fake_api.add(api, "node1", "192.0.2.1");
    fake_api.add(api, "node2", "192.0.2.2");
    (fake_api, tempfile::tempdir().unwrap())
}

fn read(fake_api: &FakeApi, dir: &tempfile::TempDir) -> Machines {
    Machines::read(&for_server(dir, &fake_api.server), PATIENCE).unwrap()
}

#[test]
fn a_deletion_waits_until_the_hook_is_taken_off() {
    for api in [Api::Machine, Api::Cluster] {
        let (fake_api, dir) = two(api, false);
        let mut machines = read(&fake_api, &dir);
        assert!(machines.is_of_use() && !machines.has_operator);
        assert_eq!(machines.write(NODE2, None, true), Ok(Written::Yes));
        let mut machines = read(&fake_api, &dir);
        assert_eq!(machines.write(NODE2, None, true), Ok(Written::Already));
        assert!(
            machines.of(NODE2).unwrap().unwrap().is_protected()
                && !machines.of(&["node1"]).unwrap().unwrap().is_protected()
        );
        fake_api.delete(api, "node2");
        for _ in 0..3 {
            fake_api.controller();
        }
        let mut machines = read(&fake_api, &dir);
        assert!(machines.of(NODE2).unwrap().unwrap().is_being_deleted(), "it waits");
        assert_eq!(machines.write(NODE2, None, false), Ok(Written::Yes));
        fake_api.controller();
        assert!(fake_api.machine(api, "node2").is_none() && fake_api.machine(api, "node1").is_some());
        assert_eq!(read(&fake_api, &dir).write(NODE2, None, true), Ok(Written::NoMachine));
    }
}

#[test]
fn a_hook_that_was_taken_off_a_machine_that_is_being_deleted_is_never_put_back() {
    let (fake_api, dir) = two(Api::Cluster, false);
    read(&fake_api, &dir).write(NODE2, None, true).unwrap();
    fake_api.delete(Api::Cluster, "node2");
    // A second writer removes the hook on purpose.
    fake_api.change(Api::Cluster, "node2", |machine| machine["metadata"]["annotations"] = json!({}));
    let patches = fake_api.patches();
    assert_eq!(read(&fake_api, &dir).write(NODE2, None, true), Ok(Written::BeingDeleted));
    assert_eq!(fake_api.patches(), patches);
    fake_api.controller();
    assert!(fake_api.machine(Api::Cluster, "node2").is_none());
}

#[test]
fn a_change_rests_on_one_version_and_nobodys_fight_is_endless() {
    let (fake_api, dir) = two(Api::Machine, false);
    fake_api.change(Api::Machine, "node2", |machine| {
        machine["spec"]["lifecycleHooks"]["preDrain"] = json!([{"name": "another", "owner": "somebody"}]);
    });
    let mut machines = read(&fake_api, &dir);
    fake_api.writes_before(2);
    assert_eq!(machines.write(NODE2, None, true), Ok(Written::Yes));
    assert_eq!(fake_api.patches(), 3, "two met another version");
    let hooks = |machine: Value| machine.pointer("/spec/lifecycleHooks/preDrain").unwrap().as_array().unwrap().len();
    assert_eq!(hooks(fake_api.machine(Api::Machine, "node2").unwrap()), 2, "the other hook stays");
    let mut machines = read(&fake_api, &dir);
    fake_api.fail(1, "403 Forbidden");
    assert_eq!(machines.write(NODE2, None, false), Err("the API answers 403".to_owned()));
    fake_api.writes_before(usize::MAX);
    let why = read(&fake_api, &dir).write(NODE2, None, false).unwrap_err();
    assert!(why.contains("another program writes"), "{why}");
    assert_eq!(fake_api.patches(), 3 + TRIES);
}

#[test]
fn a_machine_is_found_by_its_node_or_its_address_and_in_the_api_that_is_meant() {
    let (fake_api, dir) = two(Api::Machine, true);
    fake_api.add(Api::Cluster, "node2", "192.0.2.2");
    fake_api.change(Api::Machine, "node1", |machine| machine["status"]["nodeRef"] = Value::Null);
    let mut machines = read(&fake_api, &dir);
    assert!(machines.has_operator);
    assert_eq!(machines.of(&["nobody", "192.0.2.1"]).unwrap().unwrap().name(), "node1-machine");
    assert!(machines.of(&["nobody"]).unwrap().is_none());
    assert_eq!(machines.write(NODE2, Some(Api::Cluster), true), Ok(Written::Yes));
    let annotations = fake_api.machine(Api::Cluster, "node2").unwrap()["metadata"]["annotations"].clone();
    assert_eq!(annotations, json!({ANNOTATION: ""}));
    assert!(fake_api.machine(Api::Machine, "node2").unwrap()["spec"]["lifecycleHooks"].is_null());
}

/// Asserts that a Machine does not match by its address if it names another Node. An old Machine may keep an address that the node's
/// successor has now.
#[test]
fn a_machine_that_names_another_node_is_never_taken_for_its_address() {
    for api in [Api::Machine, Api::Cluster] {
        let fake_api = FakeApi::start(false);
        fake_api.add(api, "node1", "192.0.2.2");
        let dir = tempfile::tempdir().unwrap();
        let mut machines = read(&fake_api, &dir);
        assert!(machines.of(NODE2).unwrap().is_none());
        for is_to_be in [true, false] {
            assert_eq!(machines.write(NODE2, None, is_to_be), Ok(Written::NoMachine));
        }
        assert_eq!(fake_api.patches(), 0);
        let node1 = |address: &str| {
            let addresses = json!([{"type": "InternalIP", "address": address}]);
            fake_api.make("/api/v1/nodes/node1", json!({"status": {"addresses": addresses}}));
        };
        node1("192.0.2.1");
        assert!(read(&fake_api, &dir).of(NODE2).unwrap().is_none());
        // No Machine names this member as its node, but one has its address.
        node1("192.0.2.2");
        assert_eq!(read(&fake_api, &dir).of(&["m1", "192.0.2.2"]).unwrap().unwrap().name(), "node1-machine");
        node1("192.0.2.1");
        // The Machine of the node itself, which names no Node yet, is found next to it.
        fake_api.add(api, "node2", "192.0.2.2");
        fake_api.change(api, "node2", |machine| machine["status"]["nodeRef"] = Value::Null);
        assert_eq!(read(&fake_api, &dir).of(NODE2).unwrap().unwrap().name(), "node2-machine");
    }
}

/// Asserts that a Machine without a resource version is not written to. An API server applies a patch without a version to any version of
/// the object.
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
    let (fake_api, dir) = two(Api::Machine, false);
    for node in ["node1", "node2"] {
        fake_api.change(Api::Machine, node, |machine| machine["status"]["phase"] = json!("Provisioning"));
    }
    assert!(!read(&fake_api, &dir).is_of_use());
}

/// Asserts that Machines of workers are ignored. They may be deleted at any time, and no member runs on a worker.
#[test]
fn the_machines_of_workers_do_not_count() {
    for api in [Api::Machine, Api::Cluster] {
        let fake_api = FakeApi::start(false);
        fake_api.add_worker(api, "node2", "192.0.2.2");
        let dir = tempfile::tempdir().unwrap();
        let mut machines = read(&fake_api, &dir);
        assert!(!machines.is_of_use() && machines.of(NODE2).unwrap().is_none());
        assert_eq!((machines.write(NODE2, None, true), fake_api.patches()), (Ok(Written::NoMachine), 0));
        // A worker at the same address does not make two that fit.
        fake_api.add(api, "node3", "192.0.2.2");
        fake_api.change(api, "node3", |machine| machine["status"]["nodeRef"] = Value::Null);
        let mut machines = read(&fake_api, &dir);
        assert!(machines.is_of_use());
        assert_eq!(machines.of(NODE2).unwrap().unwrap().name(), "node3-machine");
        assert_eq!(machines.write(NODE2, None, true), Ok(Written::Yes));
    }
    let labels = |labels: Value| Machine { api: Api::Machine, object: json!({"metadata": {"labels": labels}}) };
    assert!(labels(json!({CONTROL_PLANE: "true"})).is_of_control_plane());
    for none in [json!({ROLE: "worker"}), json!({}), Value::Null] {
        assert!(!labels(none.clone()).is_of_control_plane(), "{none}");
    }
}

/// Asserts that the etcd operator's hook keeps the Machine as long as its node has a member, and that the Machine disappears
/// after that.
#[test]
fn the_etcd_operators_hook_goes_with_the_member() {
    let (fake_api, dir) = two(Api::Machine, true);
    fake_api.operator(&["node1", "node2"]);
    fake_api.delete(Api::Machine, "node2");
    for _ in 0..3 {
        fake_api.operator(&["node1", "node2"]);
        fake_api.controller();
    }
    let machines = read(&fake_api, &dir);
    let machine = machines.of(NODE2).unwrap().unwrap();
    assert!(machine.is_being_deleted() && machine.is_protected());
    fake_api.operator(&["node1"]);
    fake_api.controller();
    assert!(read(&fake_api, &dir).of(NODE2).unwrap().is_none());
}
