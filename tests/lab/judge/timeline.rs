//! One story out of many logs: both hosts' syslog, the BMCs, and the lab's own actions, sorted by time.

use std::fs;

use crate::host::node::NODES;
use crate::host::state::Lab;

/// Returns the lines of all logs of the lab, sorted by time. Each begins with its time and its source.
pub fn merged(lab: &Lab) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut files = vec![lab.events(), lab.bmc_log()];
    files.extend(NODES.map(|node| lab.messages(node)));
    for file in files {
        // A host that never booted has no log yet.
        lines.extend(fs::read_to_string(file).unwrap_or_default().lines().map(str::to_owned));
    }
    // The sort is stable, and the stamps sort as text, so that lines of one source keep their order.
    lines.sort_by(|a, b| a.get(..24).cmp(&b.get(..24)));
    lines
}
