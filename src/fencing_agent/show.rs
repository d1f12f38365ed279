//! The output of `nodes` and `events`.

use std::io;

use super::shell::grpc::messages::{Event, EventType, Node, Timestamp};
use crate::base::utc;

fn time(at: Timestamp) -> String {
    utc(at.since_1970().as_secs())
}

/// Returns the text that `fencing-agent nodes` prints, with a line for each node.
pub(super) fn nodes(nodes: &[Node]) -> String {
    let lines = nodes.iter().map(|node| {
        let addresses: Vec<String> =
            node.addresses.iter().map(|(network, address)| format!("{network} {address}")).collect();
        let lost = node.prev_disconnect_time.map(|at| format!(", lost before at {}", time(at)));
        format!("{}: {}{}", node.name, addresses.join(", "), lost.unwrap_or_default())
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn node_value(node: &Node) -> serde_json::Value {
    serde_json::json!({
        "name": node.name,
        "addresses": node.addresses,
        "prevDisconnectTime": node.prev_disconnect_time.map(time),
    })
}

pub(super) fn nodes_as_json(nodes: &[Node]) -> io::Result<String> {
    Ok(serde_json::to_string_pretty(&nodes.iter().map(node_value).collect::<Vec<_>>())?)
}

fn kind(event: &Event) -> &'static str {
    match EventType::try_from(event.r#type) {
        Ok(EventType::Left) => "LEFT",
        Ok(EventType::Join) => "JOIN",
        _ => "UNDEFINED",
    }
}

/// Returns the line that `fencing-agent events` prints for an event.
pub(super) fn event(event: &Event) -> String {
    let name = event.node.as_ref().map(|node| node.name.as_str()).unwrap_or_default();
    let at = event.time.map(time).unwrap_or_default();
    let source = event.source_name.as_ref().map(|source| format!(" by {source}")).unwrap_or_default();
    format!("{at} {} {name}{source}", kind(event))
}

pub(super) fn event_as_json(event: &Event) -> io::Result<String> {
    Ok(serde_json::to_string(&serde_json::json!({
        "type": kind(event),
        "time": event.time.map(time),
        "node": event.node.as_ref().map(node_value),
        "sourceName": event.source_name,
    }))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_a_line() {
        let node = Node {
            name: "b".to_owned(),
            addresses: [("eth0".to_owned(), "192.0.2.2".to_owned())].into(),
            prev_disconnect_time: Some(Timestamp { seconds: 1_769_903_999, nanos: 5 }),
        };
        let left = Event {
            node: Some(node.clone()),
            time: Some(Timestamp { seconds: 1_769_903_999, nanos: 0 }),
            r#type: EventType::Left.into(),
            source_name: Some("a".to_owned()),
        };
        assert!(event(&left).ends_with(" LEFT b by a") && event(&left).starts_with("2026-01-31"), "{}", event(&left));
        assert!(nodes(&[node]).starts_with("b: eth0 192.0.2.2, lost before at 2026-01-31"));
        assert!(event_as_json(&left).unwrap().contains("\"type\":\"LEFT\""));
    }
}
