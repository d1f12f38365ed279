//! The connection between two nodes while one of them sets both up. It uses TLS with one-time keys, which a join file
//! brings to the other node. Each request and each answer is a line of JSON.
//!
//! The node on which `tandem setup join` was typed is the server, the first node the client. Every wait has a limit,
//! and no allocation depends on a length that the other end sends.

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

/// Returns the port on which the other node waits: one that etcd will use, so that it is open between the two. On
/// OpenShift, where etcd already holds that port, it is another one. OpenShift's own services may use the ports around
/// that.
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
    /// The time for which wrong keys or a taken port are tolerated. They may belong to an end that was cut off earlier
    /// and has not noticed it yet.
    pub leftover: Duration,
}

impl Patience {
    /// The time for a command that was started through ssh. If its machine lost power, this end notices only after the
    /// silence.
    pub const LEFTOVER: Duration = Duration::from_secs(45);
}

impl Default for Patience {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self { silence: seconds(30), beat: seconds(5), handshake: seconds(10), leftover: Duration::ZERO }
    }
}

/// Reason why the two ends do not talk, or no longer do.
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
