//! Tests that the fake and a kube-apiserver 1.20 show the same changes. `make fencing-nightly` builds that server and runs this.

use std::cell::RefCell;
use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use zeroize::Zeroizing;

use crate::adapters::kubernetes::api;
use crate::adapters::kubernetes::kubeconfig::Access;
use crate::adapters::kubernetes::nodes::stand_in::StandIn;
use crate::adapters::kubernetes::nodes::{Change, Failure, Node, begin, list, read, watch};
use crate::os::clock;

const PATIENCE: Duration = Duration::from_secs(10);
/// The path of the real kube-apiserver, which `tests/fencing_agent/apiserver` builds.
const PROGRAM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/target/fencing/kubernetes/kube-apiserver");
const LABEL: &str = "node.deckhouse.io/group=test";
const ADDRESS: &str = "192.0.2.1";

/// A Kubernetes API, real or fake, with Nodes that tests can change.
trait Api {
    fn access(&self) -> Access;
    fn put(&self, name: &str);
    fn edit(&self, name: &str, edit: fn(&mut Value));
    fn delete(&self, name: &str);
    /// Deletes the Node `name`, which stays until its finalizer is removed.
    fn begin_to_delete(&self, name: &str);
    /// Makes the API forget earlier resource versions, so that a watch cannot begin at version 1.
    fn forget(&self);
}

impl Api for StandIn {
    fn access(&self) -> Access {
        let (file, server) = ("kubeconfig".to_owned(), self.server.clone());
        Access { file, server, authorities: None, identity: None, token: None }
    }

    fn put(&self, name: &str) {
        Self::put(self, name, "uid", ADDRESS, "test");
    }

    fn edit(&self, name: &str, edit: fn(&mut Value)) {
        Self::edit(self, name, edit);
    }

    fn delete(&self, name: &str) {
        Self::delete(self, name);
    }

    fn begin_to_delete(&self, name: &str) {
        Self::edit(self, name, |node| node["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z"));
    }

    fn forget(&self) {
        Self::forget(self);
    }
}

/// A real kube-apiserver and its etcd, which listen on this machine only.
struct Server {
    etcd: Child,
    args: Vec<String>,
    running: RefCell<Child>,
    access: Access,
    dir: tempfile::TempDir,
}

