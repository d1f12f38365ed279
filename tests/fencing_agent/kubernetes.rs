//! Four agents that take their list from the Kubernetes API, on a separate network: two halves, and each reason to be
//! disarmed.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::thread::sleep;
use std::time::Duration;

use serde_json::json;

use crate::cluster::{Cluster, Node, eventually};
use crate::namespaces;
use crate::stand_in::StandIn;

/// The number of the network between the members.
const MEMBERS: usize = 0;
/// The number of the network to the Kubernetes API.
const API: usize = 1;
const PORT: u16 = 6443;

/// Starts four agents and a stand-in for the Kubernetes API. The returned directory contains the kubeconfig.
fn started() -> (Cluster, StandIn, tempfile::TempDir) {
    started_of(4)
}

/// Starts four agents on `hosts` hosts, as [`started`] does.
fn started_of(hosts: usize) -> (Cluster, StandIn, tempfile::TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("kubeconfig");
    let kubeconfig = json!({
        "current-context": "x",
        "clusters": [{ "name": "c", "cluster": { "server": format!("http://10.{API}.0.254:{PORT}") } }],
        "contexts": [{ "name": "x", "context": { "cluster": "c", "user": "u" } }],
        "users": [{ "name": "u", "user": { "token": "t" } }],
    });
    std::fs::write(&path, kubeconfig.to_string()).unwrap();
    let tail = format!("[kubernetes]\nkubeconfig = '{}'\napi_timeout = '1s'\n", path.display());
    let mut cluster = Cluster::new(hosts, 2, "", &tail);
    let address = cluster.join(API);
    let api = StandIn::start(TcpListener::bind((address, PORT)).unwrap());
    for at in 1..=4 {
        api.put(&format!("n{at}"), &format!("uid{at}"), &format!("10.{MEMBERS}.0.{at}"), "test");
    }
    for node in &mut cluster.nodes[..4] {
        node.leave_running();
        node.start();
    }
    cluster.must_reach(&[0, 1, 2, 3], 4);
    (cluster, api, dir)
}

fn must_be_unfed(node: &mut Node) {
    let name = node.name.clone();
    eventually(&format!("{name} is fed: {}", node.log()), || {
        node.bytes();
        sleep(Duration::from_millis(1_500));
        node.bytes().is_empty()
    });
}

#[test]
fn of_two_halves_those_live_that_reach_the_api_server() {
    namespaces::run(module_path!(), "of_two_halves_those_live_that_reach_the_api_server", 100, || {
        let (mut cluster, api, _dir) = started();
        for node in &mut cluster.nodes {
            node.must_be_fed();
        }
        // Both halves reach the API, so both are fed.
        cluster.cut(MEMBERS, &[2, 3]);
        cluster.must_reach(&[0, 1, 2, 3], 2);
        sleep(Duration::from_secs(4));
        for node in &mut cluster.nodes {
            node.must_be_fed();
        }
        // Only one half reaches the API.
        cluster.cut(API, &[2, 3]);
        must_be_unfed(&mut cluster.nodes[2]);
        must_be_unfed(&mut cluster.nodes[3]);
        cluster.nodes[0].must_be_fed();
        cluster.nodes[1].must_be_fed();
        assert_eq!(cluster.nodes[2].asked(&["status"]).status.code(), Some(3), "{}", cluster.nodes[2].log());
        // Neither half reaches the API.
        api.fall_silent(true);
        must_be_unfed(&mut cluster.nodes[0]);
        must_be_unfed(&mut cluster.nodes[1]);
        assert!(cluster.nodes[0].log().contains("equal halves: 2 of 4"), "{}", cluster.nodes[0].log());
        // The members reach each other again, but the API is still silent.
        cluster.heal(MEMBERS, &[2, 3]);
        for node in &mut cluster.nodes {
            node.must_be_fed();
        }
        // A restart without the API uses the last list.
        cluster.nodes[0].kill();
        cluster.nodes[0].start();
        cluster.nodes[0].must_be_fed();
        assert!(
            cluster.nodes[0].log().contains("the list of members is the last one that was read"),
            "{}",
            cluster.nodes[0].log()
        );
    });
}

