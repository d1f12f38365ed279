//! Which Corosync `tandem lone-boot` found first in this boot. It lies in the directory that no reboot outlives.

use serde::{Deserialize, Serialize};

/// The first Corosync of a boot. A later one does not know whether the peer was there before it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FirstCorosync {
    /// The boot, as the agent names it.
    pub boot_id: String,
    /// When it started, in clock ticks since boot.
    pub started: u64,
}
