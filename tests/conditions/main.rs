//! OpenShift's conditions of a cluster: each state against OpenShift's rules, and the object of each against its API
//! server's schema.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod captured;
#[path = "../support/openshift/rules.rs"]
mod rules;
#[path = "../support/states.rs"]
mod states;
mod table;
#[path = "../support/tree.rs"]
mod tree;

use serde_json::{Value, json};
use tandem::operate::cluster::Cluster;
use tandem::operate::health::conditions::{self, Condition, Conditions, Status};
use tandem::operate::health::pacemaker_cluster::{self, PacemakerCluster};

use crate::captured::CAPTURED;
use crate::states::{AT, healthy, node, on};
use crate::table::ROWS;

/// Returns every condition that is not true, as `PLACE TYPE=REASON`.
fn not_true(conditions: &Conditions) -> Vec<String> {
    let mut found = Vec::new();
    let mut add = |place: &str, conditions: &[Condition]| {
        let others: Vec<&Condition> = conditions.iter().filter(|one| one.status != Status::True).collect();
        let all_unknown = others.len() == conditions.len() && others.iter().all(|one| one.status == Status::Unknown);
        if all_unknown && place != "cluster" {
            let reason = others[0].reason;
            assert!(others.iter().all(|one| one.reason == reason), "{place}: {others:?}");
            found.push(format!("{place} *={reason}"));
            return;
        }
        for one in others {
            assert_eq!(one.status == Status::Unknown, one.reason == "NotObserved", "{place}: {one:?}");
            found.push(format!("{place} {}={}", one.kind, one.reason));
        }
    };
    add("cluster", &conditions.cluster);
    for node in &conditions.nodes {
        add(&node.name, &node.conditions);
        node.resources.iter().for_each(|one| add(&format!("{}/{}", node.name, one.name), &one.conditions));
        node.fencing.iter().for_each(|one| add(&format!("{}/{}", node.name, one.name), &one.conditions));
    }
    found.sort();
    found
}

fn object(cluster: &Cluster, before: Option<&PacemakerCluster>) -> PacemakerCluster {
    pacemaker_cluster::of(cluster, before)
}

#[test]
fn each_state_means_what_the_rules_say() {
    for row in ROWS {
        let mut cluster = healthy();
        (row.change)(&mut cluster);
        let mut expected: Vec<String> = row.expected.iter().map(|entry| (*entry).to_owned()).collect();
        expected.sort();
        assert_eq!(not_true(&conditions::of(&cluster)), expected, "{}", row.name);
    }
}

#[test]
fn the_object_of_each_state_is_taken_first_and_after_a_healthy_one() {
    let before = object(&healthy(), None);
    let before_value = serde_json::to_value(&before).unwrap();
    for row in ROWS {
        let mut cluster = healthy();
        (row.change)(&mut cluster);
        cluster.at += 30;
        for before in [None, Some(&before)] {
            let object = serde_json::to_value(object(&cluster, before)).unwrap();
            let faults = rules::faults(&object, before.map(|_| &before_value));
            assert!(faults.is_empty(), "{}: {faults:#?}", row.name);
        }
    }
}

/// Asserts that the API server would accept the object of each cluster in `tests/data/fixtures/cluster`. These clusters
/// were captured, or written for other tests.
#[test]
fn the_object_of_each_cluster_that_is_kept_is_taken() {
    let files = tree::of_kind(&tree::root().join("tests/data/fixtures/cluster"), "json");
    assert!(!files.is_empty());
    for path in files {
        let cluster: Cluster = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        let object = serde_json::to_value(object(&cluster, None)).unwrap();
        assert_eq!(rules::faults(&object, None), Vec::<String>::new(), "{}", path.display());
    }
}

#[test]
fn each_captured_state_means_what_the_rules_say() {
    for (name, expected) in CAPTURED {
        let path = format!("{}/tests/data/fixtures/cluster/{name}.json", env!("CARGO_MANIFEST_DIR"));
        let cluster: Cluster = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        let mut found = not_true(&conditions::of(&cluster));
        found.retain(|entry| !entry.ends_with("/Kubelet *=NotConfigured"));
        let mut expected: Vec<String> = expected.iter().map(|entry| (*entry).to_owned()).collect();
        expected.sort();
        assert_eq!(found, expected, "{name}");
    }
}

/// Asserts that the checks of these tests find each planted fault of an object.
#[test]
fn what_is_wrong_is_found() {
    type Harm = fn(&mut Value);
    let harms: &[(&str, Harm)] = &[
        ("no condition Healthy", |object| drop(object["status"]["conditions"].as_array_mut().unwrap().remove(0))),
        ("twice", |object| object["status"]["nodes"][0]["nodeName"] = json!("node2")),
        ("twice", |object| object["status"]["nodes"][0]["conditions"][1]["type"] = json!("Member")),
        ("twice", |object| {
            let agents = object["status"]["nodes"][0]["fencingAgents"].as_array_mut().unwrap();
            agents.push(agents[0].clone());
        }),
        ("the address", |object| object["status"]["nodes"][0]["addresses"][0]["address"] = json!("127.0.0.1")),
        ("the address", |object| object["status"]["nodes"][0]["addresses"][0]["address"] = json!("2001:0db8::1")),
        ("the address", |object| object["status"]["nodes"][0]["addresses"][0]["address"] = json!("fe80::1")),
        ("no resource Kubelet", |object| {
            drop(object["status"]["nodes"][0]["resources"].as_array_mut().unwrap().remove(0));
        }),
        ("reason", |object| object["status"]["conditions"][0]["reason"] = json!("no word")),
        ("lastUpdated", |object| object["status"]["lastUpdated"] = json!("yesterday")),
        ("goes back", |object| object["status"]["lastUpdated"] = json!("2026-01-01T00:00:00Z")),
        ("metadata", |object| object["metadata"]["name"] = json!("other")),
    ];
    let good = serde_json::to_value(object(&healthy(), None)).unwrap();
    assert_eq!(rules::faults(&good, Some(&good)), Vec::<String>::new());
    for (words, harm) in harms {
        let mut bad = good.clone();
        harm(&mut bad);
        let faults = rules::faults(&bad, Some(&good));
        assert!(faults.iter().any(|fault| fault.contains(words)), "{words}: {faults:?}");
    }
}

