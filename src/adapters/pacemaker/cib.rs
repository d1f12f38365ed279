//! The CIB, read as a whole from this node's own replica in one query, so that all values are of one moment.

use std::collections::BTreeMap;
use std::str::FromStr;

use roxmltree::Node;

use super::attributes::{
    self, ALARM, CLUSTER_ID, FENCE_WAIT, IMAGE, LEADER, LEARNER_NODE, LINEAGE, MEMBER_ID, PRIMARY, REACHED, RECORD,
    REDUNDANCY, STANDALONE_NODE, THIRD_VOTER,
};
use super::cib_document::CibDocument;
use super::element::child;
use super::nodes::{attribute, is_named, node_state, nodes, transient};
use super::{Error, maintenance, run, wishes};
use crate::adapters::command::Programs;
use crate::base::{Fact, json, printable};
use crate::decide::evidence::{
    Cib, Identity, Lineage, Others, PeerAgent, PeerNode, PublishedState, Reach, START_OPERATION, ShownRole, ThirdVoter,
};

/// Reads this node's replica of the CIB, as far as it concerns `resource` on `node` and `peer`.
///
/// Every Pacemaker 2 and 3 answers a query from the own node's replica unless another host is named. `--local` makes no difference, and
/// 3.0 has deprecated it.
///
/// `reach` is the name of the node attribute that is 0 on a node that users cannot reach.
pub fn query(
    programs: &Programs,
    resource: &str,
    node: &str,
    peer: Option<&str>,
    reach: Option<&str>,
) -> Result<Cib, Error> {
    let xml = run(programs, "cibadmin", &["--query"])?;
    let document = CibDocument::parse(&xml).map_err(Error::Parse)?;
    let cib = read(document.root(), resource, node, peer);
    let reach = reach.map(|name| Box::new(reach_of(document.root(), name, node, peer)));
    Ok(Cib { others: wishes::keep_live(programs, cib.others, node, peer)?, reach, ..cib })
}

/// Reads the CIB as [`query`] does. Takes the peer's name from the CIB. If there are several other nodes, prefers one that is online.
pub fn query_of_node(programs: &Programs, resource: &str, node: &str) -> Result<Cib, Error> {
    let xml = run(programs, "cibadmin", &["--query"])?;
    let peer = other_node(&xml, node)?;
    let cib = parse(&xml, resource, node, peer.as_deref())?;
    Ok(Cib { others: wishes::keep_live(programs, cib.others, node, peer.as_deref())?, ..cib })
}

/// Reads whether users can reach each of the two nodes, from the node attribute `name`.
fn reach_of(cib: Node<'_, '_>, name: &str, node: &str, peer: Option<&str>) -> Reach {
    let value = |node: &str| {
        let permanent = || attribute(nodes(cib).find(|entry| is_named(*entry, node))?, name);
        transient(cib, node).and_then(|set| attribute(set, name)).or_else(permanent)
    };
    let reached = |node: &str| value(node).map_or(Fact::Absent, |value| Fact::Known(value.trim() != "0"));
    Reach { own: reached(node), peer: peer.map_or(Fact::Absent, reached) }
}

fn other_node(xml: &str, node: &str) -> Result<Option<String>, Error> {
    let document = CibDocument::parse(xml).map_err(Error::Parse)?;
    let cib = document.root();
    let others = || nodes(cib).filter_map(|entry| entry.attribute("uname")).filter(|name| *name != node);
    let is_online = |name: &&str| node_state(cib, name).is_some_and(|state| peer_node(state) == PeerNode::Online);
    Ok(others().find(is_online).or_else(|| others().next()).map(str::to_owned))
}

pub fn parse(xml: &str, resource: &str, node: &str, peer: Option<&str>) -> Result<Cib, Error> {
    let document = CibDocument::parse(xml).map_err(Error::Parse)?;
    Ok(read(document.root(), resource, node, peer))
}

