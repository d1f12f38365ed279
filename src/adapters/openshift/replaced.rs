//! The objects in OpenShift's API of a node with a machine that is replaced. Each object is saved, and only the saved object
//! itself is deleted.
//!
//! The new machine takes the name of the old one, and so do the objects that operators create for it. So a name does not identify
//! the machine. The `uid` does, and every deletion carries it. The Node's uid shows when the new machine has joined.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use zeroize::Zeroizing;

use super::bare_metal::{HOSTS, is_of};
use super::tnf::{JOBS, SECRETS};
use crate::adapters::kubernetes::api::{BODY_LIMIT, authorised, connect};
use crate::adapters::kubernetes::kubeconfig::Access;
use crate::os::wiped;
use crate::records::state_file;

/// The time limit of an answer. It is long, because the API server's etcd was standalone a moment ago and may be slow.
pub const PATIENCE: Duration = Duration::from_secs(10);
const NODES: &str = "/api/v1/nodes/";
const MACHINES: &str = "/apis/machine.openshift.io/v1beta1/namespaces/openshift-machine-api/machines";
/// The annotation by which a Machine names its host.
const HOST: &str = "/metadata/annotations/metal3.io~1BareMetalHost";
/// The prefixes of a node's certificates. The operator creates them again as soon as there is a Node of that name.
const CERTIFICATES: [&str; 3] = ["etcd-peer-", "etcd-serving-", "etcd-serving-metrics-"];
const JOBS_OF_A_NODE: [&str; 2] = ["tnf-auth-job-", "tnf-after-setup-job-"];
/// The number of times that an object is deleted again after a client has recreated it.
const ROUNDS: usize = 2;
/// The initial capacity for an object, which is usually smaller.
const ROOM: usize = 64 * 1024;

/// The old node's objects, as the state of a change records them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Replaced {
    /// The uid of the Node; `None` where it had none.
    pub node: Option<String>,
    pub saved: Vec<Saved>,
}

/// An object of the old node that was saved to a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Saved {
    pub path: String,
    pub uid: String,
    pub file: PathBuf,
}

/// The reason why a request to the API failed.
#[derive(Debug, PartialEq, Eq)]
pub enum Trouble {
    /// The failure may be temporary.
    Passes(String),
    Lasts(String),
}

/// The outcome of one step.
#[derive(Debug, PartialEq, Eq)]
pub enum Turn {
    Did(String),
    Waits(String),
    Over,
}

/// The relation of the present Node to the old one of that name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeIs {
    Absent,
    TheOld { ready: bool },
    New { ready: bool },
}

/// The API, for questions about one node.
#[derive(Debug)]
pub struct Api {
    agent: ureq::Agent,
    access: Access,
    node: String,
    address: String,
}

/// The fields of an object that are used. A Secret's contents are never copied.
#[derive(Deserialize)]
struct Object {
    metadata: Metadata,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    uid: String,
    resource_version: String,
    deletion_timestamp: Option<String>,
}

type Body = Zeroizing<Vec<u8>>;

impl Api {
    /// Connects to the API of `kubeconfig`, for the node of that name and address.
    pub fn of(kubeconfig: &Path, node: &str, address: String, patience: Duration) -> Result<Self, Trouble> {
        let (agent, access) = connect(kubeconfig, patience).map_err(Trouble::Lasts)?;
        is_plain(node)?;
        Ok(Self { agent, access, node: node.to_owned(), address })
    }

    /// Checks that the node's objects can be identified.
    pub fn find(&self) -> Result<(), Trouble> {
        self.node()?;
        self.host_and_machine().map(drop)
    }

    /// Saves all objects of the node below `directory`.
    pub fn save(&self, directory: &Path) -> Result<Replaced, Trouble> {
        let mut replaced = Replaced { node: self.node()?.map(|(uid, _)| uid), saved: Vec::new() };
        let (host, machine) = self.host_and_machine()?;
        let paths = self.certificates().chain(host).chain(machine).chain(self.jobs()?);
        for path in paths {
            self.keep(&mut replaced, path, directory)?;
        }
        Ok(replaced)
    }

    /// Performs the next step of the deletion.
    pub fn turn(&self, replaced: &mut Replaced, directory: &Path) -> Result<Turn, Trouble> {
        // The host is deleted before its Machine, because the Machine's deletion waits for the host.
        for kind in [SECRETS, HOSTS, MACHINES, JOBS] {
            for saved in replaced.saved.iter().filter(|saved| saved.path.starts_with(kind)) {
                let Some(body) = self.get(&saved.path)? else { continue };
                let found = object(&body)?;
                if found.uid != saved.uid {
                    continue;
                }
                if found.deletion_timestamp.is_some() {
                    return Ok(Turn::Waits(waits(saved, &body)));
                }
                self.delete(saved, &found.resource_version)?;
                return Ok(Turn::Did(format!("{} is deleted; it is saved as {}", saved.what(), saved.file.display())));
            }
        }
        // These are read before the Node is. Objects that exist while there is no Node were created for the old one.
        let left: Vec<String> = self.certificates().chain(self.jobs()?).collect();
        let mut found = Vec::new();
        for path in left {
            // An object that was saved before is already deleted, so this is another one.
            let rounds = replaced.saved.iter().filter(|saved| saved.path == path).count();
            if rounds < ROUNDS && self.get(&path)?.is_some() {
                found.push(path);
            }
        }
        match self.node_is(replaced)? {
            NodeIs::New { .. } => Ok(Turn::Over),
            NodeIs::TheOld { .. } => Ok(Turn::Waits(format!(
                "waits until the Node {0} is gone, with its Machine or by 'oc delete node {0}'",
                self.node
            ))),
            NodeIs::Absent => match found.into_iter().next() {
                None => Ok(Turn::Over),
                Some(path) => {
                    self.keep(replaced, path.clone(), directory)?;
                    Ok(Turn::Did(format!("{path} was made again for the old node, and is saved")))
                }
            },
        }
    }

