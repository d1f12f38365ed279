//! The wait until either node may be lost. That is a moment later than two voters are there: an etcd votes before its
//! agent has published and stored that. A node that loses its peer in between refuses to run standalone, and must.

use serde_json::Value;

use crate::host;
use crate::host::node::NODES;
use crate::host::state::Lab;
use crate::judge::check;
use crate::programs::shell_agent::Agent;
use crate::sh::Result;

/// Waits until the loss of either node is safe: both agents have stored that two members vote, and have nothing left to publish. Returns
/// at once with the shell agent, because it does not store the number of voters.
pub fn wait(lab: &Lab) -> Result<()> {
    if Agent::of(lab) != Agent::Tandem {
        return Ok(());
    }
    NODES.into_iter().try_for_each(|node| {
        let explain = || host::said(lab, node, &["tandem", "explain", "--json"]);
        let what = format!("the agent of {node} is ready for the loss of its peer");
        check::eventually(&what, explain, |said| remembers(said)).map(drop)
    })
}

fn remembers(said: &str) -> bool {
    let Ok(explained) = serde_json::from_str::<Value>(said) else { return false };
    let voter = explained.pointer("/snapshot/boot_memory/known/voter/sole");
    let to_do = explained.pointer("/plan/effects").and_then(Value::as_array);
    voter == Some(&Value::Bool(false)) && to_do.is_some_and(Vec::is_empty)
}
