//! etcd: a client over TLS, its configuration file, and its peer protocol.

pub mod blocking;
mod channel;
pub mod client;
mod common_name;
pub mod config;
mod duration;
mod error;
pub mod key_pages;
pub mod leases;
pub mod log_line;
pub mod maintenance;
pub mod member_lock;
pub mod members;
pub mod peer;
mod pem;
pub mod settings;
pub mod shown;
pub mod space;
pub mod status;
pub mod trust;
pub mod version;
