//! The collector on hosts that have no timer for it: each run is a typed command.

use std::time::Duration;

use serde_json::Value;

use crate::host;
use crate::host::node::{NODES, Node};
use crate::host::state::Lab;
use crate::sh::Result;

/// Runs Tandem's status collector on both nodes. Each run sees what earlier runs published, so the last one sees
/// everything.
pub fn collect(lab: &Lab) -> Result<()> {
    NODES.into_iter().try_for_each(|node| collect_on(lab, node))
}

pub fn collect_on(lab: &Lab, node: Node) -> Result<()> {
    host::must(lab, node, &["tandem", "collect"]).map(drop)
}

/// Deletes the status that the collector published as a node attribute. Nothing renews it in the lab, and after five
/// minutes it would count as stale.
pub fn forget(lab: &Lab) -> Result<()> {
    for node in NODES.into_iter().filter(|node| host::running(lab, *node).is_some()) {
        host::must(lab, node, &["attrd_updater", "--delete", "--name", "tandem-collected"])?;
    }
    Ok(())
}

/// Makes the status that the collector on `node` published appear `age` old.
pub fn make_old(lab: &Lab, node: Node, age: Duration) -> Result<()> {
    // Pacemaker 2.1 escapes quotes as XML does, and 3.0 as C does.
    let all = host::must(lab, node, &["attrd_updater", "--query", "--name", "tandem-collected"])?;
    let said = all.lines().find(|line| line.contains(&format!("host=\"{node}\""))).unwrap_or_default();
    let value = said.split_once("value=\"").and_then(|(_, rest)| rest.trim_end().strip_suffix('"'));
    let value = value.ok_or_else(|| format!("no value: {said}"))?.replace("&quot;", "\"").replace("\\\"", "\"");
    let mut published: Value = serde_json::from_str(&value).map_err(|error| format!("{error}: {value}"))?;
    let at = published["at"].as_u64().ok_or("it has no time")?;
    published["at"] = at.saturating_sub(age.as_secs()).into();
    let update = ["attrd_updater", "--name", "tandem-collected", "--update", &published.to_string()];
    host::must(lab, node, &update).map(drop)
}
