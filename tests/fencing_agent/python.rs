//! A Python client with the installed definition, and without any code of this program, receives the events of the
//! agents.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::cluster::{Cluster, eventually};
use crate::namespaces::{self, program};

/// The path of the gRPC definition that `make install` installs. `tests/packages` checks the path in the packages.
const DEFINITION: &str = "metadata/fencing.proto";
/// The tolerance of compared times, in seconds. The agent uses the time since boot, while the wall clock is slewed.
const SLEWED: f64 = 0.05;
const PYTHON: &str = "target/fencing/venv/bin/python-with-grpc";

/// A Python client of the agent's gRPC interface. Its output goes to a file.
pub(crate) struct Client {
    child: Child,
    file: PathBuf,
}

impl Client {
    pub(crate) fn start(cluster: &Cluster, node: usize, more: &[&str]) -> Self {
        assert!(at(PYTHON).exists(), "{PYTHON} is missing: type 'tests/fencing_agent/setup'");
        let file = cluster.nodes[node].path("heard");
        let mut python = program(at(PYTHON));
        python
            .arg(at("tests/fencing_agent/client.py"))
            .args([cluster.nodes[node].path("s"), at(DEFINITION)])
            .args(more);
        python.stdin(Stdio::null()).stdout(File::create(&file).unwrap());
        Self { child: python.spawn().unwrap(), file }
    }

    pub(crate) fn must_be_there(&self) {
        eventually("Python has no list", || !self.lines().is_empty());
    }

    pub(crate) fn lines(&self) -> Vec<Value> {
        let text = fs::read_to_string(&self.file).unwrap_or_default();
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn at(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn seconds() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs_f64()
}

fn node(at: usize) -> Value {
    json!({"name": format!("n{at}"), "addresses": {"e0": format!("10.0.0.{at}")}, "prevDisconnectTime": null})
}

/// Waits for the event in line `number` of the client's output. Asserts that the event fits an action that began at `began`, in
/// seconds since 1970.
fn must_hear(client: &Client, number: usize, kind: &str, about: &Value, began: f64, now: &[&str]) -> Value {
    eventually(&format!("{kind} is not heard: {:?}", client.lines()), || client.lines().len() > number);
    let heard = client.lines().swap_remove(number);
    assert_eq!((&heard["type"], &heard["node"]["name"]), (&json!(kind), &about["name"]), "{heard}");
    assert_eq!(heard["node"]["addresses"], about["addresses"], "{heard}");
    let at = heard["time"].as_f64().unwrap();
    assert!((began - SLEWED..seconds() + SLEWED).contains(&at), "since {began}: {heard}");
    let source = heard["source"].as_str().unwrap_or_default();
    assert!(["n1", "n2", "n3"].contains(&source), "{heard}");
    assert_eq!(heard["now"], json!(now), "{heard}");
    heard
}

#[test]
#[ignore = "needs tests/fencing_agent/setup: make real"]
fn python_hears_what_was_done() {
    namespaces::run(module_path!(), "python_hears_what_was_done", 100, || {
        let mut cluster = Cluster::new(3, 1, "", "");
        cluster.start_all();
        cluster.must_reach(&[0, 1, 2], 3);
        let mut client = Client::start(&cluster, 0, &["with-list"]);
        client.must_be_there();
        assert_eq!(client.lines(), [json!({"nodes": [node(1), node(2), node(3)]})]);
        let cut = seconds();
        cluster.cut(0, &[2]);
        let left = must_hear(&client, 1, "LEFT", &node(3), cut, &["n1", "n2"]);
        let healed = seconds();
        cluster.heal(0, &[2]);
        let join = must_hear(&client, 2, "JOIN", &node(3), healed, &["n1", "n2", "n3"]);
        let gone = join["node"]["prevDisconnectTime"].as_f64().unwrap();
        assert!((gone - left["time"].as_f64().unwrap()).abs() < 0.1, "{left}: {join}");
        let ended = seconds();
        cluster.nodes[1].signal(Signal::SIGTERM);
        must_hear(&client, 3, "LEFT", &node(2), ended, &["n1", "n3"]);
        cluster.nodes[0].signal(Signal::SIGTERM);
        eventually("the stream does not end", || client.lines().last().is_some_and(|line| line["code"].is_string()));
        assert_eq!(client.lines().len(), 5, "{:?}", client.lines());
        assert_eq!(client.lines()[4], json!({"code": "UNAVAILABLE"}));
        eventually("Python does not end", || client.child.try_wait().unwrap().is_some());
    });
}
