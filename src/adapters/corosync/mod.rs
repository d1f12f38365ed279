//! Corosync: its configuration file, and its quorum as its own tool reports it.

pub mod conf;
pub mod members;
pub mod quorum;
