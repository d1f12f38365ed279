//! The copies that the nodes have of a device's password file, as their collectors tell of them: a keyed digest of each line, or where
//! the cluster has no key only how many there are.

use crate::adapters::pacemaker::seen::FenceDevice;
use crate::base::Fact;
use crate::base::shell::command;
use crate::operate::cluster::Cluster;

/// What is to be said of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Copies {
    /// `node` has not heard of the change that `with` has.
    Differ { node: String, with: String },
    /// They are the same, and have a second password, which takes the first one's place once the BMC accepts it.
    Staged,
}

/// Nothing where all is as it should be, or nobody knows.
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
            // Who has less has not heard of the change.
            let is_first = first.len() < second.len() || same(first, second);
            let (node, with) = if is_first { (one, other) } else { (other, one) };
            return Some(Copies::Differ { node: (*node).clone(), with: (*with).clone() });
        }
    }
    copies.iter().any(|(_, lines)| lines.len() > 1).then_some(Copies::Staged)
}

/// Returns what differs between the fence device `id` and OpenShift's Secret, as the collector knows that looked last.
pub(in crate::operate) fn secret_differs(cluster: &Cluster, id: &str) -> Option<String> {
    let known = cluster.collected.values().filter_map(Fact::known);
    known.filter_map(|collected| collected.secrets.get(id)).max_by_key(|seen| seen.at)?.difference()
}

/// That `node` has not heard of the change that `with` has.
pub(super) fn differ(device: &FenceDevice, node: &str, with: &str) -> String {
    format!("{}: the password file of {node} has other passwords than that of {with}", device.resource.id)
}

/// What is to be typed, `on` another node where one is named.
pub(super) fn update_command(device: &FenceDevice, on: Option<&str>) -> String {
    let target = device.targets.first().map_or("NODE", String::as_str);
    match on {
        Some(node) => command!("ssh -t {} tandem fencing update {}", node, target),
        None => command!("tandem fencing update {}", target),
    }
}
