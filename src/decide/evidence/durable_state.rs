//! What this node wrote down itself, for good or for this boot, and what an operator wrote down here.

use std::hash::{Hash, Hasher};

use serde::{Deserialize, Serialize};

use super::{DataEnd, HandOver, Lineage, LogPosition, MemberId, NodeName};

/// Durable note: a file next to the data dir in which the agent records what must survive a reboot.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct DurableState {
    pub lineage: Lineage,
    /// End of this node's log when the agent last announced that the node runs standalone; written before the node does so.
    pub alone_since: Option<LogPosition>,
    /// Newest revision of a key that this node knew when it began to run standalone. The other node has that revision too, because two
    /// voters had committed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alone_revision: Option<u64>,
    /// End of this member's log when it asked to leave the member list; written before the member asks.
    pub left_at: Option<LogPosition>,
    /// True if this node ran standalone at an operator's confirmation, which gave the peer's history up by name. When the peer comes back
    /// with a history of its own, the operator does not have to choose again.
    #[serde(default)]
    pub gave_up: bool,
    /// True from the moment at which this node begins to join the peer's cluster until its member votes. A backup of the data from that
    /// time may be the only copy apart from the peer's.
    #[serde(default)]
    pub joins: bool,
    /// Data that this note is about; `None` in a note that was written before notes named their data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<DataOwner>,
    /// Voter without which this node announced that it runs standalone. A force, or a vote in that voter's place, removes the voter
    /// permanently. So if the voter still votes with this node, the agent did not carry the announcement out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub without: Option<MemberId>,
}

/// Identity of the data on one node: the cluster, the member and the node.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct DataOwner {
    pub cluster_id: u64,
    pub member_id: MemberId,
    pub node: NodeName,
}

/// Facts about etcd that the agent stores for the duration of this boot, in a file that no reboot preserves.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BootState {
    pub boot_id: String,
    /// This node's etcd as a voter, once it was seen with a leader in this boot; `None` after a stop that the peer could see. While it is
    /// set and the CIB shows the claim to run standalone, the peer cannot have run standalone: see [`super::Evidence::running_voter`].
    pub voter: Option<RunningVoter>,
    /// True if Pacemaker promoted this instance of the resource.
    pub promoted: bool,
    /// Number of failed starts that Pacemaker had counted when this node's etcd last served.
    #[serde(default)]
    pub start_failures: u64,
    /// True if a vote proxy voted in vain for a peer that is off. Then the agent restarts etcd instead, until etcd serves again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub in_vain: bool,
    /// End of the data at the last stop in this boot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<DataEnd>,
    /// Pending hand-over of leadership to the peer; only the leader's node has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hand_over: Option<HandOver>,
    /// Time, in seconds since this boot, at which this node's etcd was first seen without a leader while the configured primary should
    /// lead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leaderless_since_s: Option<u32>,
}

/// Hashes the hand-over and the time of the lost leader only if they are set, so that other values keep the hash that they had before these
/// fields existed. A search of the model orders states by that hash.
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

/// The operator's confirmation, given with `tandem confirm-recovery`. It counts once, in one boot, and for the data as it was when it was
/// given.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Confirmation {
    pub boot_id: String,
    /// Node that the operator gave up by name.
    pub lost_node: NodeName,
    pub cluster_id: u64,
    pub member_id: MemberId,
    pub position: LogPosition,
    /// True if the operator accepts that the lost node ran standalone and that its writes are lost.
    pub accept_loss: bool,
}

/// This node's member, which the agent saw run as a voter with a leader.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RunningVoter {
    pub cluster_id: u64,
    pub member_id: MemberId,
    pub lineage: Lineage,
    /// True if this member was the only voter.
    pub sole: bool,
    /// True if three or more voters could acknowledge writes without this one. Then this voter's data proves nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub among_many: bool,
}
