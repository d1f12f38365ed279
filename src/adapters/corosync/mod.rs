//! Corosync: its configuration file, and the quorum that its own tool reports.

pub mod conf;
pub mod members;
pub mod quorum;
