//! The OCF resource-agent API (version 1.1) for any agent: its environment, exit codes, meta-data and man pages.

pub mod alert;
pub mod env;
pub mod exit;
pub mod manpage;
pub mod metadata;
