//! Tandem's own small certificate authority, for a site without one: its files, the certificates that it issues, and
//! their contents.
//!
//! No function here reads the clock: `now` is an argument, in seconds since 1970.

mod authority;
mod certificate;
mod files;
pub mod rotation;
pub mod seen;
pub mod site_certs;
mod trust;

pub use self::authority::{Authority, Pair};
pub use self::certificate::{Certificate, first, read_all};
pub use self::files::{Failed, Files, Holder, Leaf, Lock};
pub use self::trust::{Use, is_der_trusted, is_trusted};

/// The directory of all these files, with mode 0700.
pub const DIR: &str = "/etc/tandem/pki";
/// The trusted certificates: the CA's, and during a rotation those of the old and the new one.
pub const CA_CERT: &str = "ca.crt";
/// The CA's key. Both nodes have it, so that each can renew certificates without the other's disk.
pub const CA_KEY: &str = "ca.key";
/// The certificate that etcd presents to clients and to its peer, also when it dials the peer.
pub const ETCD_CERT: &str = "etcd.crt";
pub const ETCD_KEY: &str = "etcd.key";
/// The certificate of `etcdctl`.
pub const CLIENT_CERT: &str = "client.crt";
pub const CLIENT_KEY: &str = "client.key";
/// During a rotation, the certificate and the key of the new CA.
pub const NEXT_CERT: &str = "next.crt";
pub const NEXT_KEY: &str = "next.key";
/// The user of `etcdctl` if etcd's auth is enabled.
pub const CLIENT: &str = "root";

const HOUR: u64 = 3_600;
const DAY: u64 = 24 * HOUR;
/// Lifetime of the CA, in seconds.
pub const CA_LASTS: u64 = 3_652 * DAY;
/// Lifetime of the certificates that it issues, in seconds.
pub const LEAF_LASTS: u64 = 365 * DAY;
/// Seconds by which a certificate begins before it is made. The other node's clock may be behind, and would reject a
/// certificate that begins in its future.
pub const BACKDATED: u64 = HOUR;

/// The reason why there is no certificate.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("{what} is no certificate that can be read: {why}")]
    Unreadable { what: String, why: String },
    #[error("{what} is no key that can be read: {why}")]
    NoKey { what: String, why: String },
    #[error("the CA's key does not belong to its certificate")]
    KeyOfAnother,
    #[error("the CA '{0}' was not made by Tandem, which issues from its own alone")]
    Foreign(String),
    #[error("the CA ended at {0}: 'tandem certs rotate-ca' makes a new one")]
    Ended(String),
    #[error("'{0}' is no name that a certificate can hold")]
    NoName(String),
    #[error("no certificate can be made: {0}")]
    Failed(String),
}

pub type Result<T> = std::result::Result<T, Error>;
