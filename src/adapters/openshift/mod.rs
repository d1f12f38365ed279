//! What OpenShift leaves on a node for whoever runs etcd there. None of it is read where the parameters say it all.

pub mod bare_metal;
pub mod fencing_secret;
pub mod machine;
pub mod machines;
pub mod manifest;
pub mod pacemaker_cluster;
pub mod remediation;
pub mod replaced;
pub mod revision;
pub mod tnf;
