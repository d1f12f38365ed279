use serde_json::json;

use super::*;
use crate::adapters::kubernetes::kubeconfig::for_server;
use crate::adapters::openshift::machines::Api;
use crate::adapters::openshift::machines::fake_api::FakeApi;

const PATIENCE: Duration = Duration::from_secs(5);
const NAMESPACE: &str = "namespaces/openshift-workload-availability";

/// Starts a fake API with two etcd nodes and a worker.
fn api() -> FakeApi {
    let api = FakeApi::start(true);
    for (node, address) in [("node1", "192.0.2.1"), ("node2", "192.0.2.2"), ("worker1", "192.0.2.9")] {
        api.add_node(node, address);
        let role = if node == "worker1" { "worker" } else { "master" };
        api.put(&format!("/api/v1/nodes/{node}"), |object| {
            object["metadata"]["labels"] = json!({ format!("node-role.kubernetes.io/{role}"): "", "name": node });
        });
        api.change(Api::Machine, node, |object| {
            object["metadata"]["labels"] = json!({ "machine.openshift.io/cluster-api-machine-role": role });
        });
    }
    api
}

fn found(api: &FakeApi) -> Fact<Vec<Remediation>> {
    let dir = tempfile::tempdir().unwrap();
    of(&for_server(&dir, &api.server), &["node1".to_owned(), "node2".to_owned()], PATIENCE)
}

/// Adds `object` to the fake API, in a namespace if its kind has one.
fn make(api: &FakeApi, list: &str, name: &str, object: Value) {
    let (group, kind) = list.rsplit_once('/').unwrap();
    let path =
        if list == NODE_CHECKS { format!("{list}/{name}") } else { format!("{group}/{NAMESPACE}/{kind}/{name}") };
    api.make(&path, object);
}

fn known(api: &FakeApi) -> Vec<(Kind, String, Vec<String>, bool)> {
    match found(api) {
        Fact::Known(found) => found.into_iter().map(|one| (one.kind, one.name, one.nodes, one.is_paused)).collect(),
        other => panic!("{other:?}"),
    }
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[test]
fn without_openshift_or_its_answer_nothing_is_known_to_be_there() {
    assert!(of(Path::new("/nonexistent/kubeconfig"), &[], PATIENCE).is_absent());
    let api = api();
    assert_eq!(known(&api), [], "an API without these operators has none");
    api.fail(1, "403 Forbidden");
    assert_eq!(found(&api), Fact::Unknown("the API answers 403".to_owned()));
}

#[test]
fn a_check_counts_where_it_selects_a_node_of_the_pair_or_its_machine() {
    let api = api();
    let selects = |key: &str| json!({"spec": {"selector": {"matchExpressions": [{"key": key, "operator": "Exists"}]}}});
    make(&api, NODE_CHECKS, "masters", selects("node-role.kubernetes.io/master"));
    make(&api, NODE_CHECKS, "workers", selects("node-role.kubernetes.io/worker"));
    make(&api, NODE_CHECKS, "one", json!({"spec": {"selector": {"matchLabels": {"name": "node2"}}}}));
    make(&api, NODE_CHECKS, "paused", json!({"spec": {"selector": {}, "pauseRequests": ["maintenance"]}}));
    let role = |role: &str| json!({"spec": {"selector": {"matchLabels": {"machine.openshift.io/cluster-api-machine-role": role}}}});
    make(&api, MACHINE_CHECKS, "machines", role("master"));
    make(&api, MACHINE_CHECKS, "others", role("worker"));
    let both = || names(&["node1", "node2"]);
    let expected = [
        (Kind::NodeHealthCheck, "masters".to_owned(), both(), false),
        (Kind::NodeHealthCheck, "one".to_owned(), names(&["node2"]), false),
        (Kind::NodeHealthCheck, "paused".to_owned(), both(), true),
        (Kind::MachineHealthCheck, "machines".to_owned(), both(), false),
    ];
    assert_eq!(known(&api), expected);
    let Fact::Known(all) = found(&api) else { panic!() };
    assert_eq!(all[0].namespace, None, "a node health check is of the whole cluster");
    assert_eq!(all[3].namespace.as_deref(), Some("openshift-workload-availability"));
}

#[test]
fn a_pair_without_machines_is_selected_by_its_nodes_alone() {
    let api = FakeApi::start(true);
    api.make("/api/v1/nodes/node1", json!({"metadata": {"labels": {"a": "b"}}}));
    make(&api, MACHINE_CHECKS, "all", json!({"spec": {"selector": {}}}));
    make(&api, NODE_CHECKS, "all", json!({"spec": {"selector": {}}}));
    assert_eq!(known(&api), [(Kind::NodeHealthCheck, "all".to_owned(), names(&["node1"]), false)]);
}

#[test]
fn a_remediation_is_a_nodes_by_its_name_its_machines_name_or_its_note() {
    let api = api();
    make(&api, FENCINGS, "node1", json!({}));
    make(&api, FENCINGS, "worker1", json!({}));
    make(&api, SELF_RESETS, "node2-machine", json!({}));
    let noted = json!({"metadata": {"annotations": {"remediation.medik8s.io/node-name": "node2"}}});
    make(&api, SELF_RESETS, "node-health-7x9", noted);
    make(&api, SELF_CONFIGS, "self-node-remediation-config", json!({}));
    let expected = [
        (Kind::FenceAgentsRemediation, "node1".to_owned(), names(&["node1"]), false),
        (Kind::SelfNodeRemediation, "node-health-7x9".to_owned(), names(&["node2"]), false),
        (Kind::SelfNodeRemediation, "node2-machine".to_owned(), names(&["node2"]), false),
        (Kind::SelfNodeRemediationConfig, "self-node-remediation-config".to_owned(), Vec::new(), false),
    ];
    assert_eq!(known(&api), expected);
}
