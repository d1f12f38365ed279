//! The files and objects that OpenShift provides about etcd. The agent reads none of them where its parameters are complete.

pub mod bare_metal;
pub mod fencing_secret;
pub mod install_config;
pub mod machine;
pub mod machines;
pub mod manifest;
pub mod pacemaker_cluster;
pub mod remediation;
pub mod replaced;
pub mod revision;
pub mod tnf;
