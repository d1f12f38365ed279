//! Fencing: what each device's BMC answers, tests of fencing, and other credentials for a BMC.

pub mod ask;
pub mod copies;
pub mod halves;
pub mod power;
pub mod record;
pub mod seen;
pub mod there;
pub mod update;
pub mod watch;

use crate::adapters::pacemaker::seen::Configuration;
use crate::base::Fact;
use crate::operate::cluster::Cluster;
use crate::operate::failure::Failure;
use crate::operate::node::no_cluster;

/// Returns the cluster's configuration. Fails if it is unknown or has no node `node`.
pub fn with_node<'a>(cluster: &'a Cluster, node: &str) -> Result<&'a Configuration, Failure> {
    if cluster.configuration.is_absent() {
        return Err(no_cluster());
    }
    let Fact::Known(configuration) = &cluster.configuration else {
        let why = cluster.configuration.why_unknown();
        return Err(Failure(format!("the CIB cannot be read ({why}): see 'pcs status', or type 'pcs cluster start'")));
    };
    let nodes = &configuration.nodes;
    if !nodes.iter().any(|one| one == node) {
        return Err(Failure(format!("no node is called '{node}'; there are: {}", nodes.join(", "))));
    }
    Ok(configuration)
}

/// Returns the refusal for a node that no device of `fence_redfish_rs` fences.
fn no_device(node: &str) -> Failure {
    Failure(format!(
        "{node} has no fence device of Tandem's, so its power cannot be reached from here: see 'pcs stonith config'"
    ))
}
