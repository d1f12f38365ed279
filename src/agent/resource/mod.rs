//! The resource as it is configured on this node: parameters, deployment, this node and its peer, and the actions with
//! their time-outs. The modules that observe and act both use it.

pub mod actions;
pub mod context;
pub mod deployment;
mod directories;
pub mod params;
