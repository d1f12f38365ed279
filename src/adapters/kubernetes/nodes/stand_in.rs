//! A fake Kubernetes API with Nodes and their versions, lists by label in pages, and watches with bookmarks. It can refuse
//! requests, forget versions, end watches or cut them off, and stop answering.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};

/// A running fake of the Kubernetes API. Its threads, one for each connection, share its objects.
#[derive(Clone)]
pub(crate) struct StandIn {
    pub(crate) server: String,
    shared: Arc<(Mutex<Objects>, Condvar)>,
}

#[derive(Default)]
struct Objects {
    nodes: BTreeMap<String, Value>,
    version: u64,
    /// The changes of Nodes: the resource version, the kind of the watch event, and the Node.
    changes: Vec<(u64, &'static str, Value)>,
    /// The resource version before which no watch can begin.
    forgotten: u64,
    /// The HTTP status with which every request is refused; `None` to serve requests.
    refuses: Option<u16>,
    /// True while the fake answers no request and sends no event to a watch.
    is_silent: bool,
    /// The number of times that a test has ended all watches. A watch ends once this number has grown since its beginning.
    ends: u64,
    /// True while a watch that ends loses its connection in the middle of an event.
    is_cut_off: bool,
    asked: Vec<String>,
}

impl StandIn {
    pub(crate) fn start(listener: TcpListener) -> Self {
        let server = format!("http://{}", listener.local_addr().unwrap());
        let api = Self { server, shared: Arc::default() };
        let serving = api.clone();
        std::thread::spawn(move || {
            for socket in listener.incoming().flatten() {
                let api = serving.clone();
                std::thread::spawn(move || api.serve(&socket));
            }
        });
        api
    }

