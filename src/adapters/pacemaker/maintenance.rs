//! The CIB's answers to two questions: whether Pacemaker manages etcd, and whether a node is about to leave.

use roxmltree::Node;

use super::element::{child, nvpairs};
use super::nodes::{attribute, is_named, nodes, transient};
use crate::adapters::options::yes_no;

/// Returns whether maintenance applies to the whole cluster, to one of the two nodes or to the resource, or whether the resource is
/// unmanaged. Pacemaker may run monitors in that state.
pub(super) fn applies(cib: Node<'_, '_>, resource: &str, node: &str, peer: Option<&str>) -> bool {
    let Some(configuration) = child(cib, "configuration") else { return false };
    let property = |name| child(configuration, "crm_config").and_then(|config| attribute(config, name));
    let of_node = |name: &str| nodes(cib).any(|entry| is_named(entry, name) && is_yes(attribute(entry, "maintenance")));
    is_yes(property("maintenance-mode"))
        || is_no(property("is-managed-default"))
        || of_node(node)
        || peer.is_some_and(of_node)
        || of_resource(configuration, resource)
}

/// Returns whether the resource, or a clone or group around it, is in maintenance or unmanaged.
fn of_resource(configuration: Node<'_, '_>, resource: &str) -> bool {
    let primitive = configuration
        .descendants()
        .find(|entry| entry.has_tag_name("primitive") && entry.attribute("id") == Some(resource));
    let rests = |entry: Node<'_, '_>| {
        let is =
            |name: &str| nvpairs(entry, "meta_attributes").find(|(known, _)| *known == name).map(|(_, value)| value);
        is_yes(is("maintenance")) || is_no(is("is-managed"))
    };
    primitive.is_some_and(|primitive| primitive.ancestors().any(rests))
}

/// Returns whether `node` is on standby, or has asked to shut down.
pub(super) fn leaves(cib: Node<'_, '_>, node: &str) -> bool {
    let transient = transient(cib, node);
    let permanent = nodes(cib).find(|entry| is_named(*entry, node));
    let asks = transient.and_then(|set| attribute(set, "shutdown")).is_some_and(|since| since.trim() != "0");
    asks || [transient, permanent].into_iter().flatten().any(|set| is_yes(attribute(set, "standby")))
}

fn is_yes(value: Option<&str>) -> bool {
    value.and_then(yes_no::of_pacemaker) == Some(true)
}

fn is_no(value: Option<&str>) -> bool {
    value.and_then(yes_no::of_pacemaker) == Some(false)
}

#[cfg(test)]
mod tests {
    use crate::adapters::pacemaker::cib::parse;

    /// The CIB of a real two-node cluster with Pacemaker 2.1.5, queried on node2.
    const TWO_VOTERS: &str = include_str!("../../../tests/data/fixtures/cib/two-voters.xml");

    /// Parses `TWO_VOTERS` with `new` inserted after the first `behind`. Returns whether maintenance applies, and whether the peer leaves.
    fn seen(behind: &str, new: &str) -> (bool, bool) {
        assert!(TWO_VOTERS.contains(behind), "{behind}");
        let cib =
            parse(&TWO_VOTERS.replacen(behind, &format!("{behind}{new}"), 1), "etcd", "node2", Some("node1")).unwrap();
        (cib.in_maintenance, cib.peer_leaves)
    }

    #[test]
    fn maintenance_of_the_cluster_a_node_or_the_resource_counts() {
        assert_eq!(seen("", ""), (false, false));
        let pair = |name: &str, value: &str| format!("<nvpair id='x' name='{name}' value='{value}'/>");
        let properties = "<cluster_property_set id=\"cib-bootstrap-options\">";
        assert_eq!(seen(properties, &pair("maintenance-mode", "true")), (true, false));
        assert_eq!(seen(properties, &pair("maintenance-mode", "false")), (false, false));
        assert_eq!(seen(properties, &pair("is-managed-default", "false")), (true, false));
        let meta = |pair: String| format!("<meta_attributes id='y'>{pair}</meta_attributes>");
        let primitive = primitive();
        assert_eq!(seen(&primitive, &meta(pair("maintenance", "true"))), (true, false));
        assert_eq!(seen(&primitive, &meta(pair("is-managed", "false"))), (true, false));
        assert_eq!(seen(&primitive, &meta(pair("is-managed", "true"))), (false, false));
    }

    #[test]
    fn a_peer_on_standby_or_about_to_shut_down_leaves() {
        let set = |pair: &str| format!("<instance_attributes id='z'><nvpair id='x' {pair}/></instance_attributes>");
        for (pair, leaves) in [
            ("name='standby' value='on'", true),
            ("name='standby' value='off'", false),
            ("name='maintenance' value='true'", false),
        ] {
            let node = node_entry("node1");
            assert_eq!(seen(&node, &set(pair)).1, leaves, "{pair}");
            assert!(!seen(&node_entry("node2"), &set(pair)).1, "{pair} of this node");
        }
        assert!(seen(&node_entry("node1"), &set("name='maintenance' value='true'")).0);
    }

    fn primitive() -> String {
        let at = TWO_VOTERS.find("<primitive id=\"etcd\"").unwrap();
        TWO_VOTERS[at..=at + TWO_VOTERS[at..].find('>').unwrap()].to_owned()
    }

    fn node_entry(name: &str) -> String {
        let at = TWO_VOTERS.find(&format!("uname=\"{name}\"")).unwrap();
        let begin = TWO_VOTERS[..at].rfind('<').unwrap();
        TWO_VOTERS[begin..=begin + TWO_VOTERS[begin..].find('>').unwrap()].to_owned()
    }
}
