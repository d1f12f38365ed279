//! How two nodes talk while one of them sets both up: over TLS with one-time keys that a join file brings to the other node, a line
//! of JSON for each request and each answer.
//!
//! The node on which `tandem setup join` was typed serves, and the first one asks. Every wait is bounded, and nothing is allocated by
//! a length that the other end names.

mod by_hand;
mod call;
pub mod join_file;
mod link;
mod serve;
#[cfg(test)]
mod tests;
mod tls;

use std::time::Duration;

pub use self::by_hand::{by_hand, joined};
pub use self::call::{Call, Credentials, connect};
pub use self::serve::{Serving, serve};
use super::description::Description;
use super::node::ports::Port;

/// Returns the port at which the other node waits: one that etcd will have, and that is open between the two. OpenShift's
/// etcd has it already, and its own services may use the ports around this other one.
pub fn port(description: &Description) -> u16 {
    const OF_OPENSHIFT: u16 = 9990;
    if description.is_of_openshift() { OF_OPENSHIFT } else { Port::EtcdPeers.number() }
}

/// Time that either end waits for a sign of the other. Each gives one more often than that.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    pub silence: Duration,
    pub beat: Duration,
    pub handshake: Duration,
    /// The time for which wrong keys, or a taken port, may be those of an end that was cut off before and has not noticed it
    /// yet.
    pub leftover: Duration,
}

impl Patience {
    /// For the other node's command that is typed through ssh: after a power loss of its machine it is missed only after the
    /// silence.
    pub const LEFTOVER: Duration = Duration::from_secs(45);
}

impl Default for Patience {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self { silence: seconds(30), beat: seconds(5), handshake: seconds(10), leftover: Duration::ZERO }
    }
}

/// Cause for which the ends do not talk, or no more.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The other end is not the expected one.
    #[error("{0}")]
    Stranger(String),
    #[error("the connection was cut: {0}")]
    Cut(String),
    #[error("{0}")]
    Late(String),
}
