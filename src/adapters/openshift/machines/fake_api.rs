//! A fake of the Kubernetes API: objects with uids, versions and finalizers. It includes a controller that waits for hooks before
//! it deletes a Machine, the etcd operator's loop, and a second writer. The test decides when each of them acts.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};

use super::{ANNOTATION, Api, CONTROL_PLANE, HOOK, HOSTS, JOBS, MASTER, OPERATOR, OWNER, ROLE, SECRETS};

/// The kinds of objects that the fake API lists.
const LISTS: [&str; 9] = [
    "secrets",
    "machines",
    "baremetalhosts",
    "jobs",
    "nodehealthchecks",
    "machinehealthchecks",
    "fenceagentsremediations",
    "selfnoderemediations",
    "selfnoderemediationconfigs",
];

/// A running fake of the Kubernetes API with OpenShift's objects. The thread that serves requests shares the objects.
#[derive(Clone)]
pub(crate) struct FakeApi {
    pub(crate) server: String,
    objects: Arc<Mutex<Objects>>,
}

#[derive(Default)]
struct Objects {
    /// All objects, by API path.
    all: BTreeMap<String, Value>,
    version: u64,
    /// The API paths of the objects that were deleted by a request, in order.
    deletions: Vec<String>,
    /// The number of further requests that fail, and the status line with which they do; `None` if none fails.
    fails: Option<(usize, &'static str)>,
    has_operator: bool,
    /// The number of further patches and deletions before which the fake changes the object, as if another client did.
    writes_before: usize,
    patches: usize,
}

impl Objects {
    fn touch(&mut self, path: &str) {
        self.version += 1;
        let version = self.version.to_string();
        if let Some(object) = self.all.get_mut(path) {
            if object["metadata"]["uid"].is_null() {
                object["metadata"]["uid"] = json!(format!("uid-{version}"));
            }
            object["metadata"]["resourceVersion"] = json!(version);
        }
    }

    fn make(&mut self, path: &str, mut object: Value) {
        let mut words = path.rsplit('/');
        object["metadata"]["name"] = json!(words.next());
        if let Some(namespace) = words.nth(1).filter(|_| path.contains("/namespaces/")) {
            object["metadata"]["namespace"] = json!(namespace);
        }
        self.all.insert(path.to_owned(), object);
        self.touch(path);
    }

    /// Returns the status line and the body of the answer to a request.
    fn answer(&mut self, method: &str, path: &str, body: &str) -> (&'static str, String) {
        match &mut self.fails {
            Some((left @ 1.., status)) => {
                *left -= 1;
                return (status, "token, should it say it".to_owned());
            }
            _ => self.fails = None,
        }
        if path == OPERATOR && self.has_operator {
            return ("200 OK", "{}".to_owned());
        }
        match method {
            "PATCH" => return self.patch(path, body),
            "DELETE" => return self.delete(path, body),
            _ => {}
        }
        if let Some(object) = self.all.get(path) {
            return ("200 OK", object.to_string());
        }
        let Some((api, kind)) = path.rsplit_once('/').filter(|(_, kind)| LISTS.contains(kind)) else {
            return ("404 Not Found", String::new());
        };
        let is_its = |of: &str| of.starts_with(&format!("{api}/")) && of.contains(&format!("/{kind}/"));
        let items: Vec<&Value> = self.all.iter().filter(|(of, _)| is_its(of)).map(|(_, object)| object).collect();
        ("200 OK", json!({ "items": items }).to_string())
    }

    /// Deletes the object at `path`. An object with a finalizer only gets a deletion timestamp. Refuses a request that does not ask for the
    /// deletion of dependent objects, such as the pods of a job.
    fn delete(&mut self, path: &str, body: &str) -> (&'static str, String) {
        let options: Value = serde_json::from_str(body).unwrap();
        if options["propagationPolicy"] != "Background" {
            return ("422 Unprocessable Entity", String::new());
        }
        self.write_before(path);
        let Some(object) = self.all.get_mut(path) else { return ("404 Not Found", String::new()) };
        let fits = |what: &str| options["preconditions"][what] == object["metadata"][what];
        if !fits("uid") || !fits("resourceVersion") {
            return ("409 Conflict", String::new());
        }
        self.deletions.push(path.to_owned());
        if object["metadata"]["finalizers"].is_array() {
            object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
            self.touch(path);
            return ("202 Accepted", "{}".to_owned());
        }
        self.all.remove(path);
        ("200 OK", "{}".to_owned())
    }

