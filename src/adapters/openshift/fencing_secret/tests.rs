use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};

use data_encoding::HEXLOWER;

use super::*;
use crate::adapters::kubernetes::kubeconfig::for_server as kubeconfig;
use crate::adapters::openshift::machines::fake_api::FakeApi;

const PATIENCE: Duration = Duration::from_secs(5);

/// Starts a fake API with a Secret of node2, and returns its URL and a channel with each request's line and body. The API answers a PATCH
/// with `status`, and each read with a new resource version. It refuses to show the Secret of node3. In place of node4's Secret it has
/// another object.
fn api(status: &'static str) -> (String, Receiver<(String, String)>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = format!("http://{}", listener.local_addr().unwrap());
    let (tell, told) = channel();
    std::thread::spawn(move || {
        let mut version = 0;
        for stream in listener.incoming().flatten() {
            let mut reader = BufReader::new(&stream);
            let (mut first, mut length) = (String::new(), 0);
            reader.read_line(&mut first).unwrap();
            loop {
                let mut line = String::new();
                reader.read_line(&mut line).unwrap();
                if let Some(said) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                    length = said.trim().parse().unwrap();
                }
                if line.trim().is_empty() {
                    break;
                }
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body).unwrap();
            let _ = tell.send((first.trim().to_owned(), String::from_utf8(body).unwrap()));
            let address = STANDARD.encode("redfish+https://192.0.2.2:8443/redfish/v1/Systems/1");
            let (status, body) = match () {
                () if first.starts_with("GET") && first.contains("fencing-credentials-node3 ") => {
                    ("403 Forbidden", "{}".to_owned())
                }
                () if first.contains("fencing-credentials-node4 ") => ("200 OK", "hunter3".to_owned()),
                () if !first.contains("fencing-credentials-node2 ") => ("404 Not Found", String::new()),
                () if first.starts_with("GET") => {
                    version += 1;
                    let metadata = json!({"resourceVersion": version.to_string()});
                    ("200 OK", json!({"metadata": metadata, "data": {"address": address}}).to_string())
                }
                () => (status, "{}".to_owned()),
            };
            let text =
                format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len());
            let _ = (&stream).write_all(text.as_bytes());
        }
    });
    (server, told)
}

#[test]
fn the_secret_follows_with_what_is_new_and_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let (server, told) = api("200 OK");
    let path = kubeconfig(&dir, &server);
    let changes = Changes { password: Some(b"n3w"), ..Changes::default() };
    assert_eq!(follow(&path, ("node2", None), &changes, PATIENCE), Fact::Known(()));
    let (line, body) = told.iter().nth(1).unwrap();
    assert_eq!(line, "PATCH /api/v1/namespaces/openshift-etcd/secrets/fencing-credentials-node2 HTTP/1.1");
    let metadata = |version: &str| json!({"resourceVersion": version});
    let data = json!({"password": STANDARD.encode("n3w")});
    assert_eq!(serde_json::from_str::<Value>(&body).unwrap(), json!({"metadata": metadata("1"), "data": data}));
    let changes = Changes { host: Some("192.0.2.9"), username: Some("fencer"), ..Changes::default() };
    assert_eq!(follow(&path, ("node2", None), &changes, PATIENCE), Fact::Known(()));
    let address = STANDARD.encode("redfish+https://192.0.2.9/redfish/v1/Systems/1");
    let body: Value = serde_json::from_str(&told.iter().nth(1).unwrap().1).unwrap();
    let data = json!({"username": STANDARD.encode("fencer"), "address": address});
    assert_eq!(body, json!({"metadata": metadata("2"), "data": data}));
}

#[test]
fn a_change_rests_on_the_version_that_was_read_and_is_tried_a_few_times() {
    let dir = tempfile::tempdir().unwrap();
    let (server, told) = api("409 Conflict");
    let changes = Changes { password: Some(b"hunter2"), ..Changes::default() };
    let refused = follow(&kubeconfig(&dir, &server), ("node2", None), &changes, PATIENCE);
    assert_eq!(refused, Fact::Unknown("another client writes to its Secret at the same time".to_owned()));
    let versions: Vec<Value> = told
        .try_iter()
        .filter(|(line, _)| line.starts_with("PATCH"))
        .map(|(_, body)| serde_json::from_str::<Value>(&body).unwrap()["metadata"]["resourceVersion"].clone())
        .collect();
    let read: Vec<Value> = (1..=TRIES).map(|version| json!(version.to_string())).collect();
    assert_eq!(versions, read, "each try reads it again");
}

