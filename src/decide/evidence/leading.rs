//! Which node is to lead, and what a hand-over of leadership rests on.

use serde::{Deserialize, Serialize};

use super::NodeName;
use crate::base::Fact;

/// Parameters about the node that is to lead, and how long a hand-over has been due.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Leading {
    /// Configured primary: the node that is to lead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub primary: Option<NodeName>,
    /// True if leadership returns to the primary after a failure.
    #[serde(default)]
    pub failback: bool,
    /// True if the primary's history continues when two histories meet (`two_histories=primary`).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub keeps_its_history: bool,
    /// Seconds for which the primary has to be well before leadership returns to it.
    pub delay_s: u64,
    /// Seconds since the hand-over became due that the agent has stored in this boot: see [`HandOver::since_s`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready_for_s: Option<u64>,
    /// Seconds without a leader after which the node that is not the primary yields; 0 means never.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub patience_s: u64,
    /// Seconds for which this node's etcd has had no leader: see [`super::BootState::leaderless_since_s`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leaderless_for_s: Option<u64>,
    /// Seconds from this machine's boot to this observation. A new [`HandOver`] counts from here.
    #[serde(default)]
    pub boot_s: u32,
}

/// Whether users can reach this node and the peer, from a detector's node attribute; `None` for a node without a value.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Reach {
    pub own: Fact<bool>,
    pub peer: Fact<bool>,
}

/// Cause for moving leadership to the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// The peer is the configured primary.
    Primary,
    /// Users can reach the peer, and cannot reach this node.
    Reach,
}

/// Hand-over of leadership that is due, as the leader's agent stores it in [`super::BootState`]. Nothing has obstructed
/// it since `since_s`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct HandOver {
    pub cause: Cause,
    /// Time, in seconds since this boot, at which the hand-over became due, or was last tried.
    pub since_s: u32,
    /// Number of hand-overs that were tried in vain.
    #[serde(default)]
    pub tries: u8,
}
