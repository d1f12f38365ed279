//! The control plane's Machines of a cluster: the Machine of a node, whether it is being deleted, and the hook that delays its
//! deletion until it is removed. The Kubernetes API is read and written. A change names the version that it is based on.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use crate::adapters::kubernetes::api::{CONFLICT, TRIES, authorised, body, connect, list, words};
use crate::adapters::kubernetes::kubeconfig::Access;
use crate::base::json;

/// The annotation that delays the deletion of a Machine of the Cluster API, until it is removed.
const ANNOTATION: &str = "pre-drain.delete.hook.machine.cluster.x-k8s.io/etcd-quorum";
/// The name of a pre-drain hook in the Machine API. OpenShift deletes a Machine with such a hook only after the hook is removed.
/// OpenShift's etcd operator uses the same name and owner.
const HOOK: &str = "EtcdQuorumOperator";
const OWNER: &str = "clusteroperator/etcd";
/// The API path of an object that exists if OpenShift's etcd operator manages the pre-drain hooks of Machines itself.
const OPERATOR: &str = "/apis/config.openshift.io/v1/clusteroperators/etcd";
const NODES: &str = "/api/v1/nodes/";
/// The label by which the Machine API marks a Machine's role.
const ROLE: &str = "machine.openshift.io/cluster-api-machine-role";
/// The value of the label [`ROLE`] on Machines of the control plane.
const MASTER: &str = "master";
/// The label by which the Cluster API marks Machines of the control plane, with any value.
const CONTROL_PLANE: &str = "cluster.x-k8s.io/control-plane";
const OK: u16 = 200;

/// The Kubernetes API to which a Machine belongs: the Machine API or the Cluster API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Api {
    Machine,
    Cluster,
}

impl Api {
    fn path(self) -> &'static str {
        match self {
            Self::Machine => "/apis/machine.openshift.io/v1beta1",
            Self::Cluster => "/apis/cluster.x-k8s.io/v1beta1",
        }
    }
}

/// A Machine, as the Kubernetes API returned it.
#[derive(Clone, Debug)]
pub struct Machine {
    pub api: Api,
    object: Value,
}

/// The outcome of adding the pre-drain hook to a Machine, or of removing it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    Yes,
    /// The Machine already had the pre-drain hook, or already lacked it, as wanted.
    Already,
    /// The Machine is being deleted and has no pre-drain hook. It gets no new one, because the hook was removed for the deletion.
    BeingDeleted,
    NoMachine,
}

/// The Machines of the control plane, with the access to the Kubernetes API.
#[derive(Debug)]
pub struct Machines {
    agent: ureq::Agent,
    access: Access,
    all: Vec<Machine>,
    /// True if OpenShift's etcd operator manages the pre-drain hooks of Machines itself.
    pub has_operator: bool,
}

impl Machines {
    /// Reads the Machines of the control plane from the Machine API and the Cluster API. A missing API counts as one without Machines.
    /// Machines of workers are omitted, because no worker runs a member.
    pub fn read(path: &Path, patience: Duration) -> Result<Self, String> {
        let (agent, access) = connect(path, patience)?;
        let has_operator = body(&agent, &access, OPERATOR)?.is_some();
        let mut machines = Self { agent, access, all: Vec::new(), has_operator };
        machines.look()?;
        Ok(machines)
    }

    fn look(&mut self) -> Result<(), String> {
        self.all.clear();
        for api in [Api::Machine, Api::Cluster] {
            let found = list(&self.agent, &self.access, &format!("{}/machines", api.path()))?;
            let machines = found.into_iter().map(|object| Machine { api, object });
            self.all.extend(machines.filter(Machine::is_of_control_plane));
        }
        Ok(())
    }

    /// Returns whether a controller has made machines from these Machines. A cluster may have Machine objects that no controller uses.
    pub fn is_of_use(&self) -> bool {
        self.all.iter().any(Machine::runs)
    }

    /// Returns every Machine of the control plane.
    pub fn all(&self) -> &[Machine] {
        &self.all
    }

