//! The OCF resource-agent API (version 1.1), whoever the agent is: its environment, exit codes and meta-data.

pub mod env;
pub mod exit;
pub mod metadata;
