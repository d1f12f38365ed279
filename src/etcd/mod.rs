//! etcd: asked over TLS, and configured by a file.

pub mod blocking;
pub mod client;
mod common_name;
pub mod config;
mod duration;
pub mod leases;
pub mod log_line;
pub mod peer;
pub mod settings;
pub mod version;
