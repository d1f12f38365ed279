//! What keeps a command from looking at the cluster, or from telling the other node of this one.

/// Pacemaker's sockets, etcd's keys and the CIB on the disk are root's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("only root may ask Pacemaker, and etcd with this node's keys: type it with sudo")]
pub struct MustBeRoot;

/// Why this node's facts could not be published.
#[derive(Debug, thiserror::Error)]
#[error("cannot publish what this node knows of itself: {0}")]
pub struct NotPublished(pub(super) String);
