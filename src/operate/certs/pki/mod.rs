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

/// Path of the directory with the files of Tandem's CA. The directory's mode is 0700.
pub const DIR: &str = "/etc/tandem/pki";
/// Name of the file with the trusted CA certificates: one, or during a CA rotation those of the old and the new CA.
pub const CA_CERT: &str = "ca.crt";
/// Name of the file with the CA's key. Both nodes have it, so that each can renew certificates without the other.
pub const CA_KEY: &str = "ca.key";
/// Name of the file with etcd's certificate. etcd presents it as a server, and as a client when it connects to its peer.
pub const ETCD_CERT: &str = "etcd.crt";
pub const ETCD_KEY: &str = "etcd.key";
/// Name of the file with the client certificate for `etcdctl`.
pub const CLIENT_CERT: &str = "client.crt";
pub const CLIENT_KEY: &str = "client.key";
/// Name of the file with the new CA's certificate during a CA rotation.
pub const NEXT_CERT: &str = "next.crt";
/// Name of the file with the new CA's key during a CA rotation.
pub const NEXT_KEY: &str = "next.key";
/// The etcd user that etcdctl's client certificate names. etcd checks this user's permissions if its auth is enabled.
pub const CLIENT: &str = "root";

const HOUR: u64 = 3_600;
const DAY: u64 = 24 * HOUR;
/// Lifetime of Tandem's CA, in seconds: ten years.
pub const CA_LASTS: u64 = 3_652 * DAY;
/// Lifetime of a certificate that Tandem's CA issues, in seconds.
pub const LEAF_LASTS: u64 = 365 * DAY;
/// Seconds by which a certificate's validity begins before its creation. The other node's clock may be behind, and that
/// node rejects a certificate that begins in its future.
pub const BACKDATED: u64 = HOUR;

/// The reason why a certificate or a CA could not be read or made.
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
