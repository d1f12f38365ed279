//! etcd: asked over TLS, and configured by a file.

pub mod client;
pub mod config;
pub mod log_line;
