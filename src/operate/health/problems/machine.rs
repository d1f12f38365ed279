//! The machines, as the cluster sees them.

use super::Found;
use crate::adapters::pacemaker::seen::Node;
use crate::operate::cluster::Cluster;
use crate::operate::health::view;

pub(super) fn find(cluster: &Cluster, found: &mut Found) {
    if cluster.pacemaker.known().is_none() {
        return;
    }
    for name in view::names(cluster) {
        match view::node(cluster, &name) {
            // Without quorum nobody is fenced, and that is told already.
            Some(node) if node.unclean && !node.online && !view::may_start(cluster) => {}
            Some(node) => state(node, found),
            None => offline(&name, found),
        }
    }
}

fn state(node: &Node, found: &mut Found) {
    let name = node.name.as_str();
    if node.unclean && node.online {
        let text = format!("a stop failed on {name}, which is fenced next");
        found.critical("node-stop-failed", Some(name), text).typed(format!("pcs stonith history show {name}"));
    } else if node.unclean {
        let text = format!("{name} is lost and not confirmed off: fencing is on its way, or fails");
        found.critical("node-unclean", Some(name), text).typed(format!("pcs stonith history show {name}"));
    } else if !node.online {
        offline(name, found);
    } else if node.pending || node.shutdown {
        let text = format!("{name} is joining the cluster or leaving it");
        found.warning("node-pending", Some(name), text).typed("pcs status");
    }
    if node.standby {
        let text = format!("somebody put {name} on standby, so nothing runs there");
        found.warning("node-standby", Some(name), text).typed(format!("pcs node unstandby {name}"));
    }
    if node.maintenance {
        let text = format!("somebody put {name} into maintenance, so Pacemaker looks after nothing there");
        found.warning("node-maintenance", Some(name), text).typed(format!("pcs node unmaintenance {name}"));
    }
}

fn offline(name: &str, found: &mut Found) {
    let text = format!("{name} is off or its cluster is stopped, and Pacemaker knows it");
    found.warning("node-offline", Some(name), text).typed(format!("pcs cluster start {name}"));
}
