//! Errors that keep a command from observing the cluster, or from publishing this node's facts to the other node.

/// Error of a process that does not run as root. Only root may open Pacemaker's sockets, etcd's keys and the CIB on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("only root may ask Pacemaker, and etcd with this node's keys: type it with sudo")]
pub struct MustBeRoot;

/// Failure to publish this node's facts in Pacemaker's attributes, with the reason.
#[derive(Debug, thiserror::Error)]
#[error("cannot publish what this node knows of itself: {0}")]
pub struct NotPublished(pub(super) String);