impl Drop for Server {
    fn drop(&mut self) {
        for process in [self.running.get_mut(), &mut self.etcd] {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn spawned(program: &str, args: &[String], log: &Path) -> Child {
    let log = fs::File::create(log).unwrap();
    Command::new(program).args(args).stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log).spawn().unwrap()
}

impl Server {
    fn start() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let file = |name: &str| dir.path().join(name);
        let path = |name: &str| file(name).display().to_string();
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        fs::write(file("crt"), made.cert.pem()).unwrap();
        fs::write(file("key"), made.signing_key.serialize_pem()).unwrap();
        fs::write(file("tokens"), "admin,admin,1,system:masters\nnobody,nobody,2\n").unwrap();
        let [client, peer, port] = [free_port(), free_port(), free_port()];
        let (client, peer) = (format!("http://127.0.0.1:{client}"), format!("http://127.0.0.1:{peer}"));
        let etcd = [
            format!("--data-dir={}", path("etcd")),
            format!("--listen-client-urls={client}"),
            format!("--advertise-client-urls={client}"),
            format!("--listen-peer-urls={peer}"),
            format!("--initial-advertise-peer-urls={peer}"),
            format!("--initial-cluster=default={peer}"),
        ];
        let args = vec![
            format!("--etcd-servers={client}"),
            format!("--secure-port={port}"),
            "--bind-address=127.0.0.1".to_owned(),
            format!("--cert-dir={}", path("certs")),
            format!("--tls-cert-file={}", path("crt")),
            format!("--tls-private-key-file={}", path("key")),
            format!("--token-auth-file={}", path("tokens")),
            "--authorization-mode=RBAC".to_owned(),
            "--service-cluster-ip-range=10.0.0.0/24".to_owned(),
            "--service-account-issuer=test".to_owned(),
            format!("--service-account-key-file={}", path("crt")),
            format!("--service-account-signing-key-file={}", path("key")),
        ];
        let etcd = spawned("etcd", &etcd, &file("etcd.log"));
        let running = RefCell::new(spawned(PROGRAM, &args, &file("server.log")));
        let access = Access {
            file: "kubeconfig".to_owned(),
            server: format!("https://localhost:{port}"),
            authorities: Some(Zeroizing::new(made.cert.pem().into_bytes())),
            identity: None,
            token: Some(Zeroizing::new("admin".to_owned())),
        };
        let this = Self { etcd, args, running, access, dir };
        this.wait();
        this
    }

    /// Waits until the kube-apiserver answers.
    fn wait(&self) {
        let began = Instant::now();
        while list(&self.access, LABEL, PATIENCE).is_err() {
            let log = fs::read_to_string(self.dir.path().join("server.log")).unwrap_or_default();
            assert!(began.elapsed() < Duration::from_secs(120), "it does not answer: {log}");
            clock::sleep(Duration::from_millis(300));
        }
    }

    fn with_token(&self, token: &str) -> Access {
        Access { token: Some(Zeroizing::new(token.to_owned())), ..self.access() }
    }

    fn send(&self, method: &str, path: &str, body: &Value) -> Value {
        let agent = api::agent(&self.access, PATIENCE).unwrap();
        let request = ureq::http::Request::builder()
            .method(method)
            .uri(format!("{}/api/v1/nodes{path}", self.access.server))
            .header("authorization", "Bearer admin")
            .header("content-type", "application/json")
            .body(body.to_string())
            .unwrap();
        let mut answer = agent.run(request).unwrap();
        let text = answer.body_mut().read_to_string().unwrap();
        assert!(answer.status().is_success(), "{method} {path}: {text}");
        serde_json::from_str(&text).unwrap()
    }

    fn found(&self, name: &str) -> Value {
        let agent = api::agent(&self.access, PATIENCE).unwrap();
        let path = format!("{}/api/v1/nodes/{name}", self.access.server);
        let mut answer = api::authorised(agent.get(path), &self.access).call().unwrap();
        serde_json::from_str(&answer.body_mut().read_to_string().unwrap()).unwrap()
    }
}

impl Api for Server {
    fn access(&self) -> Access {
        let Access { file, server, authorities, token, .. } = &self.access;
        let (file, server) = (file.clone(), server.clone());
        Access { file, server, authorities: authorities.clone(), identity: None, token: token.clone() }
    }

    fn put(&self, name: &str) {
        let labels = json!({ "node.deckhouse.io/group": "test" });
        let node = json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": name, "labels": labels } });
        let mut made = self.send("POST", "", &node);
        made["status"]["addresses"] = json!([
            { "type": "Hostname", "address": name },
            { "type": "InternalIP", "address": ADDRESS },
        ]);
        self.send("PUT", &format!("/{name}/status"), &made);
    }

    fn edit(&self, name: &str, edit: fn(&mut Value)) {
        let mut node = self.found(name);
        edit(&mut node);
        self.send("PUT", &format!("/{name}"), &node);
    }

    fn delete(&self, name: &str) {
        self.send("DELETE", &format!("/{name}"), &json!({}));
    }

    fn begin_to_delete(&self, name: &str) {
        self.edit(name, |node| node["metadata"]["finalizers"] = json!(["test/x"]));
        self.delete(name);
    }

