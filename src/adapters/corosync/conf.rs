//! Corosync's configuration on a node: its path, a limit for its size, and its times.

use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::os::regular_file;

pub const PATH: &str = "/etc/corosync/corosync.conf";
/// The greatest size of `corosync.conf` that is read, in bytes.
const LIMIT: u64 = 1024 * 1024;

/// Reads the `corosync.conf` of this node.
pub fn text() -> io::Result<String> {
    text_at(Path::new(PATH))
}

pub(crate) fn text_at(path: &Path) -> io::Result<String> {
    regular_file::text_of_at_most(path, LIMIT)
}

/// The times after which Corosync detects a lost node, from `totem` in `corosync.conf(5)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Detection {
    /// The milliseconds without Corosync's token after which a node counts as lost.
    pub token: u64,
    /// The milliseconds in which the remaining nodes agree on a membership without the lost node.
    pub consensus: u64,
}

impl Detection {
    /// Returns the greatest number of milliseconds between the loss of a node and a membership without that node.
    pub fn takes(self) -> u64 {
        self.token.saturating_add(self.consensus)
    }
}

/// Reads the times from the `corosync.conf` in `text`, for a cluster of two nodes. Missing times have the defaults of Corosync
/// 3.1.
pub fn detection(text: &str) -> Detection {
    const TOKEN: u64 = 3000;
    let lines =
        text.lines().map(str::trim).filter(|line| !line.starts_with('#')).filter_map(|line| line.split_once(':'));
    let (mut token, mut consensus) = (TOKEN, None);
    for (key, value) in lines {
        match (key.trim(), value.trim().parse()) {
            ("token", Ok(value)) => token = value,
            ("consensus", Ok(value)) => consensus = Some(value),
            _ => {}
        }
    }
    Detection { token, consensus: consensus.unwrap_or(token.saturating_mul(6) / 5) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lost_node_is_noticed_after_the_token_and_the_consensus() {
        let of = |text| {
            let Detection { token, consensus } = detection(text);
            (token, consensus, detection(text).takes())
        };
        assert_eq!(of("totem {\n  version: 2\n}\n"), (3000, 3600, 6600));
        assert_eq!(of("totem {\n  token: 1000\n}\n"), (1000, 1200, 2200));
        assert_eq!(of("totem {\n  # token: 500\n  consensus: 1500\n  token: 1000\n}\n"), (1000, 1500, 2500));
        assert_eq!(of("totem {\n  token: soon\n  token_retransmit: 238\n}\n"), (3000, 3600, 6600));
    }
}
