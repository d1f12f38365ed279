//! The fake Kubernetes API of the product's own tests, in the client's network.

#![allow(dead_code, clippy::unwrap_used, reason = "it is the product's tests' own, which use the rest of it")]

use std::net::TcpListener;

use serde_json::json;

use crate::cluster::etcd;
use crate::host;
use crate::host::node::{CLIENT_IP, NODES, Node};
use crate::host::state::Lab;
use crate::sh::Result;

#[path = "../../../src/adapters/openshift/machines/fake_api.rs"]
mod fake_api;

pub(crate) use fake_api::FakeApi;

const ANNOTATION: &str = "pre-drain.delete.hook.machine.cluster.x-k8s.io/etcd-quorum";
const HOOK: &str = "EtcdQuorumOperator";
const ROLE: &str = "machine.openshift.io/cluster-api-machine-role";
const MASTER: &str = "master";
const CONTROL_PLANE: &str = "cluster.x-k8s.io/control-plane";
const OWNER: &str = "clusteroperator/etcd";
const OPERATOR: &str = "/apis/config.openshift.io/v1/clusteroperators/etcd";
const HOSTS: &str = "/apis/metal3.io/v1alpha1/namespaces/openshift-machine-api/baremetalhosts";
const JOBS: &str = "/apis/batch/v1/namespaces/openshift-etcd/jobs";
const SECRETS: &str = "/api/v1/namespaces/openshift-etcd/secrets/";
/// The path of the kubeconfig that OpenShift has on each node.
const KUBECONFIG: &str =
    "/etc/kubernetes/static-pod-resources/kube-apiserver-certs/secrets/node-kubeconfigs/localhost.kubeconfig";

/// The Kubernetes API that has OpenShift's Machine objects. The lab serves the Machine API only.
#[derive(Clone, Copy)]
pub(crate) enum Api {
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

/// Starts a simulated Kubernetes API of an OpenShift pair, and gives both nodes access to it.
pub(crate) fn start(lab: &Lab) -> Result<FakeApi> {
    let listener = etcd::as_client(lab, || Ok(TcpListener::bind((CLIENT_IP, 0))?))?;
    let api = FakeApi::at(listener, true);
    let kubeconfig = json!({
        "current-context": "x",
        "clusters": [{ "name": "c", "cluster": { "server": api.server } }],
        "contexts": [{ "name": "x", "context": { "cluster": "c", "user": "u" } }],
        "users": [{ "name": "u", "user": { "token": "t" } }],
    });
    for node in NODES {
        host::put(lab, node, KUBECONFIG, &kubeconfig.to_string())?;
        api.add_node(node.name(), &node.ip());
    }
    api.operator(&NODES.map(Node::name));
    Ok(api)
}
