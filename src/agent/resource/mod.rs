//! The resource as it is configured on this node: parameters, what etcd is run from, who this node and its peer are, and
//! the actions with their times. Below what observes and acts, which all of them share.

pub mod actions;
pub mod context;
pub mod deployment;
mod directories;
pub mod params;
