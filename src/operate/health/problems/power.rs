//! The command for a node that is out of sight, chosen by the report of its BMC.

use crate::base::shell::command;
use crate::operate::cluster::{Cluster, Power};
use crate::operate::health::view;

/// Returns the command that brings the node `name` back, or shows why it is away. `pcs cluster start` is only returned for a node that
/// left the cluster in good order, unless its BMC reports Off. Any other node may not receive it.
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

/// Returns an addition to a sentence if [`way_back`] uses ssh. The network that was cut may be the one that ssh uses.
pub(in crate::operate::health) fn way_there(cluster: &Cluster, name: &str) -> String {
    if view::power(cluster, name) == Some(&Power::On) && !view::is_down(cluster, name) {
        format!("; where ssh does not reach {name}, type 'tandem status' on its console, or take another network")
    } else {
        String::new()
    }
}
