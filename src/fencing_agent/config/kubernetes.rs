//! `[kubernetes]`: the Nodes that are the members, and the access to the API server.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use super::Members;
use super::refusal::Refusal;
use crate::adapters::kubernetes::kubeconfig::{self, Access, Pod};
use crate::adapters::kubernetes::nodes::{self, Failure, Node};

/// The HTTP status with which an overloaded API server puts a request off.
const TOO_MANY: u16 = 429;

/// The settings for the Kubernetes API: the Nodes that are the members, and the access to the API server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Kubernetes {
    /// Path of a kubeconfig; `None` to use the pod's service account.
    pub(crate) kubeconfig: Option<PathBuf>,
    pub(crate) pod: Option<Pod>,
    pub(crate) node: String,
    /// The key of the label that each member's Node has. The value of the label is the group.
    pub(crate) label: String,
    pub(crate) group: String,
    pub(crate) check_interval: Duration,
    pub(crate) api_timeout: Duration,
}

impl Kubernetes {
    /// Reads the API server's address and credentials. They are read for each use, because a service account's token is replaced while
    /// the agent runs.
    pub(crate) fn access(&self) -> Result<Access, Failure> {
        let access = match (&self.kubeconfig, &self.pod) {
            (Some(path), _) => kubeconfig::read(path).map_err(|why| format!("{} {why}", path.display())),
            (None, Some(pod)) => pod.access(),
            (None, None) => {
                Err("it runs in no pod: type 'kubeconfig = \"/etc/kubernetes/kubelet.conf\"' under [kubernetes]".into())
            }
        };
        access.map_err(Failure::None)
    }

    /// Lists the Nodes of the group: the name of each, and its addresses of type `InternalIP`.
    pub(crate) fn list(&self) -> Result<Members, Failure> {
        let nodes = nodes::list(&self.access()?, &format!("{}={}", self.label, self.group), self.api_timeout)?;
        Ok(nodes.into_iter().map(|node| (node.name, node.addresses)).collect())
    }

    /// Reads this node's Node object by a linearizable read; `None` if there is none.
    pub(crate) fn read(&self) -> Result<Option<Node>, Failure> {
        nodes::read(&self.access()?, &self.node, self.api_timeout)
    }

    /// Reads this node's Node object, and the resource version from which a watch of it can start.
    pub(crate) fn begin(&self) -> Result<(Option<Node>, String), Failure> {
        nodes::begin(&self.access()?, &self.node, self.api_timeout)
    }

    /// Lists the Nodes of the group at the start. This node must be among them. Each error contains a command or setting that resolves it.
    pub(super) fn first_list(&self) -> Result<Members, Refusal> {
        let members = self.list().map_err(refusal)?;
        if members.contains_key(&self.node) {
            return Ok(members);
        }
        let (node, label) = (self.node.clone(), self.label.clone());
        let found = self.read().map_err(refusal)?;
        let Some(found) = found else {
            let names: BTreeSet<&str> = members.keys().map(String::as_str).collect();
            let names = names.into_iter().collect::<Vec<_>>().join(", ");
            return Err(Refusal::NoNodeObject { node, names });
        };
        let has = found.labels.get(&self.label).cloned();
        let has = has.map_or_else(|| "no such label".to_owned(), |value| format!("{label}={value}"));
        Err(Refusal::NotLabelled { node, label, group: self.group.clone(), has })
    }
}

fn refusal(why: Failure) -> Refusal {
    match why {
        Failure::Refused { status: 401, why } => Refusal::ApiKnowsUsNot { why },
        // An API server that is overloaded, or has lost its etcd, does not refuse the account.
        Failure::Refused { status, why } if status < 500 && status != TOO_MANY => Refusal::ApiRefuses { status, why },
        why => Refusal::NoApi { why: why.to_string() },
    }
}
