//! Which node is to lead, and what a hand-over of leadership rests on.

use serde::{Deserialize, Serialize};

use super::NodeName;
use crate::base::Fact;

/// The parameters about the node that is to lead, and how long a hand-over has been due. There is none where no parameter asks for one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Leading {
    /// The node that is to lead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub primary: Option<NodeName>,
    /// True if leadership goes back to it.
    #[serde(default)]
    pub failback: bool,
    /// True if its history continues where two histories meet (`two_histories=primary`).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub keeps_its_history: bool,
    /// For how many seconds the primary has to be well before that.
    pub delay_s: u64,
    /// For how many seconds what this boot remembers of a hand-over has held: see [`HandOver::since_s`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready_for_s: Option<u64>,
    /// For how many seconds the node that is not the primary is without a leader before it yields; 0: for ever.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub patience_s: u64,
    /// For how many seconds this node's etcd has had no leader: see [`super::BootState::leaderless_since_s`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leaderless_for_s: Option<u64>,
    /// The seconds since this boot as this round began, which a new [`HandOver`] counts from.
    #[serde(default)]
    pub boot_s: u32,
}

/// Reachability of this node and of the peer for users, as a detector has it; absent where it has nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Reach {
    pub own: Fact<bool>,
    pub peer: Fact<bool>,
}

/// Cause for moving leadership.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// The peer is the configured primary.
    Primary,
    /// Users do not reach this node, and reach the peer.
    Reach,
}

/// Memory of a leader about a hand-over that is due: nothing has obstructed it since then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct HandOver {
    pub cause: Cause,
    /// Time at which that was first seen, or the last try was made, in seconds since this boot.
    pub since_s: u32,
    /// The number of tries in vain.
    #[serde(default)]
    pub tries: u8,
}