    /// Removes the pre-drain hook from `machine`. Returns `false` if another client has changed the Machine since it was read.
    pub fn take_off(&self, machine: &Machine) -> Result<bool, String> {
        self.patch(machine, false)
    }

    /// Returns the Machine of the node with `names`, its name and addresses; `None` if there is none.
    pub fn of(&self, names: &[&str]) -> Result<Option<&Machine>, String> {
        self.in_api(names, None)
    }

    /// Finds the Machine of a node in `api`, or in both APIs if `api` is `None`. `names` are the node's name and addresses.
    ///
    /// An old Machine may keep an address that another node has now. So a Machine that names another Node matches by address only
    /// if that Node has the address, too. Two matching Machines in one API are an error.
    fn in_api(&self, names: &[&str], api: Option<Api>) -> Result<Option<&Machine>, String> {
        let all = || self.all.iter().filter(|machine| api.is_none_or(|api| api == machine.api));
        let is_its_node = |machine: &&Machine| machine.node().is_some_and(|node| names.contains(&node));
        let is_at_its_address = |machine: &&Machine| {
            has_address(&machine.object, names) && machine.node().is_none_or(|node| self.is_at(node, names))
        };
        let by_node = the_one(&all().filter(is_its_node).collect::<Vec<_>>())?;
        if by_node.is_some() { Ok(by_node) } else { the_one(&all().filter(is_at_its_address).collect::<Vec<_>>()) }
    }

    /// Returns whether the Node `node` exists and has one of the addresses in `names`.
    fn is_at(&self, node: &str, names: &[&str]) -> bool {
        let read = body(&self.agent, &self.access, &format!("{NODES}{node}")).ok().flatten();
        let node: Option<Value> = read.and_then(|text| json::from_text(&text).ok());
        node.is_some_and(|node| has_address(&node, names))
    }

    /// Adds the pre-drain hook to the Machine of a node, or removes it if `is_to_be` is false. `names` are the node's name and
    /// addresses. If another client has changed the Machine meanwhile, reads it again and tries again.
    pub fn write(&mut self, names: &[&str], api: Option<Api>, is_to_be: bool) -> Result<Written, String> {
        for _ in 0..TRIES {
            let Some(machine) = self.in_api(names, api)? else {
                return Ok(Written::NoMachine);
            };
            if machine.is_protected() == is_to_be {
                return Ok(Written::Already);
            }
            if is_to_be && machine.is_being_deleted() {
                return Ok(Written::BeingDeleted);
            }
            if self.patch(machine, is_to_be)? {
                return Ok(Written::Yes);
            }
            self.look()?;
        }
        Err("another program writes to its Machine at the same time".to_owned())
    }

    /// Adds the pre-drain hook to `machine`, or removes it if `is_to_be` is false. Returns `false` if another client has changed
    /// the Machine since it was read.
    fn patch(&self, machine: &Machine, is_to_be: bool) -> Result<bool, String> {
        let path = machine.path().ok_or("the API names no version of it")?;
        let request = authorised(self.agent.patch(format!("{}{path}", self.access.server)), &self.access);
        let request = request.header("Content-Type", "application/merge-patch+json");
        let answer =
            request.send(machine.patched(is_to_be).to_string()).map_err(|error| words(&error, &self.access))?;
        match answer.status().as_u16() {
            OK => Ok(true),
            CONFLICT => Ok(false),
            status => Err(format!("the API answers {status}")),
        }
    }
}

impl Machine {
    fn text(&self, pointer: &str) -> Option<&str> {
        self.object.pointer(pointer).and_then(Value::as_str)
    }

    /// Returns whether the Machine's labels name the control plane.
    fn is_of_control_plane(&self) -> bool {
        let labels = self.object.pointer("/metadata/labels");
        labels.is_some_and(|labels| labels[ROLE] == MASTER || labels.get(CONTROL_PLANE).is_some())
    }

    /// Returns whether the Machine's phase is `Running`, which means that a controller has made a machine from it.
    pub fn runs(&self) -> bool {
        self.text("/status/phase") == Some("Running")
    }

