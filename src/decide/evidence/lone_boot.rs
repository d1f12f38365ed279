//! What a node finds out that boots without its peer and waits for it. Only `tandem lone-boot` asks for that.

use serde::{Deserialize, Serialize};

use super::Version;
use crate::base::Fact;

/// The parameters about a lone boot, what obstructs it other than the data, and what is done already.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct LoneBoot {
    /// Whether a parameter asks for it (`lone_boot=sole_voter`).
    pub is_wanted: bool,
    /// For how many seconds the peer has to be off (`lone_boot_wait`).
    pub wait_s: u64,
    /// Whether Corosync has quorum here.
    pub quorum: Fact<bool>,
    /// Whether Corosync waits for all members of its list (`wait_for_all`), and has no quorum because of that.
    pub waits_for_all: Fact<bool>,
    /// Whether the peer was a member of Corosync's membership since this machine booted, and not only since Corosync started.
    pub peer_was_seen: Fact<bool>,
    /// Whether the log records as committed every change of the voters in it.
    pub voters_are_committed: Fact<bool>,
    /// The release of etcd that wrote the data here last. Absent where no container and no image of it is left.
    pub release: Fact<Version>,
    /// What the peer's fence device reports. Absent where the peer has no device that may be asked.
    pub peer_bmc: Fact<PeerBmc>,
    /// The UUID that this machine has itself.
    pub own_uuid: Fact<String>,
    pub done: Done,
}

/// The steps of a lone boot that were seen to be done in this boot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Done {
    /// The CIB names this node in the cluster property `etcd_lone_boot`, as it was written in this boot.
    pub is_announced: bool,
    /// The fencer has switched the peer off since then, and the CIB has the peer as fenced.
    pub is_held_off: bool,
}

/// What a peer's BMC reports, and which machine it controls. UUIDs are equal as text where they name one machine.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PeerBmc {
    pub power: Power,
    /// The UUID of the machine that the BMC controls, as the BMC reports it.
    pub found: Option<String>,
    /// The UUID that the device names (`system_uuid`).
    pub by_device: Option<String>,
    /// The UUID that the peer's agent found on its own machine (node attribute `etcd_system_uuid`).
    pub by_agent: Option<String>,
}

/// A machine's power, as its BMC reports it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Power {
    /// Off in each observation, by the same machine's BMC.
    Off {
        /// The time from the first of these observations to the last one.
        for_ms: u64,
        /// The time since the last one.
        age_ms: u64,
    },
    On,
    /// Neither, such as `PoweringOn`.
    Unclear {
        says: String,
    },
    /// It gives no answer.
    Silent {
        why: String,
    },
}
