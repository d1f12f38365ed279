//! etcd: asked over TLS, and configured by a file.

pub mod client;
pub mod config;
mod duration;
pub mod log_line;
pub mod settings;
pub mod version;
