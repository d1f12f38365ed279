//! The Kubernetes API: access to it, questions to it, and its Nodes.

pub(crate) mod api;
pub mod kubeconfig;
pub(crate) mod nodes;
