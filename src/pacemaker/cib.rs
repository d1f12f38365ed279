//! The CIB, read whole from this node's own replica in one query, so that all of it is of one moment.

use roxmltree::{Document, Node};

use super::attributes::{self, CLUSTER_ID, LEARNER_NODE, LINEAGE, MEMBER_ID, RECORD, STANDALONE_NODE};
use super::{Error, run};
use crate::decide::snapshot::{Cib, Identity, Lineage, PeerAgent, PeerNode, Record};

/// Asks the CIB's manager for its replica and reads what matters to `resource` on `node` and `peer`.
pub fn query(resource: &str, node: &str, peer: Option<&str>) -> Result<Cib, Error> {
    parse(&run("cibadmin", &["--query", "--local"])?, resource, node, peer)
}

/// Reads a CIB document.
pub fn parse(xml: &str, resource: &str, node: &str, peer: Option<&str>) -> Result<Cib, Error> {
    let document = Document::parse(xml).map_err(|error| Error::Parse(error.to_string()))?;
    let cib = document.root_element();
    if !cib.has_tag_name("cib") {
        return Err(Error::Parse(format!("its root is '{}'", cib.tag_name().name())));
    }
    let peer_state = peer.and_then(|peer| node_state(cib, peer));
    Ok(Cib {
        peer_node: peer_state.map_or(PeerNode::NeverSeen, peer_node),
        peer_agent: peer_state.map_or(PeerAgent::NoHistory, |state| peer_agent(state, resource)),
        own_record: node_state(cib, node).and_then(record),
        peer_record: peer_state.and_then(record),
        standalone_node: property(cib, STANDALONE_NODE),
        learner_node: property(cib, LEARNER_NODE),
        lineage: newest_lineage(cib),
        cluster_recorded: nodes(cib).any(|node| attribute(node, CLUSTER_ID).is_some()),
        own_identity: nodes(cib).find(|entry| is_named(*entry, node)).and_then(identity),
    })
}

fn child<'a, 'i>(node: Node<'a, 'i>, name: &str) -> Option<Node<'a, 'i>> {
    node.children().find(|child| child.has_tag_name(name))
}

fn nodes<'a, 'i>(cib: Node<'a, 'i>) -> impl Iterator<Item = Node<'a, 'i>> {
    child(cib, "configuration")
        .and_then(|configuration| child(configuration, "nodes"))
        .into_iter()
        .flat_map(|nodes| nodes.children())
        .filter(|node| node.has_tag_name("node"))
}

fn is_named(node: Node<'_, '_>, name: &str) -> bool {
    node.attribute("uname") == Some(name)
}

fn node_state<'a, 'i>(cib: Node<'a, 'i>, name: &str) -> Option<Node<'a, 'i>> {
    child(cib, "status")?.children().find(|state| state.has_tag_name("node_state") && is_named(*state, name))
}

/// The value of an nvpair below `node`, whichever set it is in.
fn attribute<'a>(node: Node<'a, '_>, name: &str) -> Option<&'a str> {
    node.descendants()
        .find(|pair| pair.has_tag_name("nvpair") && pair.attribute("name") == Some(name))
        .and_then(|pair| pair.attribute("value"))
        .filter(|value| !value.is_empty())
}

fn property(cib: Node<'_, '_>, name: &str) -> Option<String> {
    let crm_config = child(child(cib, "configuration")?, "crm_config")?;
    attribute(crm_config, name).map(str::to_owned)
}

/// A record that cannot be read says nothing, like one that is not there: its writer is asked to write it again.
fn record(state: Node<'_, '_>) -> Option<Record> {
    serde_json::from_str(attribute(child(state, "transient_attributes")?, RECORD)?).ok()
}

fn newest_lineage(cib: Node<'_, '_>) -> Lineage {
    nodes(cib).filter_map(|node| attributes::parse_lineage(attribute(node, LINEAGE)?)).max().unwrap_or_default()
}

fn identity(node: Node<'_, '_>) -> Option<Identity> {
    Some(Identity {
        cluster_id: attribute(node, CLUSTER_ID)?.parse().ok()?,
        member_id: u64::from_str_radix(attribute(node, MEMBER_ID)?, 16).ok()?,
    })
}

/// Pacemaker up to 2.1.7 writes words where later versions write the time since when; 0 is "not".
fn is_set(value: Option<&str>, word: &str) -> bool {
    value.is_some_and(|value| value == word || value.parse::<u64>().is_ok_and(|since| since > 0))
}

/// The rule of Pacemaker's own scheduler: a node that is gone although it is expected to be a member is unclean until
/// it was fenced, and fencing sets what is expected of it to "down".
fn peer_node(state: Node<'_, '_>) -> PeerNode {
    let in_membership = is_set(state.attribute("in_ccm"), "true");
    let has_pacemaker = is_set(state.attribute("crmd"), "online");
    let expected_up = state.attribute("expected") == Some("member");
    match (in_membership, has_pacemaker) {
        (true, true) => PeerNode::Online,
        (true, false) => PeerNode::Pending,
        (false, _) if expected_up || has_pacemaker => PeerNode::Lost,
        (false, _) if state.attribute("expected") == Some("down") => PeerNode::Down,
        (false, _) => PeerNode::NeverSeen,
    }
}

/// What the operation history says: a pending operation first, else the last one that ended.
fn peer_agent(state: Node<'_, '_>, resource: &str) -> PeerAgent {
    let operations: Vec<Node<'_, '_>> = state
        .descendants()
        .filter(|entry| entry.has_tag_name("lrm_resource") && is_instance_of(entry.attribute("id"), resource))
        .flat_map(|entry| entry.children())
        .filter(|operation| operation.has_tag_name("lrm_rsc_op"))
        .collect();
    let pending = |name: &str| {
        operations.iter().any(|op| op.attribute("op-status") == Some("-1") && op.attribute("operation") == Some(name))
    };
    if pending("start") {
        return PeerAgent::Starting;
    }
    if pending("stop") {
        return PeerAgent::Stopping;
    }
    let last = operations.iter().filter(|op| call_id(op) >= 0).max_by_key(|op| call_id(op));
    last.map_or(PeerAgent::NoHistory, |op| after(op.attribute("operation"), op.attribute("rc-code")))
}

fn is_instance_of(id: Option<&str>, resource: &str) -> bool {
    let Some(rest) = id.and_then(|id| id.strip_prefix(resource)) else { return false };
    rest.is_empty() || rest.strip_prefix(':').is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
}

fn call_id(operation: &Node<'_, '_>) -> i64 {
    operation.attribute("call-id").and_then(|id| id.parse().ok()).unwrap_or(-1)
}

/// Only a stop that succeeded, or a monitor that found nothing, is a confirmed stop.
fn after(operation: Option<&str>, rc: Option<&str>) -> PeerAgent {
    match (operation, rc) {
        (Some("stop"), Some("0")) | (Some("monitor"), Some("7")) => PeerAgent::Stopped,
        _ => PeerAgent::Active,
    }
}
