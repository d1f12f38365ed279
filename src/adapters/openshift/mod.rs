//! What OpenShift leaves on a node for whoever runs etcd there. None of it is read where the parameters say it all.

pub mod bare_metal;
pub mod fencing_secret;
pub mod install_config;
pub mod machine;
pub mod machines;
pub mod manifest;
pub mod replaced;
pub mod revision;
pub mod tnf;