    /// Compares the present Node with the old one.
    pub fn node_is(&self, replaced: &Replaced) -> Result<NodeIs, Trouble> {
        Ok(match self.node()? {
            None => NodeIs::Absent,
            Some((uid, ready)) if replaced.node.as_ref() == Some(&uid) => NodeIs::TheOld { ready },
            Some((_, ready)) => NodeIs::New { ready },
        })
    }

    /// Returns the Node's uid, and whether its kubelet reports that it is ready.
    fn node(&self) -> Result<Option<(String, bool)>, Trouble> {
        let Some(body) = self.get(&format!("{NODES}{}", self.node))? else { return Ok(None) };
        let uid = object(&body)?.uid;
        let node: Value = serde_json::from_slice(&body).map_err(|_| not_understood())?;
        let conditions = node.pointer("/status/conditions").and_then(Value::as_array);
        let is_ready = |one: &Value| one["type"] == "Ready" && one["status"] == "True";
        Ok(Some((uid, conditions.is_some_and(|all| all.iter().any(is_ready)))))
    }

    fn certificates(&self) -> impl Iterator<Item = String> {
        CERTIFICATES.iter().map(|name| format!("{SECRETS}{name}{}", self.node))
    }

    /// Returns the etcd operator's jobs for this node. The operator truncates the name of a job if the node's name is long.
    fn jobs(&self) -> Result<Vec<String>, Trouble> {
        let node = self.node.as_str();
        let is_its = |job: &Value, name: &str| {
            JOBS_OF_A_NODE.iter().any(|start| {
                name.strip_prefix(start)
                    .is_some_and(|rest| rest == node || text(job, "/spec/template/spec/nodeName") == Some(node))
            })
        };
        let jobs = self.list(JOBS)?;
        let names = jobs.iter().filter_map(|job| text(job, "/metadata/name").filter(|name| is_its(job, name)));
        Ok(names.map(|name| format!("{JOBS}/{name}")).collect())
    }

    /// Returns the BareMetalHost and the Machine. Fails if they cannot be identified for certain.
    fn host_and_machine(&self) -> Result<(Option<String>, Option<String>), Trouble> {
        let machines = self.list(MACHINES)?;
        let address = self.address.as_str();
        let has_address = |machine: &Value| {
            let all = machine.pointer("/status/addresses").and_then(Value::as_array);
            all.is_some_and(|all| all.iter().any(|one| one["address"] == address || one["address"] == *self.node))
        };
        let is_its = |machine: &&Value| match text(machine, "/status/nodeRef/name") {
            Some(node) => node == self.node,
            None => has_address(machine),
        };
        let machine = self.only("Machine", &machines.iter().filter(is_its).collect::<Vec<_>>())?;
        let called = machine.and_then(|machine| text(machine, "/metadata/name"));
        let annotated = machine.and_then(|machine| text(machine, HOST)?.rsplit('/').next());
        let hosts = self.list(HOSTS)?;
        let nodes = [self.node.clone()];
        let is_its = |host: &&Value| {
            let consumer = text(host, "/spec/consumerRef/name");
            let is_named = text(host, "/metadata/name") == annotated || is_of(host, &nodes);
            consumer.is_some() && consumer == called || is_named
        };
        let host = self.only("BareMetalHost", &hosts.iter().filter(is_its).collect::<Vec<_>>())?;
        if let Some(other) = host.and_then(|host| text(host, "/spec/consumerRef/name"))
            && Some(other) != called
        {
            return Err(Trouble::Lasts(format!(
                "the BareMetalHost of {} is that of another Machine, {other}: see 'oc get bmh -n openshift-machine-api'",
                self.node
            )));
        }
        let path = |list: &str, of: Option<&Value>| Some(format!("{list}/{}", text(of?, "/metadata/name")?));
        Ok((path(HOSTS, host), path(MACHINES, machine)))
    }

