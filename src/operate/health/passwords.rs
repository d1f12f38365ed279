//! The copies of a device's password file on the nodes. Their collectors publish a keyed digest of each line, or only the number of
//! lines if the cluster has no key.

use crate::adapters::pacemaker::seen::FenceDevice;
use crate::base::Fact;
use crate::base::shell::command;
use crate::operate::cluster::Cluster;

/// The state of the two nodes' copies of a password file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Copies {
    /// The copies differ: `node` lacks the newest change that `with` has.
    Differ { node: String, with: String },
    /// The copies are equal and have a second password, which replaces the first one once the BMC accepts it.
    Staged,
}

/// Compares the nodes' copies of a device's password file. Returns `None` if they are unknown, or equal with a single password.
pub(super) fn copies(cluster: &Cluster, nodes: &[String], device: &FenceDevice) -> Option<Copies> {
    if !device.resource.parameters.contains_key("password_file") {
        return None;
    }
    let copy = |node: &String| cluster.collected.get(node).and_then(Fact::known)?.passwords.get(&device.resource.id);
    let copies: Vec<(&String, &Vec<String>)> =
        nodes.iter().filter_map(|node| copy(node).map(|lines| (node, lines))).collect();
    if let [(one, first), (other, second)] = copies.as_slice() {
        let same = |mine: &[String], theirs: &[String]| mine.iter().all(|line| theirs.contains(line));
        if first.len() != second.len() || !same(first, second) {
            // The node with fewer lines lacks the change.
            let is_first = first.len() < second.len() || same(first, second);
            let (node, with) = if is_first { (one, other) } else { (other, one) };
            return Some(Copies::Differ { node: (*node).clone(), with: (*with).clone() });
        }
    }
    copies.iter().any(|(_, lines)| lines.len() > 1).then_some(Copies::Staged)
}

/// Returns the parts in which the fence device `id` differs from OpenShift's Secret, from the newest comparison. Returns `None` if they
/// are equal or not compared.
pub(in crate::operate) fn secret_differs(cluster: &Cluster, id: &str) -> Option<String> {
    let known = cluster.collected.values().filter_map(Fact::known);
    known.filter_map(|collected| collected.secrets.get(id)).max_by_key(|seen| seen.at)?.difference()
}

/// Returns the sentence that the copy of the password file on `node` lacks a change that `with` has.
pub(super) fn differ(device: &FenceDevice, node: &str, with: &str) -> String {
    format!("{}: the password file of {node} has other passwords than that of {with}", device.resource.id)
}

/// Returns the command that updates the password file. It runs on the node `on`, or on this node for `None`.
pub(super) fn update_command(device: &FenceDevice, on: Option<&str>) -> String {
    let target = device.targets.first().map_or("NODE", String::as_str);
    match on {
        Some(node) => command!("ssh -t {} tandem fencing update {}", node, target),
        None => command!("tandem fencing update {}", target),
    }
}