fn read(cib: Node<'_, '_>, resource: &str, node: &str, peer: Option<&str>) -> Cib {
    let peer_state = peer.and_then(|peer| node_state(cib, peer));
    // The attributes of a node that has left are invalid, even if they are stuck in the CIB: see `wishes`.
    let peer_there = peer_state.filter(|state| peer_node(*state) == PeerNode::Online);
    let own_failures = node_state(cib, node).map(|state| failures(state, resource)).unwrap_or_default();
    Cib {
        peer_node: peer_state.map_or(PeerNode::NeverSeen, peer_node),
        peer_agent: peer_state.map_or(PeerAgent::NoHistory, |state| peer_agent(state, resource)),
        own_record: node_state(cib, node).and_then(record),
        keeps_own_record: false,
        peer_record: peer_there.and_then(record),
        standalone_node: property(cib, STANDALONE_NODE),
        learner_node: property(cib, LEARNER_NODE),
        lineage: nodes(cib).filter_map(lineage).max().unwrap_or_default(),
        own_lineage: nodes(cib).find(|entry| is_named(*entry, node)).and_then(lineage),
        peer_lineage: nodes(cib).filter(|entry| !is_named(*entry, node)).filter_map(lineage).max(),
        cluster_recorded: nodes(cib).any(|node| attribute(node, CLUSTER_ID).is_some()),
        own_start_failures: own_failures.get(START_OPERATION).copied().unwrap_or(0),
        own_failures,
        own_promotion_score: node_state(cib, node)
            .and_then(|state| attribute(state, &attributes::promotion_score(resource))?.parse().ok()),
        own_identity: nodes(cib).find(|entry| is_named(*entry, node)).and_then(identity),
        own_alarm: transient_of(cib, node, ALARM).map(cleaned),
        own_image: transient_of(cib, node, IMAGE).and_then(|image| json::from_text(image).ok()),
        own_shown: Some(ShownRole {
            leads: transient_of(cib, node, LEADER).and_then(attributes::parse_leader),
            fence_wait: transient_of(cib, node, FENCE_WAIT).is_some(),
        }),
        peer_leads: peer
            .filter(|_| peer_there.is_some())
            .and_then(|peer| transient_of(cib, peer, LEADER).and_then(attributes::parse_leader)),
        peer_identity: peer.and_then(|peer| nodes(cib).find(|entry| is_named(*entry, peer))).and_then(identity),
        redundancy: said(cib, REDUNDANCY),
        reached: said(cib, REACHED),
        primary: property(cib, PRIMARY),
        third_voter: property(cib, THIRD_VOTER).map(|text| ThirdVoter::parse(&text)),
        reach: None,
        in_maintenance: maintenance::applies(cib, resource, node, peer),
        peer_leaves: peer.is_some_and(|peer| maintenance::leaves(cib, peer)),
        others: others(cib, node, peer_there),
    }
}

/// Returns the value of a transient attribute of the node `name`; `None` if the attribute is not set.
fn transient_of<'a>(cib: Node<'a, '_>, name: &str, attribute_name: &str) -> Option<&'a str> {
    attribute(transient(cib, name)?, attribute_name)
}

fn property(cib: Node<'_, '_>, name: &str) -> Option<String> {
    let crm_config = child(child(cib, "configuration")?, "crm_config")?;
    attribute(crm_config, name).map(cleaned)
}

/// Makes a value from the CIB safe to print, because any program may have written it.
fn cleaned(value: &str) -> String {
    printable::one_line(value).into_owned()
}

/// Reads a cluster property that the agent has written. A value that cannot be parsed is `Unknown`.
fn said<T: FromStr<Err = ()>>(cib: Node<'_, '_>, name: &str) -> Fact<T> {
    let Some(said) = property(cib, name) else { return Fact::Absent };
    said.parse().map_or_else(|()| Fact::Unknown(said), Fact::Known)
}

/// Reads the description of a node's etcd data (`etcd_record`). An unreadable description counts as missing, so that the node's agent
/// writes it anew.
fn record(state: Node<'_, '_>) -> Option<PublishedState> {
    json::from_text(attribute(child(state, "transient_attributes")?, RECORD)?).ok()
}

/// Reads the failure counts of `resource`, by operation. "INFINITY", which Pacemaker writes once it has given up, counts as the greatest
/// number.
fn failures(state: Node<'_, '_>, resource: &str) -> BTreeMap<String, u64> {
    let prefix = attributes::failures_of(resource, "");
    let counts = state.descendants().filter(|pair| pair.has_tag_name("nvpair")).filter_map(|pair| {
        let operation = pair.attribute("name")?.strip_prefix(&prefix)?;
        Some((operation.to_owned(), pair.attribute("value")?.parse().unwrap_or(u64::MAX)))
    });
    counts.collect()
}

