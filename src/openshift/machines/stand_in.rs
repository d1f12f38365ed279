//! A stand-in for the Kubernetes API: Machines with versions and finalizers, a controller that waits for hooks before it lets one go,
//! the etcd operator's loop, and a second writer. Whoever tests says when each of them has its turn.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};

use super::{ANNOTATION, Api, HOOK, OPERATOR, OWNER};

/// The API; its objects are shared with the thread that serves them.
#[derive(Clone)]
pub(crate) struct StandIn {
    pub(crate) server: String,
    objects: Arc<Mutex<Objects>>,
}

#[derive(Default)]
struct Objects {
    /// By path.
    machines: BTreeMap<String, Value>,
    version: u64,
    has_operator: bool,
    /// Somebody else writes just before each of so many patches.
    writes_before: usize,
    patches: usize,
}

impl Objects {
    fn touch(&mut self, path: &str) {
        self.version += 1;
        if let Some(machine) = self.machines.get_mut(path) {
            machine["metadata"]["resourceVersion"] = json!(self.version.to_string());
        }
    }

    /// A line and a body, as the API server answers.
    fn answer(&mut self, method: &str, path: &str, body: &str) -> (&'static str, String) {
        if path == OPERATOR && self.has_operator {
            return ("200 OK", "{}".to_owned());
        }
        if method == "PATCH" {
            return self.patch(path, body);
        }
        let Some(api) = path.strip_suffix("/machines") else { return ("404 Not Found", String::new()) };
        let items: Vec<&Value> = self
            .machines
            .iter()
            .filter(|(of, _)| of.starts_with(&format!("{api}/")))
            .map(|(_, machine)| machine)
            .collect();
        ("200 OK", json!({ "items": items }).to_string())
    }

    fn patch(&mut self, path: &str, body: &str) -> (&'static str, String) {
        self.patches += 1;
        if self.writes_before > 0 {
            self.writes_before -= 1;
            self.touch(path);
        }
        let patch: Value = serde_json::from_str(body).unwrap();
        let Some(machine) = self.machines.get_mut(path) else { return ("404 Not Found", String::new()) };
        if patch["metadata"]["resourceVersion"] != machine["metadata"]["resourceVersion"] {
            return ("409 Conflict", String::new());
        }
        merge(machine, &patch);
        self.touch(path);
        ("200 OK", self.machines[path].to_string())
    }
}

/// RFC 7396.
fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(fields) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    for (key, value) in fields {
        if value.is_null() {
            target.as_object_mut().unwrap().remove(key);
        } else {
            merge(target.as_object_mut().unwrap().entry(key.clone()).or_insert(Value::Null), value);
        }
    }
}

impl StandIn {
    pub(crate) fn start(has_operator: bool) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = format!("http://{}", listener.local_addr().unwrap());
        let objects = Arc::new(Mutex::new(Objects { has_operator, ..Objects::default() }));
        let served = Arc::clone(&objects);
        std::thread::spawn(move || {
            listener.incoming().flatten().for_each(|stream| serve(&stream, &mut locked(&served)));
        });
        Self { server, objects }
    }

    fn path(api: Api, node: &str) -> String {
        format!("{}/namespaces/ns/machines/{node}-machine", api.path())
    }

    /// A running Machine of `node`, which its controller keeps by a finalizer.
    pub(crate) fn add(&self, api: Api, node: &str, address: &str) {
        let machine = json!({
            "metadata": {"name": format!("{node}-machine"), "namespace": "ns", "finalizers": ["machine"]},
            "spec": {},
            "status": {"phase": "Running", "nodeRef": {"name": node}, "addresses": [{"type": "InternalIP", "address": address}]},
        });
        let path = Self::path(api, node);
        let mut objects = locked(&self.objects);
        objects.machines.insert(path.clone(), machine);
        objects.touch(&path);
    }

    pub(crate) fn change(&self, api: Api, node: &str, change: impl FnOnce(&mut Value)) {
        let path = Self::path(api, node);
        let mut objects = locked(&self.objects);
        change(objects.machines.get_mut(&path).unwrap());
        objects.touch(&path);
    }

    /// `oc delete machine`: it stays while it has a finalizer.
    pub(crate) fn delete(&self, api: Api, node: &str) {
        self.change(api, node, |machine| machine["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z"));
    }

    /// The Machine, while it is there.
    pub(crate) fn machine(&self, api: Api, node: &str) -> Option<Value> {
        locked(&self.objects).machines.get(&Self::path(api, node)).cloned()
    }

    /// The controller's turn: a Machine that is being deleted goes once it has no hook.
    pub(crate) fn controller(&self) {
        locked(&self.objects).machines.retain(|_, machine| {
            let hooks = machine.pointer("/spec/lifecycleHooks/preDrain").and_then(Value::as_array);
            let has_hook = hooks.is_some_and(|hooks| !hooks.is_empty())
                || machine.pointer("/metadata/annotations").is_some_and(|all| all.get(ANNOTATION).is_some());
            machine.pointer("/metadata/deletionTimestamp").is_none() || has_hook
        });
    }

    /// The etcd operator's turn: its hook is on each Machine whose node has a member, and on no other one that is being deleted.
    pub(crate) fn operator(&self, members: &[&str]) {
        let mut objects = locked(&self.objects);
        for machine in objects.machines.values_mut() {
            let node = machine["status"]["nodeRef"]["name"].as_str().unwrap_or_default();
            let hooks = if members.contains(&node) { json!([{"name": HOOK, "owner": OWNER}]) } else { json!([]) };
            machine["spec"]["lifecycleHooks"]["preDrain"] = hooks;
        }
    }

    /// Somebody else writes just before each of the next `count` patches.
    pub(crate) fn writes_before(&self, count: usize) {
        locked(&self.objects).writes_before = count;
    }

    pub(crate) fn patches(&self) -> usize {
        locked(&self.objects).patches
    }
}

fn locked(objects: &Mutex<Objects>) -> MutexGuard<'_, Objects> {
    objects.lock().unwrap_or_else(PoisonError::into_inner)
}

fn serve(stream: &TcpStream, objects: &mut Objects) {
    let mut reader = BufReader::new(stream);
    let mut head = Vec::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).is_err() || line.trim().is_empty() {
            break;
        }
        head.push(line.trim().to_ascii_lowercase());
        if head.len() == 1 {
            head[0] = line.trim().to_owned();
        }
    }
    let length = head.iter().find_map(|line| line.strip_prefix("content-length:")?.trim().parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    let mut words = head.first().map(String::as_str).unwrap_or_default().split(' ');
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let (status, answer) = objects.answer(method, path, &String::from_utf8(body).unwrap());
    let text = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{answer}", answer.len());
    let mut stream = stream;
    let _ = stream.write_all(text.as_bytes());
}
