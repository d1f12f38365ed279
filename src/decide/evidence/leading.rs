//! Which node is to lead, and what a hand-over of leadership rests on.

use serde::{Deserialize, Serialize};

use super::NodeName;
use crate::base::Fact;

/// Parameters about the node that is to lead, with the seconds for which a hand-over of leadership has been due.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Leading {
    /// Configured primary: the node that is to lead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub primary: Option<NodeName>,
    /// True if leadership returns to the primary after a failure.
    #[serde(default)]
    pub failback: bool,
    /// True if the primary's history is kept when two histories meet (`two_histories=primary`).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub keeps_its_history: bool,
    /// Seconds for which the primary has to be well before leadership returns to it.
    pub delay_s: u64,
    /// Seconds since the time that [`HandOver::since_s`] stores; `None` if no hand-over is stored in this boot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready_for_s: Option<u64>,
    /// Seconds without a leader after which the node that is not the configured primary gives up its claim to run standalone; 0
    /// means never.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub patience_s: u64,
    /// Seconds for which this node's etcd has had no leader: see [`super::BootState::leaderless_since_s`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leaderless_for_s: Option<u64>,
    /// Seconds from this machine's boot to this observation. A new [`HandOver`] counts from here.
    #[serde(default)]
    pub boot_s: u32,
}

/// Whether users can reach this node and the peer. A detector writes this into a node attribute of each; `None` for a node
/// without a value.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Reach {
    pub own: Fact<bool>,
    pub peer: Fact<bool>,
}

/// Reason for moving leadership to the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// The peer is the configured primary.
    Primary,
    /// Users can reach the peer, and cannot reach this node.
    Reach,
}

/// Hand-over of leadership that is due. The leader's agent stores it in [`super::BootState`]. No obstacle to the hand-over has
/// existed since `since_s`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct HandOver {
    pub cause: Cause,
    /// Time, in seconds since this boot, at which the hand-over became due, or was last tried.
    pub since_s: u32,
    /// Number of hand-overs that were tried in vain.
    #[serde(default)]
    pub tries: u8,
}