    fn only<'v>(&self, kind: &str, found: &[&'v Value]) -> Result<Option<&'v Value>, Trouble> {
        match *found {
            [] => Ok(None),
            [one] => Ok(Some(one)),
            _ => {
                let names: Vec<&str> = found.iter().filter_map(|one| text(one, "/metadata/name")).collect();
                Err(Trouble::Lasts(format!(
                    "{} has {} objects {kind}, {}: 'oc delete' those that are not meant",
                    self.node,
                    names.len(),
                    names.join(" and ")
                )))
            }
        }
    }

    /// Saves the object at `path`, if there is one, before it may be deleted.
    fn keep(&self, replaced: &mut Replaced, path: String, directory: &Path) -> Result<(), Trouble> {
        let mut words = path.rsplit('/');
        let (name, kind) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        is_plain(name)?;
        let Some(body) = self.get(&path)? else { return Ok(()) };
        let uid = object(&body)?.uid;
        is_plain(&uid)?;
        let file = directory.join(format!("{kind}-{name}-{uid}.json"));
        state_file::replace(&file, &body, 0o600)
            .map_err(|error| Trouble::Lasts(format!("{} cannot be written: {error}", file.display())))?;
        replaced.saved.push(Saved { path, uid, file });
        Ok(())
    }

    /// Deletes the saved object itself, in the version that was read. Another object with its name stays.
    fn delete(&self, saved: &Saved, version: &str) -> Result<(), Trouble> {
        let url = format!("{}{}", self.access.server, saved.path);
        // The pods of a job are deleted with it.
        let options = json!({
            "apiVersion": "v1", "kind": "DeleteOptions",
            "preconditions": {"uid": saved.uid, "resourceVersion": version}, "propagationPolicy": "Background",
        });
        let request = authorised(self.agent.delete(url).force_send_body(), &self.access);
        answered(request.content_type("application/json").send(options.to_string())).map(drop)
    }

    fn get(&self, path: &str) -> Result<Option<Body>, Trouble> {
        answered(authorised(self.agent.get(format!("{}{path}", self.access.server)), &self.access).call())
    }

    /// Lists objects. An API that the cluster does not have has none.
    fn list(&self, path: &str) -> Result<Vec<Value>, Trouble> {
        let Some(body) = self.get(path)? else { return Ok(Vec::new()) };
        let mut list: Value = serde_json::from_slice(&body).map_err(|_| not_understood())?;
        match list.get_mut("items").map(Value::take) {
            Some(Value::Array(items)) => Ok(items),
            _ => Err(not_understood()),
        }
    }
}

impl Saved {
    /// Returns the object's name in the form of `oc`.
    fn what(&self) -> String {
        let mut words = self.path.rsplit('/');
        let (name, kind) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        format!("{kind}/{name}")
    }
}

/// Returns the body of an answer; `None` where there is nothing.
fn answered(answer: Result<ureq::http::Response<ureq::Body>, ureq::Error>) -> Result<Option<Body>, Trouble> {
    let mut answer = answer.map_err(|error| Trouble::Passes(error.to_string()))?;
    let said = |status: u16| format!("the API answers {status}");
    match answer.status().as_u16() {
        200 | 202 => {}
        404 => return Ok(None),
        // The object has another version or was replaced, so it is read again. An API server that is starting or has no etcd
        // sends the others.
        status @ (409 | 429 | 500..=599) => return Err(Trouble::Passes(said(status))),
        status => return Err(Trouble::Lasts(said(status))),
    }
    let reader = answer.body_mut().with_config().limit(BODY_LIMIT).reader();
    wiped::read(reader, ROOM).map(Some).map_err(|error| Trouble::Passes(error.to_string()))
}

fn object(body: &Body) -> Result<Metadata, Trouble> {
    serde_json::from_slice::<Object>(body).map(|object| object.metadata).map_err(|_| not_understood())
}

/// Returns an error without any text of the answer, because that may be a key.
fn not_understood() -> Trouble {
    Trouble::Lasts("what the API answers is not understood".to_owned())
}

/// Refuses a name that could change a path that it becomes part of.
fn is_plain(name: &str) -> Result<(), Trouble> {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-.".contains(letter);
    if !name.is_empty() && name.chars().all(is_plain) && !name.starts_with('.') {
        return Ok(());
    }
    Err(Trouble::Lasts(format!("'{name}' is no name that Kubernetes has")))
}

fn waits(saved: &Saved, body: &Body) -> String {
    let what = saved.what();
    let object: Value = serde_json::from_slice(body).unwrap_or_default();
    let hooks =
        ["preDrain", "preTerminate"].map(|when| object.pointer(&format!("/spec/lifecycleHooks/{when}")).cloned());
    let hooks = hooks.iter().flatten().filter_map(Value::as_array).flatten();
    let names: Vec<&str> = hooks.filter_map(|hook| text(hook, "/name")).collect();
    if names.is_empty() || !saved.path.starts_with(MACHINES) {
        return format!("waits until {what} is gone");
    }
    format!("waits until {what} is gone, whose hook {} is still there", names.join(" and "))
}

fn text<'v>(object: &'v Value, pointer: &str) -> Option<&'v str> {
    object.pointer(pointer).and_then(Value::as_str)
}

#[cfg(test)]
mod tests;
