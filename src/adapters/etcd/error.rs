//! The errors of a question to etcd.

use crate::decide::reason;

/// The reason why a request to an etcd failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot read {path}: {source}")]
    Certificate { path: String, source: std::io::Error },
    #[error("cannot ask {url}: {why}")]
    Client { url: String, why: String },
    #[error("{url} gave no answer within {seconds:.1} s")]
    TimedOut { url: String, seconds: f64 },
    /// etcd's auth refused the request to the agent's user. etcd itself is healthy.
    #[error("{}: {url} says '{why}'", reason::grant(user.as_deref()))]
    NoPermission { url: String, user: Option<String>, why: String },
}

impl Error {
    /// Returns whether etcd did not answer within the time limit.
    pub fn is_too_late(&self) -> bool {
        matches!(self, Self::TimedOut { .. })
    }
}
