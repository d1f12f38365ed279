//! The observations that the collector makes on its timer, and the last one on disk.

pub mod machines;
pub mod openshift;
pub mod passwords;
mod secrets;
pub mod seen;
pub mod status;

use std::path::PathBuf;

use crate::adapters::pacemaker::seen::Configuration;
use crate::agent::resource::params::DEFAULT_KUBECONFIG;

/// Returns the path of the kubeconfig for OpenShift's API. The file need not exist.
fn kubeconfig(configuration: &Configuration) -> PathBuf {
    let given = configuration.etcd.as_ref().and_then(|etcd| etcd.parameters.get("kubeconfig"));
    PathBuf::from(given.filter(|path| !path.is_empty()).map_or(DEFAULT_KUBECONFIG, String::as_str))
}
