//! Tandem's own small certificate authority, for a site without one: its files, what it issues, and the contents of a
//! certificate.
//!
//! Nothing here asks the time: `now` is given, in seconds since 1970.

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

/// The directory of all of it: 0700.
pub const DIR: &str = "/etc/tandem/pki";
/// The certificates that are trusted: the CA's, and while it is replaced the old one's and the new one's.
pub const CA_CERT: &str = "ca.crt";
/// The CA's key; on both nodes, so that each can renew, and continue without the other's disk.
pub const CA_KEY: &str = "ca.key";
/// The certificate that etcd shows to its clients and to its peer, and dials its peer with.
pub const ETCD_CERT: &str = "etcd.crt";
pub const ETCD_KEY: &str = "etcd.key";
/// The certificate of `etcdctl`.
pub const CLIENT_CERT: &str = "client.crt";
pub const CLIENT_KEY: &str = "client.key";
/// While the CA is replaced: the one to come, and its key.
pub const NEXT_CERT: &str = "next.crt";
pub const NEXT_KEY: &str = "next.key";
/// The user that etcd's auth, where it is on, takes `etcdctl` for.
pub const CLIENT: &str = "root";

const HOUR: u64 = 3_600;
const DAY: u64 = 24 * HOUR;
/// Lifetime of the CA, in seconds.
pub const CA_LASTS: u64 = 3_652 * DAY;
/// Lifetime of the certificates that it issues, in seconds.
pub const LEAF_LASTS: u64 = 365 * DAY;
/// A certificate begins that long before it is made: the other node's clock may be behind this one's, and would take it for one of
/// the future.
pub const BACKDATED: u64 = HOUR;

/// Cause for having no certificate.
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
