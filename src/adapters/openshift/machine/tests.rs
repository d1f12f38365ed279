use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::time::Instant;

use super::*;
use crate::adapters::kubernetes::kubeconfig::for_server as kubeconfig;

const MACHINES: &str = r#"{"items":[
    {"metadata":{"deletionTimestamp":"2025-01-01T00:00:00Z"},"status":{"nodeRef":{"name":"node1"}}},
    {"metadata":{},"status":{"nodeRef":{"name":"node10"}}}]}"#;

/// Starts a fake API, and returns its URL. It answers each request by `answer`, which returns a status line and a body for a
/// path.
fn api(answer: fn(&str) -> (&'static str, &'static str)) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut lines = BufReader::new(&stream).lines().map_while(Result::ok);
            let request = lines.next().unwrap_or_default();
            lines.find(String::is_empty);
            let (status, body) = answer(request.split(' ').nth(1).unwrap_or_default());
            let length = body.len();
            let text = format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}");
            let _ = (&stream).write_all(text.as_bytes());
        }
    });
    server
}

#[test]
fn the_machine_api_is_asked_and_then_the_cluster_api() {
    let dir = tempfile::tempdir().unwrap();
    let machine_api =
        |path: &str| if path.contains("machine.openshift.io") { ("200 OK", MACHINES) } else { ("404 Not Found", "") };
    let cluster_api =
        |path: &str| if path.contains("cluster.x-k8s.io") { ("200 OK", MACHINES) } else { ("404 Not Found", "") };
    for answer in [machine_api as fn(&str) -> (&'static str, &'static str), cluster_api] {
        let path = kubeconfig(&dir, &api(answer));
        assert_eq!(is_being_deleted(&path, "node1", PATIENCE), Fact::Known(true));
        assert_eq!(is_being_deleted(&path, "node10", PATIENCE), Fact::Known(false), "another node's Machine");
        assert_eq!(is_being_deleted(&path, "node2", PATIENCE), Fact::Known(false), "a node without a Machine");
    }
}

#[test]
fn a_machine_without_a_node_is_that_of_its_address() {
    let machine = |node: Value| serde_json::json!({"status": {"nodeRef": node, "addresses": [{"address": "node1"}]}});
    assert!(is_of(&machine(Value::Null), "node1") && !is_of(&machine(Value::Null), "node2"));
    assert!(!is_of(&machine(serde_json::json!({"name": "node2"})), "node1"), "its Node's word counts");
}

#[test]
fn a_node_with_two_machines_has_none_that_counts() {
    const TWO: &str = r#"{"items":[
        {"metadata":{"deletionTimestamp":"2025-01-01T00:00:00Z"},"status":{"addresses":[{"address":"node1"}]}},
        {"metadata":{},"status":{"addresses":[{"address":"node1"}]}}]}"#;
    let dir = tempfile::tempdir().unwrap();
    let path = kubeconfig(&dir, &api(|_| ("200 OK", TWO)));
    assert!(is_unknown(&is_being_deleted(&path, "node1", PATIENCE), "2 Machines fit it"));
    assert_eq!(is_being_deleted(&path, "node2", PATIENCE), Fact::Known(false));
}

fn is_unknown(fact: &Fact<bool>, what: &str) -> bool {
    matches!(fact, Fact::Unknown(why) if why.contains("the Machine of node1") && why.contains(what))
}

#[test]
fn an_api_that_gives_no_answer_says_nothing_within_its_time() {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(is_being_deleted(&dir.path().join("none"), "node1", PATIENCE), Fact::Absent);
    for status in ["401 Unauthorized", "403 Forbidden"] {
        let refusing = if status.starts_with("401") {
            api(|_| ("401 Unauthorized", MACHINES))
        } else {
            api(|_| ("403 Forbidden", MACHINES))
        };
        let found = is_being_deleted(&kubeconfig(&dir, &refusing), "node1", PATIENCE);
        assert!(is_unknown(&found, &status[..3]), "{found:?}");
    }
    let other = api(|_| ("200 OK", "<html>"));
    assert!(is_unknown(&is_being_deleted(&kubeconfig(&dir, &other), "node1", PATIENCE), "expected value"));
    let silent = crate::os::test_port::listener();
    let server = format!("http://{}", silent.local_addr().unwrap());
    let began = Instant::now();
    assert!(is_unknown(&is_being_deleted(&kubeconfig(&dir, &server), "node1", Duration::from_millis(200)), ""));
    assert!(began.elapsed() < PATIENCE, "{:?}", began.elapsed());
    drop(silent);
    let path = kubeconfig(&dir, &server);
    assert!(is_unknown(&is_being_deleted(&path, "node1", PATIENCE), ""));
    std::fs::write(&path, "{}").unwrap();
    assert!(is_unknown(&is_being_deleted(&path, "node1", PATIENCE), "has no context"));
}
