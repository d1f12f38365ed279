//! The command for a node that is out of sight, chosen by the report of its BMC.

use crate::base::shell::command;
use crate::operate::cluster::{Cluster, Power};
use crate::operate::health::view;

/// Returns the command that brings the node `name` back, or shows why it is away. Returns `pcs cluster start` only for a node that has
/// left the cluster in good order, and only if its BMC does not report Off. A node in another state might not receive it.
pub(in crate::operate::health) fn way_back(cluster: &Cluster, name: &str) -> String {
    let has_left = view::is_down(cluster, name);
    match view::power(cluster, name) {
        Some(Power::Off) => command!("tandem power on {}", name),
        Some(Power::On) if !has_left => command!("ssh {} tandem status", name),
        Some(Power::On) => command!("pcs cluster start {}", name),
        None if has_left && view::may_start(cluster) => command!("pcs cluster start {}", name),
        Some(Power::Unknown(_)) | None => command!("tandem power status {}", name),
    }
}

/// Returns an addition to a sentence if [`way_back`] uses ssh, because ssh may need the network that was cut. Otherwise returns an empty
/// text.
pub(in crate::operate::health) fn way_there(cluster: &Cluster, name: &str) -> String {
    if view::power(cluster, name) == Some(&Power::On) && !view::is_down(cluster, name) {
        format!("; where ssh does not reach {name}, type 'tandem status' on its console, or take another network")
    } else {
        String::new()
    }
}
