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

/// Returns the port on which the joining node listens for the node that drives the setup. It is etcd's peer port, which
/// must be open between the nodes anyway. On OpenShift etcd already uses that port, so another one is used.
pub fn port(description: &Description) -> u16 {
    const OF_OPENSHIFT: u16 = 9990;
    if description.is_of_openshift() { OF_OPENSHIFT } else { Port::EtcdPeers.number() }
}

/// Time limits of the setup connection. Each end must send something within `silence`, and therefore sends a sign of life every `beat`.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    pub silence: Duration,
    pub beat: Duration,
    pub handshake: Duration,
    /// Time for which a wrong key or a port in use is tolerated. An earlier connection may cause either, if it broke and one end has not
    /// noticed that yet.
    pub leftover: Duration,
}

impl Patience {
    /// The value of `leftover` for a 'tandem setup join' that was started through ssh. If the caller's machine lost
    /// power, an earlier join ends only after `silence`, and holds the port until then.
    pub const LEFTOVER: Duration = Duration::from_secs(45);
}

impl Default for Patience {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self { silence: seconds(30), beat: seconds(5), handshake: seconds(10), leftover: Duration::ZERO }
    }
}

/// The reason why the two nodes could not connect, or why the connection ended.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The other end is not the expected one, or does not accept this end.
    #[error("{0}")]
    Stranger(String),
    #[error("the connection was cut: {0}")]
    Cut(String),
    #[error("{0}")]
    Late(String),
}
