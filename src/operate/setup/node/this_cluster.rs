//! A machine that is in the described cluster while the other one is not. Names the command that brings the other one
//! in. Pure.

use super::{Cib, Corosync, Facts};
use crate::operate::setup::description::Description;

/// Returns whether the machine is in the described cluster. It must have that cluster's name, no node but the described
/// ones, and resources.
pub(super) fn runs_it(description: &Description, facts: &Facts) -> bool {
    let wanted = &description.cluster;
    let is_described = |name: &String| description.nodes.iter().any(|node| node.name == *name);
    let has_resources = match &facts.cib {
        Cib::Known { cluster, resources } => *resources > 0 && cluster.as_ref().is_none_or(|cluster| cluster == wanted),
        Cib::None | Cib::Unreadable(_) => false,
    };
    has_resources
        && facts.corosync == Corosync::Cluster(wanted.clone())
        && !facts.cluster_nodes.is_empty()
        && facts.cluster_nodes.iter().all(is_described)
}

/// Returns the fault of a setup if the node at index `at` runs the described cluster and the other node does not. The fault names the
/// command that brings the other node in without stopping the running one.
pub(super) fn goes_on(description: &Description, at: usize, other: &Facts, its: &Facts) -> String {
    let (node, rest) = (&description.nodes[at].name, &description.nodes[1 - at]);
    let (name, address) = (&rest.name, rest.address);
    if !its.cluster_nodes.contains(name) {
        return format!(
            "{node}: it is in this very cluster, without {name}: type 'tandem member add {name}={address} --fence ip=ADDRESS --fence username=USER \
             --fence password_file=FILE' on {node}"
        );
    }
    if other.corosync == Corosync::Cluster(description.cluster.clone()) {
        return format!(
            "{node}: it is in this very cluster, and so is {name}, where it does not run: type 'pcs cluster start' on {name}, then 'tandem setup' again"
        );
    }
    format!(
        "{node}: it is in this very cluster, and {name} has lost its part of it: type 'tandem member replace {name}' on {node}, which makes it anew"
    )
}

#[cfg(test)]
mod tests {
    use super::super::Data;
    use super::super::judge::NodeSeen;
    use super::super::judge::tests::judged;
    use super::*;

    /// Asserts that setup names the command that brings node1 into the cluster which node2 runs. node2's etcd must not be stopped,
    /// because its data is the current one.
    #[test]
    fn beside_a_node_of_this_very_cluster_the_way_on_is_named() {
        type More = fn(&mut NodeSeen, &mut NodeSeen);
        let runs = |more: More| {
            let judged = judged(|one, two| {
                two.facts.corosync = Corosync::Cluster("tandem".to_owned());
                two.facts.cluster_nodes = ["node1", "node2"].map(str::to_owned).to_vec();
                two.facts.cib = Cib::Known { cluster: Some("tandem".to_owned()), resources: 3 };
                two.facts.taken = ["2379/tcp", "2380/tcp"].map(str::to_owned).to_vec();
                (one.facts.data, two.facts.data) = (Data::Present, Data::Present);
                more(one, two);
            });
            assert_eq!(judged.faults.len(), 1, "{judged:?}");
            judged.faults[0].clone()
        };
        assert_eq!(
            runs(|_, _| {}),
            "node2: it is in this very cluster, and node1 has lost its part of it: type 'tandem member replace node1' on node2, which makes it anew"
        );
        assert_eq!(
            runs(|one, _| one.facts.corosync = Corosync::Cluster("tandem".to_owned())),
            "node2: it is in this very cluster, and so is node1, where it does not run: type 'pcs cluster start' on node1, then 'tandem setup' again"
        );
        let alone = runs(|_, two| two.facts.cluster_nodes = vec!["node2".to_owned()]);
        assert!(alone.contains("type 'tandem member add node1=192.0.2.1 --fence ip=ADDRESS"), "{alone}");
        let stranger = judged(|_, two| {
            two.facts.corosync = Corosync::Cluster("tandem".to_owned());
            two.facts.cluster_nodes = ["node2", "node9"].map(str::to_owned).to_vec();
            two.facts.cib = Cib::Known { cluster: Some("tandem".to_owned()), resources: 3 };
        });
        assert_eq!(stranger.faults.len(), 1, "{stranger:?}");
        assert!(stranger.faults[0].starts_with("node2: it is in another cluster of this name, of node2 and node9"));
    }
}
