//! Tests of lists, reads and watches against a fake API.

#[expect(clippy::disallowed_methods, reason = "the server is a program of its own")]
mod real;

use std::net::TcpListener;
use std::time::{Duration, Instant};

use serde_json::json;

use super::stand_in::StandIn;
use super::{Change, Failure, Node, list, read, watch, watch_with};
use crate::adapters::kubernetes::kubeconfig::Access;

const PATIENCE: Duration = Duration::from_secs(5);

fn started() -> (StandIn, Access) {
    let api = StandIn::start(TcpListener::bind("127.0.0.1:0").unwrap());
    let access = Access {
        file: "kubeconfig".to_owned(),
        server: api.server.clone(),
        authorities: None,
        identity: None,
        token: None,
    };
    (api, access)
}

fn is(change: Option<Change>) -> Node {
    match change {
        Some(Change::Is(node)) => *node,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_group_is_listed_page_by_page() {
    let (api, access) = started();
    assert_eq!(list(&access, "node.deckhouse.io/group=master", PATIENCE), Ok(Vec::new()));
    for (name, group) in [("a", "master"), ("b", "worker"), ("c", "master"), ("d", "master")] {
        api.put(name, "uid", "192.0.2.1", group);
    }
    let nodes = list(&access, "node.deckhouse.io/group=master", PATIENCE).unwrap();
    let names: Vec<&str> = nodes.iter().map(|node| node.name.as_str()).collect();
    assert_eq!(names, ["a", "c", "d"]);
    assert_eq!(nodes[0].addresses, ["192.0.2.1".parse::<std::net::IpAddr>().unwrap()]);
    api.refuse(Some(403));
    let refused = Err(Failure::Refused { status: 403, why: "no".to_owned() });
    assert_eq!(list(&access, "node.deckhouse.io/group=master", PATIENCE), refused);
}

#[test]
fn one_node_is_read_with_what_fencing_asks_for() {
    let (api, access) = started();
    assert_eq!(read(&access, "a", PATIENCE), Ok(None));
    api.put("a", "1", "192.0.2.1", "master");
    api.edit("a", |node| {
        node["metadata"]["annotations"] = json!({ "update.node.deckhouse.io/approved": "" });
        node["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        node["spec"]["taints"] = json!([{ "key": "ToBeDeletedByClusterAutoscaler", "effect": "NoSchedule" }]);
    });
    let node = read(&access, "a", PATIENCE).unwrap().unwrap();
    assert!(node.is_being_deleted && node.uid == "1" && node.version == "2");
    assert!(node.annotations.contains("update.node.deckhouse.io/approved"));
    assert!(node.taints.contains("ToBeDeletedByClusterAutoscaler"));
    assert_eq!(api.asked().len(), 2);
}

#[test]
fn a_watch_shows_each_change_of_one_node_in_order() {
    let (api, access) = started();
    api.put("a", "1", "192.0.2.1", "master");
    let mut changes = watch(&access, "a", "1", Duration::from_secs(30)).unwrap();
    api.edit("a", |node| node["metadata"]["annotations"] = json!({ "x": "y" }));
    assert!(is(changes.next().unwrap()).annotations.contains("x"));
    api.put("b", "2", "192.0.2.2", "master");
    assert_eq!(changes.next(), Ok(Some(Change::Version("3".to_owned()))));
    api.delete("a");
    assert_eq!(changes.next(), Ok(Some(Change::Gone("4".to_owned()))));
    api.end_watches();
    assert_eq!(changes.next(), Ok(None));
}

#[test]
fn a_watch_from_a_forgotten_version_says_so_and_a_silent_one_ends() {
    let (api, access) = started();
    api.put("a", "1", "192.0.2.1", "master");
    api.forget();
    let mut changes = watch(&access, "a", "1", Duration::from_secs(30)).unwrap();
    assert_eq!(changes.next(), Err(Failure::TooOld));
    api.fall_silent(true);
    assert!(matches!(read(&access, "a", Duration::from_millis(300)), Err(Failure::None(_))));
    api.fall_silent(false);
    api.refuse(Some(401));
    assert!(matches!(watch(&access, "a", "3", PATIENCE).err(), Some(Failure::Refused { status: 401, .. })));
}

/// Asserts that a watch on which the server falls silent does not last for ever. An agent would then miss each later reason to be
/// disarmed.
#[test]
fn a_watch_that_the_server_does_not_end_in_time_is_a_break() {
    let (api, access) = started();
    api.put("a", "1", "192.0.2.1", "master");
    let times = (Duration::from_secs(1), Duration::from_millis(200));
    let mut changes = watch_with(&access, "a", "1", times).unwrap();
    assert!(api.asked()[0].ends_with("&timeoutSeconds=1"), "{:?}", api.asked());
    let (ends, end) = std::sync::mpsc::channel();
    std::thread::spawn(move || ends.send(changes.next()));
    let end = end.recv_timeout(PATIENCE).expect("the watch outlasts its time and the grace");
    assert!(matches!(end, Err(Failure::None(_))), "{end:?}");
}

#[test]
fn a_connection_that_ends_in_the_middle_of_a_change_is_a_break() {
    let (api, access) = started();
    api.put("a", "1", "192.0.2.1", "master");
    let mut changes = watch(&access, "a", "1", Duration::from_secs(30)).unwrap();
    // With the first change the watch has begun.
    api.edit("a", |node| node["metadata"]["annotations"] = json!({ "x": "y" }));
    assert_eq!(is(changes.next().unwrap()).version, "2");
    api.cut_watches_off();
    let began = Instant::now();
    let end = changes.next();
    assert!(matches!(end, Err(Failure::None(_))), "{end:?}");
    assert!(began.elapsed() < PATIENCE, "it waits for the end of the watch");
}