/// Asserts that a fifth Node is listed once its agent sends datagrams, and that datagrams with another key have nothing listed.
#[test]
fn a_new_node_is_listed_as_soon_as_it_is_heard_and_a_forged_one_is_not() {
    namespaces::run(module_path!(), "a_new_node_is_listed_as_soon_as_it_is_heard_and_a_forged_one_is_not", 100, || {
        let (mut cluster, api, _dir) = started_of(5);
        let lists = || api.asked().iter().filter(|asked| asked.contains("labelSelector")).count();
        api.put("n5", "uid5", &format!("10.{MEMBERS}.0.5"), "test");
        fs::write(cluster.dir.path().join("other"), "f".repeat(64)).unwrap();
        fs::set_permissions(cluster.dir.path().join("other"), fs::Permissions::from_mode(0o600)).unwrap();
        cluster.configure(4, "other");
        cluster.nodes[4].start();
        // The list of the fifth agent's own start is among these.
        let before = lists();
        eventually("the forged ones are not counted", || {
            cluster.nodes[..4].iter().all(|node| node.status()["dropped"]["seal"].as_u64() > Some(3))
        });
        assert_eq!(lists(), before, "a name without the key has the API listed");
        cluster.nodes[4].kill();
        cluster.configure(4, "key");
        cluster.nodes[4].start();
        // The next list without that datagram is minutes away.
        cluster.must_reach(&[0, 1, 2, 3, 4], 5);
    });
}

#[test]
fn a_node_that_is_updated_or_deleted_is_disarmed_and_stays_a_member() {
    namespaces::run(module_path!(), "a_node_that_is_updated_or_deleted_is_disarmed_and_stays_a_member", 100, || {
        let (mut cluster, api, _dir) = started();
        cluster.nodes[3].must_be_fed();
        let with = |key: &'static str| {
            move |node: &mut serde_json::Value| node["metadata"]["annotations"] = json!({ key: "" })
        };
        let disarmed = |cluster: &mut Cluster, why: &str| {
            let node = &mut cluster.nodes[3];
            let mut bytes = Vec::new();
            eventually(&format!("{why} does not disarm: {}", node.log()), || {
                bytes.extend(node.bytes());
                bytes.last() == Some(&b'V')
            });
            eventually(why, || node.status()["disarmed"].as_str().is_some_and(|said| said.contains(why)));
            cluster.must_reach(&[0], 4);
        };
        for key in [
            "update.node.deckhouse.io/disruption-approved",
            "update.node.deckhouse.io/approved",
            "node-manager.deckhouse.io/fencing-disable",
        ] {
            api.edit("n4", with(key));
            disarmed(&mut cluster, key);
            api.edit("n4", with("another"));
            cluster.nodes[3].must_be_fed();
        }
        api.edit("n4", |node| node["spec"]["taints"] = json!([{ "key": "ToBeDeletedByClusterAutoscaler" }]));
        disarmed(&mut cluster, "ToBeDeletedByClusterAutoscaler");
        api.edit("n4", |node| {
            node["spec"] = json!({});
            node["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        });
        let says = |cluster: &Cluster, why: &str| {
            eventually(why, || cluster.nodes[3].status()["disarmed"].as_str().is_some_and(|said| said.contains(why)));
        };
        says(&cluster, "the Node n4 is being deleted");
        api.delete("n4");
        says(&cluster, "the Node n4 is gone");
        api.put("n4", "another", &format!("10.{MEMBERS}.0.4"), "test");
        says(&cluster, "the Node n4 is another one");
        assert!(!cluster.nodes[3].bytes().contains(&0), "{}", cluster.nodes[3].log());
    });
}