fn lineage(node: Node<'_, '_>) -> Option<Lineage> {
    attributes::parse_lineage(attribute(node, LINEAGE)?)
}

/// Reads the attributes that other programs set. A transient attribute counts as set whatever its value is.
fn others(cib: Node<'_, '_>, node: &str, peer: Option<Node<'_, '_>>) -> Others {
    let own_state = node_state(cib, node);
    let transient =
        |state: Option<Node<'_, '_>>, name: &str| state.is_some_and(|state| attribute(state, name).is_some());
    let own = nodes(cib).find(|entry| is_named(*entry, node));
    let permanent = |name: &str| own.and_then(|own| attribute(own, name));
    Others {
        node_ip: permanent(attributes::NODE_IP).map(str::to_owned),
        revision: permanent(attributes::REVISION).and_then(|revision| revision.parse().ok()),
        system_uuid: permanent(attributes::SYSTEM_UUID).map(cleaned),
        force_on_me: transient(own_state, attributes::FORCE_NEW_CLUSTER),
        force_on_peer: transient(peer, attributes::FORCE_NEW_CLUSTER),
        restart_no_leave: transient(own_state, attributes::RESTART_NO_LEAVE),
        removal_lock: permanent(attributes::REMOVAL_LOCK).map(str::to_owned),
    }
}

fn identity(node: Node<'_, '_>) -> Option<Identity> {
    Some(Identity {
        cluster_id: attribute(node, CLUSTER_ID)?.parse().ok()?,
        member_id: u64::from_str_radix(attribute(node, MEMBER_ID)?, 16).ok()?,
    })
}

/// Returns whether a field of a node's state is set. Pacemaker up to 2.1.7 writes `word` into a set field. Later versions write the time at
/// which the field was set, or 0 if it is not.
fn is_set(value: Option<&str>, word: &str) -> bool {
    value.is_some_and(|value| value == word || value.parse::<u64>().is_ok_and(|since| since > 0))
}

/// Reads the state of the peer's node by the first half of the rule of Pacemaker's scheduler. A node that has left although it is expected
/// to be a member is unclean until it is fenced. `expected` is "down" for a node that was fenced, and for one that has asked to shut down.
///
/// The second half of the rule uses the node's operation history: see [`Cib::peer_machine`].
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

/// Reads the state of the agent on the peer from the operation history of `resource`. A pending operation decides; without one, the
/// operation that ended last decides.
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

