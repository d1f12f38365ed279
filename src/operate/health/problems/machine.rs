//! Problems of the machines, as Pacemaker sees them.

use super::{Found, attempts, power};
use crate::adapters::pacemaker::seen::Node;
use crate::base::shell::command;
use crate::operate::cluster::{Cluster, Power};
use crate::operate::health::view;

pub(super) fn find(cluster: &Cluster, found: &mut Found) {
    for name in shown(cluster) {
        presence(cluster, &name, found);
        if let Some(node) = view::node(cluster, &name).filter(|node| !waits_for_quorum(cluster, node)) {
            set_aside(node, found);
        }
    }
}

/// Reports each node that is not a full member of the cluster now.
pub(in crate::operate::health) fn find_absent(cluster: &Cluster, found: &mut Found) {
    for name in shown(cluster) {
        presence(cluster, &name, found);
    }
}

/// Returns the names of the nodes, if Pacemaker's status is known.
fn shown(cluster: &Cluster) -> Vec<String> {
    if cluster.pacemaker.known().is_some() { view::names(cluster) } else { Vec::new() }
}

/// Returns whether `node` is lost and this node's partition has no quorum. Without quorum Pacemaker fences no node, and the missing
/// quorum is reported as another problem.
fn waits_for_quorum(cluster: &Cluster, node: &Node) -> bool {
    node.unclean && !node.online && !view::may_start(cluster)
}

fn presence(cluster: &Cluster, name: &str, found: &mut Found) {
    let Some(node) = view::node(cluster, name) else { return offline(cluster, name, found) };
    if waits_for_quorum(cluster, node) {
        return;
    }
    if node.unclean && node.online {
        let text = format!("a stop failed on {name}, which is fenced next");
        found.critical("node-stop-failed", Some(name), text).typed(command!("pcs stonith history show {}", name));
    } else if node.unclean {
        attempts::lost(cluster, name, found);
    } else if !node.online {
        offline(cluster, name, found);
    } else if node.pending || node.shutdown {
        let text = format!("{name} is joining the cluster or leaving it");
        found.warning("node-pending", Some(name), text).typed("pcs status");
    }
}

/// Reports a node on which an operator forbids Pacemaker to run resources, or to manage them.
fn set_aside(node: &Node, found: &mut Found) {
    let name = node.name.as_str();
    if node.standby {
        let text = format!("{name} is on standby, so nothing runs there");
        found.warning("node-standby", Some(name), text).typed(command!("pcs node unstandby {}", name));
    }
    if node.maintenance {
        let text = format!("{name} is in maintenance, so Pacemaker looks after nothing there");
        found.warning("node-maintenance", Some(name), text).typed(command!("pcs node unmaintenance {}", name));
    }
}

/// Seconds after a fencing during which the fenced node may still be booting.
const BOOTS: u64 = 300;
/// Age in seconds from which a fencing is no longer the reason for an offline node.
const LONG_AGO: u64 = 24 * 3_600;

/// Returns the seconds since Pacemaker fenced the offline node `name`. Returns `None` if the fencing does not explain why the node is
/// offline, or if the node's BMC does not report On.
fn fenced_since(cluster: &Cluster, name: &str) -> Option<u64> {
    let last = cluster.pacemaker.known()?.fencing.iter().find(|fencing| fencing.target == name)?;
    let age = cluster.at.saturating_sub(last.completed?);
    let is_on = view::power(cluster, name) == Some(&Power::On);
    (is_on && last.status == "success" && last.action != "off" && age < LONG_AGO).then_some(age)
}

fn offline(cluster: &Cluster, name: &str, found: &mut Found) {
    let fenced = fenced_since(cluster, name);
    if let Some(age) = fenced.filter(|age| *age < BOOTS) {
        let text =
            format!("{name} was fenced {age} s ago, is on again as its BMC says, and boots: nothing to type yet");
        return found.warning("node-offline", Some(name), text).typed(attempts::WATCH);
    }
    let text = match view::power(cluster, name) {
        Some(Power::Off) => format!("{name} is off, as its BMC says, and Pacemaker knows it"),
        Some(Power::On) => {
            let since = fenced
                .map(|age| format!("; it was fenced {} min ago: look on its console whether it has booted", age / 60));
            let (there, since) = (power::way_there(cluster, name), since.unwrap_or_default());
            format!("{name} is on, as its BMC says, and its cluster is stopped or still starts{since}{there}")
        }
        Some(Power::Unknown(why)) => format!(
            "{name} is off or its cluster is stopped, and Pacemaker knows it; its BMC does not say whether it is on ({why})"
        ),
        None => format!("{name} is off or its cluster is stopped, and Pacemaker knows it"),
    };
    found.warning("node-offline", Some(name), text).typed(power::way_back(cluster, name));
}

#[cfg(test)]
mod tests {
    use crate::operate::health::{assess, samples};

    /// Asserts that a fenced node counts as booting for five minutes. After that, its cluster may have been stopped for good.
    #[test]
    fn a_node_that_was_fenced_boots_for_five_minutes() {
        let found = |seconds: u64| {
            let mut cluster = samples::read("peer-boots");
            cluster.at += seconds;
            let problems = assess(&cluster).problems;
            let found = problems.into_iter().find(|problem| problem.id == "node-offline").unwrap();
            (found.text, found.command)
        };
        let (text, command) = found(0);
        assert!(text.ends_with("and boots: nothing to type yet"), "{text}");
        assert_eq!(command.as_deref(), Some("tandem status --watch"));
        let (text, command) = found(300);
        let wanted = "and its cluster is stopped or still starts; it was fenced 5 min ago: look on its console whether it has booted";
        assert!(text.ends_with(wanted), "{text}");
        assert_eq!(command.as_deref(), Some("pcs cluster start node2"));
    }
}
