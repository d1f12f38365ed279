//! The Kubernetes API: the access, the client, and the Nodes.

pub(crate) mod api;
pub mod kubeconfig;
pub(crate) mod nodes;
