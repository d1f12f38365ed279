//! TLS over TCP to one host, which is trusted by an authority or by a fingerprint ([`tls`], [`transport`], [`address`]). A
//! handshake with a host that is not trusted yet shows its certificate ([`shown`]).

pub mod address;
mod head;
pub mod shown;
pub mod tls;
pub mod transport;
pub mod wrong;