    /// Returns the name of the Node that the machine became; `None` if it became none yet.
    pub fn node(&self) -> Option<&str> {
        self.text("/status/nodeRef/name")
    }

    /// Returns the Machine's uid, which no other Machine ever has.
    pub fn uid(&self) -> Option<&str> {
        self.text("/metadata/uid")
    }

    /// Returns the Machine's addresses, beginning with those inside of the cluster.
    pub fn addresses(&self) -> Vec<&str> {
        let addresses = self.object.pointer("/status/addresses").and_then(Value::as_array);
        let mut addresses: Vec<&Value> = addresses.into_iter().flatten().collect();
        addresses.sort_by_key(|address| address["type"] != "InternalIP");
        addresses.into_iter().filter_map(|address| address["address"].as_str()).collect()
    }

    pub fn name(&self) -> &str {
        self.text("/metadata/name").unwrap_or_default()
    }

    pub fn is_being_deleted(&self) -> bool {
        self.text("/metadata/deletionTimestamp").is_some()
    }

    /// Returns whether the Machine has the pre-drain hook, for which its deletion waits.
    pub fn is_protected(&self) -> bool {
        match self.api {
            Api::Machine => self.hooks().iter().any(is_ours),
            Api::Cluster => {
                self.object.pointer("/metadata/annotations").is_some_and(|all| all.get(ANNOTATION).is_some())
            }
        }
    }

    fn hooks(&self) -> Vec<Value> {
        let hooks = self.object.pointer("/spec/lifecycleHooks/preDrain").and_then(Value::as_array);
        hooks.cloned().unwrap_or_default()
    }

    fn path(&self) -> Option<String> {
        self.text("/metadata/resourceVersion")?;
        let (namespace, name) = (self.text("/metadata/namespace")?, self.text("/metadata/name")?);
        Some(format!("{}/namespaces/{namespace}/machines/{name}", self.api.path()))
    }

    /// Returns the merge patch that adds the pre-drain hook to this version of the Machine, or removes it if `is_to_be` is false.
    /// The patch has all pre-drain hooks, because a merge patch replaces a list as a whole.
    fn patched(&self, is_to_be: bool) -> Value {
        let version = self.text("/metadata/resourceVersion").unwrap_or_default();
        match self.api {
            Api::Cluster => {
                let value = if is_to_be { json!("") } else { Value::Null };
                json!({"metadata": {"resourceVersion": version, "annotations": {ANNOTATION: value}}})
            }
            Api::Machine => {
                let mut hooks = self.hooks();
                hooks.retain(|hook| !is_ours(hook));
                if is_to_be {
                    hooks.push(json!({"name": HOOK, "owner": OWNER}));
                }
                json!({"metadata": {"resourceVersion": version}, "spec": {"lifecycleHooks": {"preDrain": hooks}}})
            }
        }
    }
}

/// Returns the first of the matching Machines; `None` if there is none. A second one in the same API is an error.
fn the_one<'a>(fitting: &[&'a Machine]) -> Result<Option<&'a Machine>, String> {
    let Some(first) = fitting.first() else { return Ok(None) };
    let same: Vec<&str> = fitting.iter().filter(|one| one.api == first.api).map(|one| one.name()).collect();
    if same.len() > 1 { Err(format!("several Machines fit: {}", same.join(", "))) } else { Ok(Some(*first)) }
}

/// Returns whether a Machine or a Node lists one of the addresses in `names`.
fn has_address(object: &Value, names: &[&str]) -> bool {
    let addresses = object.pointer("/status/addresses").and_then(Value::as_array);
    let is_one = |address: &Value| address["address"].as_str().is_some_and(|address| names.contains(&address));
    addresses.is_some_and(|addresses| addresses.iter().any(is_one))
}

fn is_ours(hook: &Value) -> bool {
    hook["name"] == HOOK
}

#[cfg(test)]
use super::{
    bare_metal::HOSTS,
    tnf::{JOBS, SECRETS},
};
#[cfg(test)]
pub(crate) mod fake_api;
#[cfg(test)]
mod tests;
