//! What a node finds out that boots without its peer and waits for it. Only `tandem lone-boot` asks for that.

use serde::{Deserialize, Serialize};

use super::Version;
use crate::base::Fact;

/// Parameters of a lone boot (a boot without the peer), facts that may forbid it, and the steps already done.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct LoneBoot {
    /// True if the parameters allow a lone boot (`lone_boot=sole_voter`).
    pub is_wanted: bool,
    /// Seconds for which the peer has to be off before this node boots alone (`lone_boot_wait`).
    pub wait_s: u64,
    /// True if Corosync has quorum on this node.
    pub quorum: Fact<bool>,
    /// True if Corosync has no quorum because it waits for all members of its list (`wait_for_all`).
    pub waits_for_all: Fact<bool>,
    /// True if the peer was in Corosync's membership at any time since this machine booted, even if Corosync was restarted since.
    pub peer_was_seen: Fact<bool>,
    /// True if every change of the voters in this node's log is recorded there as committed.
    pub voters_are_committed: Fact<bool>,
    /// Release of etcd that last wrote this node's data. `Absent` if neither a container nor an image of that etcd is left.
    pub release: Fact<Version>,
    /// Report of the peer's BMC, which the peer's fence device names. `Absent` if no device of the peer may be asked.
    pub peer_bmc: Fact<PeerBmc>,
    /// UUID that this machine's firmware reports.
    pub own_uuid: Fact<String>,
    pub done: Done,
}

/// Steps of a lone boot that an observation has confirmed as done in this boot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Done {
    /// True if this node wrote its name into the cluster property `etcd_lone_boot` in this boot.
    pub is_announced: bool,
    /// True if the fencer switched the peer off after `etcd_lone_boot` named this node, and the CIB shows the peer as fenced.
    pub is_held_off: bool,
}

/// Report of the peer's BMC, with the UUIDs that identify the machine it controls. Two UUIDs name the same machine if their texts
/// are equal.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PeerBmc {
    pub power: Power,
    /// The UUID of the machine that the BMC controls, as the BMC reports it.
    pub found: Option<String>,
    /// UUID of the peer's machine that the fence device's configuration names (`system_uuid`).
    pub by_device: Option<String>,
    /// The UUID that the peer's agent found on its own machine (node attribute `etcd_system_uuid`).
    pub by_agent: Option<String>,
}

/// A machine's power, as its BMC reports it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Power {
    /// Off in every observation, and each observation was answered by the BMC of the same machine.
    Off {
        /// Milliseconds from the first observation of the machine as off to the latest one.
        for_ms: u64,
        /// Milliseconds since the latest observation of the machine as off.
        age_ms: u64,
    },
    On,
    /// Neither on nor off, such as `PoweringOn`.
    Unclear {
        says: String,
    },
    /// No answer from the BMC.
    Silent {
        why: String,
    },
}