    fn write_before(&mut self, path: &str) {
        if self.writes_before > 0 {
            self.writes_before -= 1;
            self.touch(path);
        }
    }

    fn patch(&mut self, path: &str, body: &str) -> (&'static str, String) {
        self.patches += 1;
        // A subresource is written to the object that it belongs to.
        let path = path.strip_suffix("/status").unwrap_or(path);
        self.write_before(path);
        let patch: Value = serde_json::from_str(body).unwrap();
        let Some(machine) = self.all.get_mut(path) else { return ("404 Not Found", String::new()) };
        if patch["metadata"]["resourceVersion"] != machine["metadata"]["resourceVersion"] {
            return ("409 Conflict", String::new());
        }
        merge(machine, &patch);
        self.touch(path);
        ("200 OK", self.all[path].to_string())
    }
}

/// Applies a JSON merge patch as RFC 7396 defines it.
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

impl FakeApi {
    pub(crate) fn start(has_operator: bool) -> Self {
        Self::at(TcpListener::bind("127.0.0.1:0").unwrap(), has_operator)
    }

    /// Starts a fake API that accepts connections on `listener`.
    pub(crate) fn at(listener: TcpListener, has_operator: bool) -> Self {
        let server = format!("http://{}", listener.local_addr().unwrap());
        let objects = Arc::new(Mutex::new(Objects { has_operator, ..Objects::default() }));
        let served = Arc::clone(&objects);
        std::thread::spawn(move || {
            listener.incoming().flatten().for_each(|stream| serve(&stream, &mut locked(&served)));
        });
        Self { server, objects }
    }

    fn path(api: Api, node: &str) -> String {
        format!("{}/namespaces/openshift-machine-api/machines/{node}-machine", api.path())
    }

    /// Adds a running control-plane Machine for `node`. It has a finalizer, so that it stays until [`Self::controller`] removes
    /// it.
    pub(crate) fn add(&self, api: Api, node: &str, address: &str) {
        let labels = match api {
            Api::Machine => json!({ROLE: MASTER}),
            Api::Cluster => json!({CONTROL_PLANE: ""}),
        };
        let machine = json!({
            "metadata": {"finalizers": ["machine"], "labels": labels},
            "spec": {},
            "status": {"phase": "Running", "nodeRef": {"name": node}, "addresses": [{"type": "InternalIP", "address": address}]},
        });
        locked(&self.objects).make(&Self::path(api, node), machine);
    }

    /// Adds a running Machine for the worker `node`.
    pub(crate) fn add_worker(&self, api: Api, node: &str, address: &str) {
        self.add(api, node, address);
        self.change(api, node, |machine| machine["metadata"]["labels"] = json!({ROLE: "worker"}));
    }

    /// Adds the ConfigMap in which OpenShift's installer leaves the install config `text`.
    pub(crate) fn add_install_config(&self, text: &str) {
        let path = "/api/v1/namespaces/kube-system/configmaps/cluster-config-v1";
        self.make(path, json!({"data": {"install-config": text}}));
    }

