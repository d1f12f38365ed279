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

/// The time limit of a request. It is long, because the API server's etcd was standalone a moment before and may be slow.
pub const PATIENCE: Duration = Duration::from_secs(10);
const NODES: &str = "/api/v1/nodes/";
const MACHINES: &str = "/apis/machine.openshift.io/v1beta1/namespaces/openshift-machine-api/machines";
/// The JSON pointer to the annotation in which a Machine names its BareMetalHost.
const HOST: &str = "/metadata/annotations/metal3.io~1BareMetalHost";
/// The prefixes of the names of a node's certificates. As soon as there is a Node of that name, the etcd operator creates the certificates.
const CERTIFICATES: [&str; 3] = ["etcd-peer-", "etcd-serving-", "etcd-serving-metrics-"];
const JOBS_OF_A_NODE: [&str; 2] = ["tnf-auth-job-", "tnf-after-setup-job-"];
/// The greatest number of times that the object at one path is saved and deleted. An object that another client recreates after that stays.
const ROUNDS: usize = 2;
/// The initial size in bytes of the buffer for an object. Most objects are smaller. A buffer that must grow leaves copies of the object in
/// memory.
const ROOM: usize = 64 * 1024;

/// The objects of a node with a machine that is replaced, and the files to which they were saved.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Replaced {
    /// The uid of the Node; `None` if there was no Node.
    pub node: Option<String>,
    pub saved: Vec<Saved>,
}

/// An object of the replaced node, which was saved to a file before it is deleted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Saved {
    pub path: String,
    pub uid: String,
    pub file: PathBuf,
}

/// The reason why a request to the Kubernetes API failed.
#[derive(Debug, PartialEq, Eq)]
pub enum Trouble {
    /// The request may succeed later. The text is the error.
    Passes(String),
    Lasts(String),
}

/// The result of one step of deleting the replaced node's objects.
#[derive(Debug, PartialEq, Eq)]
pub enum Turn {
    Did(String),
    Waits(String),
    Over,
}

/// The relation of the Node that exists now to the Node of the replaced machine. Both have the same name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeIs {
    Absent,
    TheOld { ready: bool },
    New { ready: bool },
}

/// A client of the Kubernetes API, with the name and the address of the node with the machine that is replaced.
#[derive(Debug)]
pub struct Api {
    agent: ureq::Agent,
    access: Access,
    node: String,
    address: String,
}

/// The fields of a Kubernetes object that this program reads. The contents of a Secret are never copied.
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
    /// Creates a client from `kubeconfig`, for the node with this name and address.
    pub fn of(kubeconfig: &Path, node: &str, address: String, patience: Duration) -> Result<Self, Trouble> {
        let (agent, access) = connect(kubeconfig, patience).map_err(Trouble::Lasts)?;
        is_plain(node)?;
        Ok(Self { agent, access, node: node.to_owned(), address })
    }

    /// Checks that the API answers, and that the node's BareMetalHost and Machine can be identified.
    pub fn find(&self) -> Result<(), Trouble> {
        self.node()?;
        self.host_and_machine().map(drop)
    }

    /// Saves all objects of the node to files in `directory`.
    pub fn save(&self, directory: &Path) -> Result<Replaced, Trouble> {
        let mut replaced = Replaced { node: self.node()?.map(|(uid, _)| uid), saved: Vec::new() };
        let (host, machine) = self.host_and_machine()?;
        let paths = self.certificates().chain(host).chain(machine).chain(self.jobs()?);
        for path in paths {
            self.keep(&mut replaced, path, directory)?;
        }
        Ok(replaced)
    }

    /// Performs the next step of deleting the node's objects. An object that was recreated for the old node is saved first.
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

    /// Returns whether the node's Node is absent, still that of the old machine, or that of a new one.
    pub fn node_is(&self, replaced: &Replaced) -> Result<NodeIs, Trouble> {
        Ok(match self.node()? {
            None => NodeIs::Absent,
            Some((uid, ready)) if replaced.node.as_ref() == Some(&uid) => NodeIs::TheOld { ready },
            Some((_, ready)) => NodeIs::New { ready },
        })
    }

    /// Returns the uid of the node's Node, and whether its kubelet reports that it is ready; `None` if there is no Node.
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

    /// Returns the API paths of the etcd operator's jobs for this node. For a node with a long name, the operator shortens the names of the
    /// jobs. Such a job is recognised by the node in its pod template.
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

    /// Returns the API paths of the node's BareMetalHost and Machine, each `None` if there is none. Returns an error if several
    /// objects match.
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

    /// Saves the object at `path` to a file, and adds it to `replaced`. Does nothing if there is no such object.
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

    /// Deletes the saved object, if its resource version is `version`. A newer object with the same name stays.
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

    /// Returns the objects in the list at `path`; none if the cluster does not have this API.
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
    /// Returns the object's kind and name, as in `machines/node2`.
    fn what(&self) -> String {
        let mut words = self.path.rsplit('/');
        let (name, kind) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        format!("{kind}/{name}")
    }
}

/// Returns the body of the answer to a request; `None` if the status is 404.
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

/// Returns the error for an answer that cannot be parsed. It does not quote the answer, which may be a key.
fn not_understood() -> Trouble {
    Trouble::Lasts("what the API answers is not understood".to_owned())
}

/// Returns an error for a name that would change the meaning of a path that contains it.
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