    fn objects(&self) -> MutexGuard<'_, Objects> {
        self.shared.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut Objects)) {
        change(&mut self.objects());
        self.shared.1.notify_all();
    }

    /// Creates the Node `name`, or replaces it.
    pub(crate) fn put(&self, name: &str, uid: &str, address: &str, group: &str) {
        let node = json!({
            "metadata": { "name": name, "uid": uid, "labels": { "node.deckhouse.io/group": group } },
            "status": { "addresses": [
                { "type": "Hostname", "address": name },
                { "type": "InternalIP", "address": address },
            ] },
        });
        self.set(name, |_| node);
    }

    /// Changes the JSON of the Node `name` by `edit`.
    pub(crate) fn edit(&self, name: &str, edit: impl FnOnce(&mut Value)) {
        self.set(name, |node| {
            let mut node = node.unwrap_or_default();
            edit(&mut node);
            node
        });
    }

    fn set(&self, name: &str, make: impl FnOnce(Option<Value>) -> Value) {
        self.change(|objects| {
            objects.version += 1;
            let before = objects.nodes.get(name).cloned();
            let kind = if before.is_some() { "MODIFIED" } else { "ADDED" };
            let mut node = make(before);
            node["metadata"]["resourceVersion"] = json!(objects.version.to_string());
            objects.nodes.insert(name.to_owned(), node.clone());
            objects.changes.push((objects.version, kind, node));
        });
    }

    pub(crate) fn delete(&self, name: &str) {
        self.change(|objects| {
            objects.version += 1;
            if let Some(mut node) = objects.nodes.remove(name) {
                node["metadata"]["resourceVersion"] = json!(objects.version.to_string());
                objects.changes.push((objects.version, "DELETED", node));
            }
        });
    }

    /// Refuses every request with the HTTP status `status` from now on; serves requests again if it is `None`.
    pub(crate) fn refuse(&self, status: Option<u16>) {
        self.change(|objects| objects.refuses = status);
    }

    /// Answers no request and sends no event from now on; answers again if `is_silent` is false.
    pub(crate) fn fall_silent(&self, is_silent: bool) {
        self.change(|objects| objects.is_silent = is_silent);
    }

    /// Forgets all earlier resource versions, so that a watch from one of them ends with status 410. Ends all watches.
    pub(crate) fn forget(&self) {
        self.change(|objects| {
            objects.version += 1;
            objects.forgotten = objects.version;
            objects.ends += 1;
        });
    }

    pub(crate) fn end_watches(&self) {
        self.change(|objects| objects.ends += 1);
    }

    /// Closes the connections of all watches in the middle of an event, as a failing load balancer does.
    pub(crate) fn cut_watches_off(&self) {
        self.change(|objects| {
            objects.is_cut_off = true;
            objects.ends += 1;
        });
    }

    /// Returns the paths of all requests so far, in order.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.objects().asked.clone()
    }

    /// Serves the one request of a connection.
    fn serve(&self, socket: &TcpStream) -> Option<()> {
        let mut lines = BufReader::new(socket.try_clone().ok()?).lines();
        let request = lines.next()?.ok()?;
        while !lines.next()?.ok()?.is_empty() {}
        let target = request.split(' ').nth(1)?.to_owned();
        let mut objects = self.objects();
        objects.asked.push(target.clone());
        while objects.is_silent {
            objects = self.shared.1.wait(objects).ok()?;
        }
        let refused = objects.refuses;
        drop(objects);
        let (path, query) = target.split_once('?').unwrap_or((&target, ""));
        let asked: BTreeMap<String, String> = query
            .split('&')
            .filter_map(|pair| pair.split_once('='))
            .map(|(key, value)| (key.to_owned(), decoded(value)))
            .collect();
        if let Some(status) = refused {
            return answer(socket, status, &status_of(status, "no"));
        }
        match (path.strip_prefix("/api/v1/nodes"), asked.contains_key("watch")) {
            (Some(""), true) => self.watch(socket, &asked),
            (Some(""), false) => answer(socket, 200, &self.list(&asked)),
            (Some(name), _) => match self.objects().nodes.get(&decoded(name.trim_start_matches('/'))) {
                Some(node) => answer(socket, 200, node),
                None => answer(socket, 404, &status_of(404, "not found")),
            },
            (None, _) => answer(socket, 404, &status_of(404, "not found")),
        }
    }

    /// Returns a list of Nodes in pages of two, so that a list of three Nodes has a second page.
    fn list(&self, asked: &BTreeMap<String, String>) -> Value {
        const PAGE: usize = 2;
        let objects = self.objects();
        let label = asked.get("labelSelector").map(String::as_str).unwrap_or_default();
        let (key, value) = label.split_once('=').unwrap_or((label, ""));
        let from: usize = asked.get("continue").and_then(|from| from.parse().ok()).unwrap_or_default();
        let name = asked.get("fieldSelector").and_then(|selector| selector.strip_prefix("metadata.name="));
        let is_wanted = |node: &&Value| match name {
            Some(name) => node["metadata"]["name"] == name,
            None => node["metadata"]["labels"][key] == value,
        };
        let found: Vec<&Value> = objects.nodes.values().filter(is_wanted).skip(from).collect();
        let more = if found.len() > PAGE { (from + PAGE).to_string() } else { String::new() };
        let items = if found.is_empty() { Value::Null } else { json!(found[..found.len().min(PAGE)]) };
        json!({
            "metadata": { "resourceVersion": objects.version.to_string(), "continue": more },
            "items": items,
        })
    }

    fn watch(&self, mut socket: &TcpStream, asked: &BTreeMap<String, String>) -> Option<()> {
        let name = asked.get("fieldSelector")?.strip_prefix("metadata.name=")?.to_owned();
        let mut seen: u64 = asked.get("resourceVersion")?.parse().ok()?;
        write!(socket, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
            .ok()?;
        let mut objects = self.objects();
        let ends = objects.ends;
        loop {
            let gone = json!({ "type": "ERROR", "object": status_of(410, "too old resource version") });
            if seen < objects.forgotten {
                chunk(socket, &gone)?;
                break;
            }
            let mut new: Vec<Value> = Vec::new();
            for (version, kind, node) in objects.changes.iter().filter(|(version, ..)| *version > seen) {
                if node["metadata"]["name"] == name.as_str() {
                    new.push(json!({ "type": kind, "object": node }));
                } else {
                    let bookmark = json!({ "metadata": { "resourceVersion": version.to_string() } });
                    new.push(json!({ "type": "BOOKMARK", "object": bookmark }));
                }
            }
            seen = objects.version.max(seen);
            if !objects.is_silent {
                for event in new {
                    chunk(socket, &event)?;
                }
            }
            if objects.ends != ends && objects.is_cut_off {
                // The chunk is announced as longer, and the connection ends with this function.
                return write!(socket, "40\r\n{{\"type\":\"MODIFIED\",").ok();
            }
            if objects.ends != ends {
                break;
            }
            objects = self.shared.1.wait_timeout(objects, Duration::from_secs(1)).ok()?.0;
        }
        write!(socket, "0\r\n\r\n").ok()
    }
}

fn status_of(code: u16, message: &str) -> Value {
    json!({ "kind": "Status", "status": "Failure", "code": code, "message": message })
}

fn chunk(mut socket: &TcpStream, event: &Value) -> Option<()> {
    let line = format!("{event}\n");
    write!(socket, "{:x}\r\n{line}\r\n", line.len()).ok()
}

fn answer(mut socket: &TcpStream, status: u16, body: &Value) -> Option<()> {
    let body = body.to_string();
    let length = body.len();
    write!(socket, "HTTP/1.1 {status} Any\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}").ok()
}

fn decoded(text: &str) -> String {
    percent_encoding::percent_decode_str(text).decode_utf8_lossy().into_owned()
}
