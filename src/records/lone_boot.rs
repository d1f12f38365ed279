//! Which Corosync `tandem lone-boot` found first in this boot. It lies in the directory that no reboot outlives.

use serde::{Deserialize, Serialize};

/// The Corosync process that `tandem lone-boot` found first in this boot. A Corosync process that starts later does not know whether the
/// peer was a member before.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FirstCorosync {
    /// The id of this boot, as the kernel reports it.
    pub boot_id: String,
    /// The start of the Corosync process, in clock ticks since boot.
    pub started: u64,
}
