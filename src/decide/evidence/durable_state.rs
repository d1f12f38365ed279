//! What this node wrote down itself, for good or for this boot, and what an operator wrote down here.

use std::hash::{Hash, Hasher};

use serde::{Deserialize, Serialize};

use super::{DataEnd, HandOver, Lineage, LogPosition, MemberId, NodeName};

/// Durable note next to the data dir.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct DurableState {
    pub lineage: Lineage,
    /// Set before this node runs standalone: how far its data reached then.
    pub alone_since: Option<LogPosition>,
    /// The newest revision of a key that this node knew then. The other node has it, too: two voters had committed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alone_revision: Option<u64>,
    /// Set before this member leaves the member list.
    pub left_at: Option<LogPosition>,
    /// Set when this node runs standalone at an operator's confirmation, which gave the peer's own history up by name. When
    /// the peer comes back with one, the operator does not have to choose between the two again.
    #[serde(default)]
    pub gave_up: bool,
    /// Set when this node joins, until it votes again: what was backed up meanwhile may be the last copy but one.
    #[serde(default)]
    pub joins: bool,
    /// The data that all of this is about. State that was written before it named its data has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<DataOwner>,
    /// The voter that this node announced to continue without. Its force, or a vote in its place, removes that member for good: where it
    /// still votes with this node, the announcement was not carried out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub without: Option<MemberId>,
}

/// Names one member's data on one node.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct DataOwner {
    pub cluster_id: u64,
    pub member_id: MemberId,
    pub node: NodeName,
}

/// Memory of this boot about its etcd, kept where no reboot preserves it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BootState {
    pub boot_id: String,
    /// Set once our etcd, as a voter of a cluster with a leader, has been seen in this boot; taken back by a stop that the
    /// peer could see. While it is set, and the claim is in the CIB, the peer cannot have run standalone: see
    /// [`super::Evidence::running_voter`].
    pub voter: Option<RunningVoter>,
    /// True if Pacemaker promoted this instance.
    pub promoted: bool,
    /// The number of failed starts that Pacemaker had counted when our etcd last served.
    #[serde(default)]
    pub start_failures: u64,
    /// True if a vote was cast in vain for a peer that is off, and etcd is to be restarted instead; until it serves again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub in_vain: bool,
    /// The end of the data at the last stop of this boot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<DataEnd>,
    /// A hand-over of leadership that is due, on the leader's node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hand_over: Option<HandOver>,
    /// Time at which this node's etcd was first seen without a leader next to a primary that is to have the lead, in seconds
    /// since this boot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leaderless_since_s: Option<u32>,
}

/// By hand: a search orders states by these numbers, and a memory without a hand-over keeps the one that it had before there were any.
impl Hash for BootState {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let Self { boot_id, voter, promoted, start_failures, in_vain, ended_at, hand_over, leaderless_since_s } = self;
        (boot_id, voter, promoted, start_failures, in_vain, ended_at).hash(state);
        if let Some(due) = hand_over {
            due.hash(state);
        }
        if let Some(since_s) = leaderless_since_s {
            ("leaderless", since_s).hash(state);
        }
    }
}

/// The operator's confirmation, given with `tandem confirm-recovery`: for one use, in one boot, for the data as it was
/// then.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Confirmation {
    pub boot_id: String,
    /// The node that is given up, by name.
    pub lost_node: NodeName,
    pub cluster_id: u64,
    pub member_id: MemberId,
    pub position: LogPosition,
    /// True if the operator accepts that the lost node ran standalone, and that those writes are lost.
    pub accept_loss: bool,
}

/// A voter that was seen running.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RunningVoter {
    pub cluster_id: u64,
    pub member_id: MemberId,
    pub lineage: Lineage,
    /// True if it was the only voter.
    pub sole: bool,
    /// True if a majority of three or more could acknowledge without it: then it proves nothing of what it holds.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub among_many: bool,
}
