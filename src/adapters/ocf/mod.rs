//! The OCF resource-agent API (version 1.1), whoever the agent is: its environment, exit codes, meta-data and
//! man pages.

pub mod alert;
pub mod env;
pub mod exit;
pub mod manpage;
pub mod metadata;