/// Returns the state of the agent on the peer after an operation. Only a successful stop, or a monitor that found nothing, proves that
/// etcd is stopped.
fn after(operation: Option<&str>, rc: Option<&str>) -> PeerAgent {
    match (operation, rc) {
        (Some("stop"), Some("0")) | (Some("monitor"), Some("7")) => PeerAgent::Stopped,
        _ => PeerAgent::Active,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decide::evidence::Redundancy;

    /// The CIB of a real cluster with Pacemaker 2.1.5, queried on node2. Both etcds are voters.
    const TWO_VOTERS: &str = include_str!("../../../tests/data/fixtures/cib/two-voters.xml");
    const PEER_LOST: &str = include_str!("../../../tests/data/fixtures/cib/peer-lost.xml");
    const PEER_FENCED: &str = include_str!("../../../tests/data/fixtures/cib/peer-fenced.xml");
    const PEER_JOINING: &str = include_str!("../../../tests/data/fixtures/cib/peer-joining.xml");
    /// A CIB of Pacemaker 3.0.0, queried on node1. node2 has left cleanly, but a new attribute writer has restored its attributes.
    const PEER_LEFT: &str = include_str!("../../../tests/data/fixtures/cib/peer-left-attributes-stuck.xml");

    fn seen(xml: &str) -> Cib {
        parse(xml, "etcd", "node2", Some("node1")).unwrap()
    }

    #[test]
    fn a_lost_node_is_lost_until_fencing_says_that_it_is_down() {
        let seen = [TWO_VOTERS, PEER_LOST, PEER_FENCED].map(|xml| seen(xml).peer_node);
        assert_eq!(seen, [PeerNode::Online, PeerNode::Lost, PeerNode::Down]);
    }

    #[test]
    fn a_node_that_asked_to_shut_down_and_is_lost_has_its_history_still() {
        let asked = PEER_LOST.replace("expected=\"member\"", "expected=\"down\"");
        assert_ne!(asked, PEER_LOST);
        let cib = seen(&asked);
        assert_eq!((cib.peer_node, cib.peer_agent), (PeerNode::Down, PeerAgent::Active));
        assert_eq!((cib.peer_machine(), seen(PEER_FENCED).peer_machine()), (PeerNode::Lost, PeerNode::Down));
    }

    #[test]
    fn fencing_takes_back_the_peers_record_and_its_history() {
        let (before, after) = (seen(TWO_VOTERS), seen(PEER_FENCED));
        assert!(before.peer_record.is_some_and(|record| record.claims));
        assert_eq!(after.peer_record, None);
        assert_eq!((before.peer_agent, after.peer_agent), (PeerAgent::Active, PeerAgent::NoHistory));
        assert!(after.own_record.is_some());
    }

    #[test]
    fn what_is_stuck_of_a_node_that_has_left_is_nobodys_word() {
        let seen = |xml: &str| parse(xml, "etcd", "node1", Some("node2")).unwrap();
        let told = |cib: &Cib| (cib.peer_node, cib.peer_record.is_some(), cib.others.force_on_peer);
        let left = seen(PEER_LEFT);
        assert_eq!(told(&left), (PeerNode::Down, false, false));
        assert_eq!(left.peer_machine(), PeerNode::Down);
        assert!(left.own_record.is_some_and(|record| record.claims));
        // The attributes stay invalid while the node is back without Pacemaker, and while it is lost.
        let corosync_alone = PEER_LEFT.replace("in_ccm=\"0\"", "in_ccm=\"1795427999\"");
        assert_eq!(told(&seen(&corosync_alone)), (PeerNode::Pending, false, false));
        let lost = PEER_LEFT.replace("expected=\"down\"", "expected=\"member\"");
        assert_eq!(told(&seen(&lost)), (PeerNode::Lost, false, false));
        // The node and its Pacemaker are back.
        let back = corosync_alone.replace("crmd=\"0\"", "crmd=\"1795427999\"");
        assert_eq!(told(&seen(&back)), (PeerNode::Online, true, true));
    }

    #[test]
    fn a_node_attribute_says_whether_users_reach_a_node_and_none_says_nothing() {
        let node = "<node id=\"1\" uname=\"node1\">";
        let pair = |value: &str| format!("<nvpair id=\"r\" name=\"users-reach\" value=\"{value}\"/>");
        let reach = |xml: &str| {
            let document = CibDocument::parse(xml).unwrap();
            let Reach { own, peer } = reach_of(document.root(), "users-reach", "node2", Some("node1"));
            (own, peer)
        };
        assert_eq!(reach(TWO_VOTERS), (Fact::Absent, Fact::Absent));
        for (value, is_reached) in [("0", false), (" 0", false), ("1000", true), ("yes", true)] {
            let set = format!("{node}<instance_attributes id=\"s\">{}</instance_attributes>", pair(value));
            assert_eq!(reach(&TWO_VOTERS.replacen(node, &set, 1)), (Fact::Absent, Fact::Known(is_reached)), "{value}");
        }
        // The first transient attributes in the document are node2's, and override permanent ones.
        let transient = "<transient_attributes id=\"2\">";
        let set = format!("{transient}<instance_attributes id=\"t\">{}</instance_attributes>", pair("0"));
        assert_eq!(reach(&TWO_VOTERS.replacen(transient, &set, 1)), (Fact::Known(false), Fact::Absent));
        assert_eq!(seen(TWO_VOTERS).reach, None);
    }

    #[test]
    fn another_resources_pending_start_is_not_ours() {
        assert!(PEER_JOINING.contains("op-status=\"-1\""));
        assert_eq!(seen(PEER_JOINING).peer_agent, PeerAgent::NoHistory);
    }

    #[test]
    fn the_last_word_counts_and_only_success_confirms_a_stop() {
        let state = |operations: &str| {
            format!(
                "<cib><status><node_state uname=\"node1\" in_ccm=\"1700000000\" crmd=\"1700000001\" expected=\"member\">\
                 <lrm><lrm_resources><lrm_resource id=\"etcd:0\">{operations}</lrm_resource>\
                 <lrm_resource id=\"etcd2\"><lrm_rsc_op operation=\"start\" call-id=\"99\" rc-code=\"0\"/></lrm_resource>\
                 </lrm_resources></lrm></node_state></status></cib>"
            )
        };
        let op = |name: &str, call: i32, rc: i32| {
            format!("<lrm_rsc_op operation=\"{name}\" call-id=\"{call}\" rc-code=\"{rc}\" op-status=\"0\"/>")
        };
        for (operations, expected) in [
            (String::new(), PeerAgent::NoHistory),
            (op("monitor", 5, 7), PeerAgent::Stopped),
            (op("start", 9, 0) + &op("monitor", 5, 7), PeerAgent::Active),
            (op("start", 9, 0) + &op("stop", 12, 0), PeerAgent::Stopped),
            (op("start", 9, 0) + &op("stop", 12, 1), PeerAgent::Active),
            (op("start", 9, 1), PeerAgent::Active),
            (
                op("stop", 9, 0) + "<lrm_rsc_op operation=\"start\" call-id=\"-1\" op-status=\"-1\"/>",
                PeerAgent::Starting,
            ),
            (
                op("start", 9, 0) + "<lrm_rsc_op operation=\"stop\" call-id=\"-1\" op-status=\"-1\"/>",
                PeerAgent::Stopping,
            ),
        ] {
            let cib = seen(&state(&operations));
            assert_eq!((cib.peer_node, cib.peer_agent), (PeerNode::Online, expected), "{operations}");
        }
    }

    #[test]
    fn what_the_cluster_remembers_of_its_redundancy_is_read_and_rubbish_is_unknown() {
        assert_eq!(seen(TWO_VOTERS).redundancy, Fact::Absent);
        let said = |value: &str| {
            let property =
                format!("<nvpair id=\"r\" name=\"etcd_redundancy\" value=\"{value}\"/></cluster_property_set>");
            seen(&TWO_VOTERS.replace("</cluster_property_set>", &property)).redundancy
        };
        for (value, is_redundant) in [("redundant:1795442548", true), ("alone:1795442548", false)] {
            let read = said(value);
            assert_eq!(read, Fact::Known(Redundancy { is_redundant, since: 1_795_442_548 }));
            assert_eq!(read.known().unwrap().to_string(), value);
        }
        for rubbish in ["redundant", "both:1795442548", "alone:yesterday"] {
            assert!(matches!(said(rubbish), Fact::Unknown(_)), "{rubbish}");
        }
    }

    #[test]
    fn the_third_voter_is_read_and_rubbish_is_one_at_an_unknown_address() {
        assert_eq!(seen(TWO_VOTERS).third_voter, None);
        let said = |value: &str| {
            let property = format!("<nvpair id=\"g\" name=\"etcd_guest\" value=\"{value}\"/></cluster_property_set>");
            seen(&TWO_VOTERS.replace("</cluster_property_set>", &property)).third_voter.unwrap()
        };
        let (name, peer_url) = ("node3".to_owned(), "https://192.0.2.3:2380".to_owned());
        for (value, id) in [
            ("node3=https://192.0.2.3:2380", None),
            ("node3=https://192.0.2.3:2380 8e9e05c52164694d", Some(0x8e9e_05c5_2164_694d)),
        ] {
            let third_voter = ThirdVoter { name: name.clone(), peer_url: peer_url.clone(), id };
            assert_eq!((said(value), third_voter.to_string().as_str()), (third_voter, value));
        }
        for rubbish in ["node3", "=https://192.0.2.3:2380", "node3=192.0.2.3", "node3=https://192.0.2.3:2380 member"] {
            assert_eq!(said(rubbish), ThirdVoter { name: rubbish.to_owned(), ..ThirdVoter::default() });
        }
    }

    #[test]
    fn what_is_no_cib_is_an_error_and_no_empty_cluster() {
        assert!(parse("<html/>", "etcd", "node2", None).is_err());
        assert!(parse("<cib", "etcd", "node2", None).is_err());
    }

    #[test]
    fn names_are_compared_exactly() {
        let cib = parse(PEER_FENCED, "etcd", "node2", Some("node10")).unwrap();
        assert_eq!(cib.peer_node, PeerNode::NeverSeen);
    }
}
