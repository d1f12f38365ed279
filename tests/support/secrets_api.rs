//! A stand-in for OpenShift's API that answers each read with a fixed object.

#![allow(clippy::unwrap_used, reason = "what fails here ends the test")]

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

/// Starts a stand-in for the Kubernetes API with these objects, each with its path. Writes a kubeconfig for it to `kubeconfig`.
pub(crate) fn start(objects: impl IntoIterator<Item = (String, Value)>, kubeconfig: &Path) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = format!("http://{}", listener.local_addr().unwrap());
    let objects: BTreeMap<String, Value> = objects.into_iter().collect();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let lines: Vec<String> =
                BufReader::new(&stream).lines().map_while(Result::ok).take_while(|line| !line.is_empty()).collect();
            let asked = lines.first().and_then(|line| line.split(' ').nth(1)).unwrap_or_default();
            let (status, body) = match objects.get(asked) {
                Some(object) => ("200 OK", object.to_string()),
                None => ("404 Not Found", String::new()),
            };
            let head = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
            let _ = (&stream).write_all(format!("{head}{body}").as_bytes());
        }
    });
    let text = json!({
        "current-context": "x",
        "clusters": [{ "name": "c", "cluster": { "server": server } }],
        "contexts": [{ "name": "x", "context": { "cluster": "c", "user": "u" } }],
        "users": [{ "name": "u", "user": { "token": "t" } }],
    });
    std::fs::write(kubeconfig, text.to_string()).unwrap();
}

/// Returns the path and the content of the Secret for the BMC of `node`, with the BMC's address (`HOST` or `HOST:PORT`) and the
/// password of the user `admin`.
pub(crate) fn fencing_secret(node: &str, host: &str, password: &str) -> (String, Value) {
    let encode = |text: &str| STANDARD.encode(text);
    let secret = json!({ "data": {
        "address": encode(&format!("redfish+https://{host}/redfish/v1/Systems/1")),
        "username": encode("admin"),
        "password": encode(password),
        "certificateVerification": encode("Enabled"),
    } });
    (format!("/api/v1/namespaces/openshift-etcd/secrets/fencing-credentials-{node}"), secret)
}
