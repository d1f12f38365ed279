//! The entries of a node in a CIB document: its entry, its state, and their attributes.

use roxmltree::Node;

use super::element::{child, children};

pub(super) fn nodes<'a, 'i>(cib: Node<'a, 'i>) -> impl Iterator<Item = Node<'a, 'i>> {
    child(cib, "configuration").into_iter().flat_map(|configuration| children(configuration, "nodes", "node"))
}

pub(super) fn is_named(node: Node<'_, '_>, name: &str) -> bool {
    node.attribute("uname") == Some(name)
}

pub(super) fn node_state<'a, 'i>(cib: Node<'a, 'i>, name: &str) -> Option<Node<'a, 'i>> {
    child(cib, "status")?.children().find(|state| state.has_tag_name("node_state") && is_named(*state, name))
}

/// Returns the element with the transient attributes of the node `name`; `None` if it has none.
pub(super) fn transient<'a, 'i>(cib: Node<'a, 'i>, name: &str) -> Option<Node<'a, 'i>> {
    child(node_state(cib, name)?, "transient_attributes")
}

/// Returns the value of the attribute `name` in any set below `node`; `None` if it is not set.
pub(super) fn attribute<'a>(node: Node<'a, '_>, name: &str) -> Option<&'a str> {
    node.descendants()
        .find(|pair| pair.has_tag_name("nvpair") && pair.attribute("name") == Some(name))
        .and_then(|pair| pair.attribute("value"))
        .filter(|value| !value.is_empty())
}