    /// Restarts the kube-apiserver, because a new process has no earlier resource versions.
    fn forget(&self) {
        let mut running = self.running.borrow_mut();
        running.kill().unwrap();
        running.wait().unwrap();
        *running = spawned(PROGRAM, &self.args, &self.dir.path().join("server.log"));
        drop(running);
        self.wait();
    }
}

/// Returns the fields of a Node that fencing uses, without those that differ between a real and a fake API.
fn shown(node: &Node) -> String {
    let Node { name, addresses, annotations, taints, is_being_deleted, labels, .. } = node;
    let group = labels.get("node.deckhouse.io/group");
    let marks: Vec<&String> = taints.iter().filter(|key| key.contains("Autoscaler")).collect();
    format!("{name} {addresses:?} {annotations:?} {marks:?} {is_being_deleted} {group:?}")
}

/// Changes Nodes of `api` in a fixed order, and returns all that its lists, reads and watches show. The tests compare a real with
/// a fake API.
fn course(api: &dyn Api) -> Vec<String> {
    let access = api.access();
    let mut seen = Vec::new();
    let names = |nodes: Vec<Node>| nodes.into_iter().map(|node| node.name).collect::<Vec<_>>();
    seen.push(format!("{:?}", list(&access, LABEL, PATIENCE).map(names)));
    for name in ["a", "b", "c"] {
        api.put(name);
    }
    seen.push(format!("{:?}", list(&access, LABEL, PATIENCE).map(names)));
    seen.push(format!("{:?}", list(&access, "node.deckhouse.io/group=other", PATIENCE).map(names)));
    seen.push(format!("{:?}", read(&access, "x", PATIENCE)));
    let node = read(&access, "a", PATIENCE).unwrap().unwrap();
    seen.push(shown(&node));
    let mut changes = watch(&access, "a", &node.version, Duration::from_secs(60)).unwrap();
    api.edit("a", |node| node["metadata"]["annotations"] = json!({ "update.node.deckhouse.io/approved": "" }));
    api.edit("a", |node| {
        node["spec"]["taints"] = json!([{ "key": "ToBeDeletedByClusterAutoscaler", "effect": "NoSchedule" }]);
    });
    api.begin_to_delete("a");
    loop {
        match changes.next().unwrap() {
            Some(Change::Is(node)) => {
                seen.push(shown(&node));
                if node.is_being_deleted {
                    break;
                }
            }
            Some(Change::Version(_)) => {}
            other => panic!("{other:?}"),
        }
    }
    seen.dedup();
    let node = read(&access, "b", PATIENCE).unwrap().unwrap();
    let mut changes = watch(&access, "b", &node.version, Duration::from_secs(60)).unwrap();
    api.delete("b");
    loop {
        match changes.next().unwrap() {
            Some(Change::Version(_)) => {}
            Some(Change::Gone(version)) => break seen.push(format!("gone, version {}", version != node.version)),
            other => panic!("{other:?}"),
        }
    }
    api.forget();
    for version in ["1", &read(&access, "c", PATIENCE).unwrap().unwrap().version] {
        let too_old = watch(&access, "c", version, Duration::from_secs(60)).and_then(|mut changes| changes.next());
        seen.push(format!("{too_old:?}"));
    }
    let (node, version) = begin(&access, "c", PATIENCE).unwrap();
    seen.push(format!("{:?}", node.map(|node| node.name)));
    let mut changes = watch(&access, "c", &version, Duration::from_secs(60)).unwrap();
    api.edit("c", |node| node["metadata"]["annotations"] = json!({ "x": "y" }));
    seen.push(format!("{:?}", changes.next().map(|change| matches!(change, Some(Change::Is(_))))));
    seen.push(format!("{:?}", begin(&access, "x", PATIENCE).map(|(node, version)| (node, !version.is_empty()))));
    seen
}

#[test]
#[ignore = "needs a kube-apiserver: make fencing-nightly"]
fn a_kube_apiserver_shows_what_the_stand_in_shows() {
    let server = Server::start();
    let stand_in = StandIn::start(TcpListener::bind("127.0.0.1:0").unwrap());
    assert_eq!(course(&server), course(&stand_in));
    refuses(&server, &stand_in);
    pages(&server);
    bookmarks(&server);
}

fn refuses(server: &Server, stand_in: &StandIn) {
    let status = |access: &Access| match list(access, LABEL, PATIENCE) {
        Err(Failure::Refused { status, .. }) => status,
        other => panic!("{other:?}"),
    };
    for (token, expected) in [("wrong", 401), ("nobody", 403)] {
        assert_eq!(status(&server.with_token(token)), expected);
        stand_in.refuse(Some(expected));
        assert_eq!(status(&stand_in.access()), expected);
    }
}

/// Asserts that [`list`] returns all Nodes, even if one request is not enough for them.
fn pages(server: &Server) {
    for at in 0..120 {
        server.put(&format!("n{at}"));
    }
    // `a` is still being deleted.
    assert_eq!(list(&server.access, LABEL, PATIENCE).unwrap().len(), 122);
}

/// Asserts that a watch of an unchanged Node shows the resource version of another Node's change, and ends without an error.
fn bookmarks(server: &Server) {
    let (_, begun) = begin(&server.access, "c", PATIENCE).unwrap();
    let mut changes = watch(&server.access, "c", &begun, Duration::from_secs(15)).unwrap();
    server.put("another");
    let mut seen = Vec::new();
    while let Some(change) = changes.next().unwrap() {
        seen.push(change);
    }
    assert!(matches!(seen.as_slice(), [Change::Version(version), ..] if *version != begun), "{seen:?}");
}