#[test]
fn where_there_is_no_secret_nothing_follows_and_where_nobody_answers_that_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let changes = Changes { password: Some(b"hunter2"), ..Changes::default() };
    assert!(follow(Path::new("/nonexistent/kubeconfig"), ("node2", None), &changes, PATIENCE).is_absent());
    let (server, _told) = api("403 Forbidden");
    let path = kubeconfig(&dir, &server);
    assert!(follow(&path, ("node1", None), &changes, PATIENCE).is_absent());
    let refused = follow(&path, ("node2", None), &changes, PATIENCE);
    assert_eq!(refused, Fact::Unknown("the API answers 403".to_owned()));
    let (server, _told) = api("200 OK");
    let path = kubeconfig(&dir, &server);
    assert_eq!(follow(&path, ("node3", None), &changes, PATIENCE), Fact::Unknown("the API answers 403".to_owned()));
    let why = "its Secret is not understood".to_owned();
    assert_eq!(follow(&path, ("node4", None), &changes, PATIENCE), Fact::Unknown(why), "no word of it is repeated");
    let nobody = crate::os::test_port::listener().local_addr().unwrap();
    let path = kubeconfig(&dir, &format!("http://{nobody}"));
    assert!(
        matches!(follow(&path, ("node2", None), &changes, PATIENCE), Fact::Unknown(why) if !why.contains("hunter2"))
    );
}

#[test]
fn the_secret_is_found_by_what_names_it_and_never_taken_for_none() {
    const BY_MAC: &str = "fencing-credentials-8ba7a1a36c2c1c0bd8b4a4c2b7e3b2e8";
    let secrets = "/api/v1/namespaces/openshift-etcd/secrets";
    let dir = tempfile::tempdir().unwrap();
    let fake_api = FakeApi::start(true);
    let path = kubeconfig(&dir, &fake_api.server);
    let changes = Changes { password: Some(b"n3w"), ..Changes::default() };
    let ask = |host| follow(&path, ("node2", host), &changes, PATIENCE);
    let password =
        |name: &str| fake_api.get(&format!("{secrets}/{name}")).map(|secret| secret["data"]["password"].clone());
    let secret = |host: &str| {
        let address = STANDARD.encode(format!("redfish+https://{host}/redfish/v1/Systems/1"));
        json!({"data": {"address": address, "password": STANDARD.encode("old")}})
    };
    let make = |name: &str, host: &str| fake_api.make(&format!("{secrets}/{name}"), secret(host));
    let node = |macs: &str| json!({"metadata": {"annotations": {"tnf.openshift.io/mac-addresses": macs}}});
    let sha256 = |text: &str| HEXLOWER.encode(ring::digest::digest(&ring::digest::SHA256, text.as_bytes()).as_ref());
    let by_mac = format!("fencing-credentials-{}", sha256("525400aabb02"));
    assert!(ask(Some("192.0.2.9")).is_absent(), "no node has one");
    // Other nodes have their Secrets, and none of them is known to be this node's.
    make("fencing-credentials-node1", "192.0.2.8");
    fake_api.make(&format!("{secrets}/etcd-peer-node2"), secret("192.0.2.9"));
    assert!(
        matches!(ask(Some("192.0.2.9")), Fact::Unknown(why) if why.contains("there are: fencing-credentials-node1"))
    );
    // The Secret is found by the address, if one matches.
    make(BY_MAC, "[2001:db8::9]:8443");
    assert_eq!(ask(Some("2001:db8::9")), Fact::Known(()));
    assert_eq!(password(BY_MAC), Some(json!(STANDARD.encode("n3w"))));
    assert!(matches!(ask(None), Fact::Unknown(_)));
    make("fencing-credentials-again", "[2001:db8::9]");
    assert!(matches!(ask(Some("2001:db8::9")), Fact::Unknown(why) if why.contains("several Secrets fit node2")));
    // The MAC address is preferred to that, and the name to both.
    fake_api.make("/api/v1/nodes/node2", node("52:54:00:AA:BB:03,52:54:00:aa:bb:02"));
    make(&by_mac, "192.0.2.7");
    assert_eq!(ask(Some("2001:db8::9")), Fact::Known(()));
    assert_eq!(password(&by_mac), Some(json!(STANDARD.encode("n3w"))));
    make("fencing-credentials-node2", "192.0.2.6");
    assert_eq!(ask(None), Fact::Known(()));
    assert_eq!(password("fencing-credentials-node2"), Some(json!(STANDARD.encode("n3w"))));
    assert_eq!(password("fencing-credentials-node1"), Some(json!(STANDARD.encode("old"))));
}

#[test]
fn a_password_is_in_no_log() {
    let changes = Changes { username: Some("fencer"), password: Some(b"hunter2"), ..Changes::default() };
    assert_eq!(format!("{changes:?}"), r#"Changes(Some("fencer"), None, None, ***)"#);
}

#[test]
fn an_address_keeps_what_does_not_change() {
    let new = Changes { system: Some("/redfish/v1/Systems/2"), ..Changes::default() };
    assert_eq!(moved("redfish+https://h:1/redfish/v1/Systems/1", &new), "redfish+https://h:1/redfish/v1/Systems/2");
    let new = Changes { host: Some("[2001:db8::1]:8443"), ..Changes::default() };
    assert_eq!(moved("idrac-redfish://h", &new), "idrac-redfish://[2001:db8::1]:8443");
}