    /// Adds the Node, the BareMetalHost and the Machine of an OpenShift node. [`Self::operator`] adds the etcd operator's
    /// objects.
    pub(crate) fn add_node(&self, node: &str, address: &str) {
        self.add(Api::Machine, node, address);
        let ready = json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}});
        let host = json!({
            "metadata": {"finalizers": ["baremetalhost"]}, "spec": {"consumerRef": {"name": format!("{node}-machine")}}
        });
        let mut objects = locked(&self.objects);
        objects.make(&format!("/api/v1/nodes/{node}"), ready);
        objects.make(&format!("{HOSTS}/{node}-host"), host);
    }

    /// Sets the condition `Ready` of the Node `node` to `Unknown`, as when its kubelet has stopped.
    pub(crate) fn stop_kubelet(&self, node: &str) {
        self.put(&format!("/api/v1/nodes/{node}"), |node| node["status"]["conditions"][0]["status"] = json!("Unknown"));
    }

    pub(crate) fn change(&self, api: Api, node: &str, change: impl FnOnce(&mut Value)) {
        self.put(&Self::path(api, node), change);
    }

    pub(crate) fn put(&self, path: &str, change: impl FnOnce(&mut Value)) {
        let mut objects = locked(&self.objects);
        change(objects.all.get_mut(path).unwrap());
        objects.touch(path);
    }

    pub(crate) fn make(&self, path: &str, object: Value) {
        locked(&self.objects).make(path, object);
    }

    /// Returns the object at `path`; `None` if there is none.
    pub(crate) fn get(&self, path: &str) -> Option<Value> {
        locked(&self.objects).all.get(path).cloned()
    }

    pub(crate) fn remove(&self, path: &str) {
        locked(&self.objects).all.remove(path);
    }

    /// Returns the API paths of all objects.
    pub(crate) fn paths(&self) -> Vec<String> {
        locked(&self.objects).all.keys().cloned().collect()
    }

    pub(crate) fn deletions(&self) -> Vec<String> {
        locked(&self.objects).deletions.clone()
    }

    /// Answers the next `count` requests with the status line `status`.
    pub(crate) fn fail(&self, count: usize, status: &'static str) {
        locked(&self.objects).fails = Some((count, status));
    }

    /// Marks the Machine of `node` as being deleted, as `oc delete machine` does. The Machine stays, because it has a finalizer.
    pub(crate) fn delete(&self, api: Api, node: &str) {
        self.change(api, node, |machine| machine["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z"));
    }

    /// Returns the Machine of `node` in `api`; `None` if there is none.
    pub(crate) fn machine(&self, api: Api, node: &str) -> Option<Value> {
        self.get(&Self::path(api, node))
    }

    /// Acts once as the controllers of Kubernetes. Objects that are being deleted disappear, except Machines with a hook. Together with a
    /// Machine, its Node disappears.
    pub(crate) fn controller(&self) {
        let mut objects = locked(&self.objects);
        let mut nodes = Vec::new();
        objects.all.retain(|path, object| {
            let hooks = object.pointer("/spec/lifecycleHooks/preDrain").and_then(Value::as_array);
            let has_hook = hooks.is_some_and(|hooks| !hooks.is_empty())
                || object.pointer("/metadata/annotations").is_some_and(|all| all.get(ANNOTATION).is_some());
            let stays = object.pointer("/metadata/deletionTimestamp").is_none() || has_hook;
            if !stays && path.contains("/machines/") {
                nodes.extend(object.pointer("/status/nodeRef/name").and_then(Value::as_str).map(str::to_owned));
            }
            stays
        });
        for node in nodes {
            objects.all.remove(&format!("/api/v1/nodes/{node}"));
        }
    }

    /// Returns the API paths of the objects that the etcd operator creates for `node`.
    pub(crate) fn made_for(node: &str) -> [String; 5] {
        let secret = |name: &str| format!("{SECRETS}{name}-{node}");
        let job = |name: &str| format!("{JOBS}/tnf-{name}-job-{node}");
        [secret("etcd-peer"), secret("etcd-serving"), secret("etcd-serving-metrics"), job("auth"), job("after-setup")]
    }

    /// Acts once as the etcd operator. Each Node gets its certificates and jobs. Each Machine gets the operator's hook if
    /// `members` has its node, and loses it otherwise.
    pub(crate) fn operator(&self, members: &[&str]) {
        let mut objects = locked(&self.objects);
        let nodes: Vec<String> =
            objects.all.keys().filter_map(|path| path.strip_prefix("/api/v1/nodes/").map(str::to_owned)).collect();
        for path in nodes.iter().flat_map(|node| Self::made_for(node)) {
            if !objects.all.contains_key(&path) {
                objects.make(&path, json!({"data": {"tls.key": "a2V5"}}));
            }
        }
        for (_, machine) in objects.all.iter_mut().filter(|(path, _)| path.contains("/machines/")) {
            let node = machine["status"]["nodeRef"]["name"].as_str().unwrap_or_default();
            let hooks = if members.contains(&node) { json!([{"name": HOOK, "owner": OWNER}]) } else { json!([]) };
            machine["spec"]["lifecycleHooks"]["preDrain"] = hooks;
        }
    }

    /// Changes the object, as if another client did, just before each of the next `count` patches and deletions.
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
            line.trim().clone_into(&mut head[0]);
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
