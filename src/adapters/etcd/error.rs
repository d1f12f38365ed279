//! What keeps an etcd from doing what it was asked.

use crate::decide::reason;

/// An etcd did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot read {path}: {source}")]
    Certificate { path: String, source: std::io::Error },
    #[error("cannot ask {url}: {why}")]
    Client { url: String, why: String },
    #[error("{url} gave no answer within {seconds:.1} s")]
    TimedOut { url: String, seconds: f64 },
    /// etcd answers, and its auth lets this agent's user do less than was asked.
    #[error("{}: {url} says '{why}'", reason::grant(user.as_deref()))]
    NoPermission { url: String, user: Option<String>, why: String },
}

impl Error {
    /// Whether the time for an answer was over.
    pub fn is_too_late(&self) -> bool {
        matches!(self, Self::TimedOut { .. })
    }
}