fn since(object: &PacemakerCluster, kind: &str) -> String {
    let conditions = &object.status.nodes[1].conditions;
    conditions.iter().find(|one| one.kind == kind).unwrap().last_transition_time.clone()
}

#[test]
fn a_conditions_time_moves_only_with_its_status() {
    let first = object(&healthy(), None);
    assert_eq!(since(&first, "Active"), "2026-11-23T14:00:00Z");
    let mut cluster = healthy();
    cluster.at = AT + 60;
    node(&mut cluster, "node2").standby = true;
    let second = object(&cluster, Some(&first));
    assert_eq!([since(&second, "Active"), since(&second, "Online")], ["2026-11-23T14:01:00Z", "2026-11-23T14:00:00Z"]);
    cluster.at = AT + 120;
    on(&mut cluster, "etcd", "node2").failed = true;
    let third = object(&cluster, Some(&second));
    assert_eq!([since(&third, "Active"), since(&third, "Healthy")], ["2026-11-23T14:01:00Z"; 2]);
    let etcd = &third.status.nodes[1].resources[1];
    assert_eq!(etcd.conditions[4].last_transition_time, "2026-11-23T14:02:00Z");
    assert_eq!(third.status.last_updated, "2026-11-23T14:02:00Z");
    // A clock that was set back does not change the time.
    let fourth = object(&healthy(), Some(&third));
    assert_eq!(fourth.status.last_updated, "2026-11-23T14:02:00Z");
}

/// Asserts that an object is the same after it was written as JSON and read back. The collector keeps it in a file.
#[test]
fn an_object_reads_back_as_it_was_written() {
    let written = object(&healthy(), None);
    let read: PacemakerCluster = serde_json::from_str(&serde_json::to_string(&written).unwrap()).unwrap();
    assert_eq!(read, written);
    let status = json!({ "format": 1, "cluster": {}, "pacemakercluster": written }).to_string();
    assert_eq!(pacemaker_cluster::kept(status.as_bytes()), Some(written));
    assert_eq!(pacemaker_cluster::kept(br#"{"format":1,"pacemakercluster":null}"#), None);
}

#[test]
fn what_pacemaker_remembers_of_a_resource_is_told() {
    let row = ROWS.iter().find(|row| row.name == "failed start").unwrap();
    let mut cluster = healthy();
    (row.change)(&mut cluster);
    let object = serde_json::to_value(object(&cluster, None)).unwrap();
    let etcd = &object["status"]["nodes"][1]["resources"][1];
    assert_eq!(etcd["name"], "Etcd");
    assert_eq!(etcd["failCount"], 1_000_000);
    assert_eq!(etcd["migrationThreshold"], 1_000_000);
    assert_eq!(etcd["lastStartTime"], "2026-11-23T12:00:00Z");
    assert_eq!(etcd["lastFailureTime"], "2026-11-23T13:59:00Z");
    assert!(etcd.get("lastStopTime").is_none());
    let agents = &object["status"]["nodes"][1]["fencingAgents"];
    assert_eq!((&agents[0]["name"], &agents[0]["method"]), (&json!("node2_redfish"), &json!("Redfish")));
    assert_eq!(object["status"]["conditions"][0]["message"], "node2 is false");
    assert_eq!(object["status"]["nodes"][1]["conditions"][0]["message"], "Etcd is false");
}

#[test]
fn names_and_addresses_have_the_form_that_is_taken() {
    let mut cluster = healthy();
    "Node_2".clone_into(&mut node(&mut cluster, "node2").name);
    let configuration = states::configured(&mut cluster);
    "Node_2".clone_into(&mut configuration.nodes[1]);
    let map = "node1:127.0.0.1;Node_2:2001:0DB8:0::2".to_owned();
    configuration.etcd.as_mut().unwrap().parameters.insert("node_ip_map".to_owned(), map);
    let found = object(&cluster, None);
    let value = serde_json::to_value(&found).unwrap();
    assert_eq!(rules::faults(&value, None), Vec::<String>::new());
    let nodes: Vec<(&str, &str)> =
        found.status.nodes.iter().map(|n| (&*n.node_name, &*n.addresses[0].address)).collect();
    // etcd uses another address than the map, which contains no address that a node can have.
    assert_eq!(nodes, [("node-2", "2001:db8::2"), ("node1", "192.0.2.1")]);
}
