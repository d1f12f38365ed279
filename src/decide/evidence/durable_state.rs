//! What this node wrote down itself, for good or for this boot, and what an operator wrote down here.

use std::hash::{Hash, Hasher};

use serde::{Deserialize, Serialize};

use super::{DataEnd, HandOver, Lineage, LogPosition, MemberId, NodeName};

/// Durable note: a file next to the data dir with what the agent must know after a reboot.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct DurableState {
    pub lineage: Lineage,
    /// End of this node's log when the agent last announced that this node will run standalone. The agent writes this before etcd
    /// runs standalone.
    pub alone_since: Option<LogPosition>,
    /// Newest revision of a key that this node knew when it began to run standalone. The other node has that revision too,
    /// because both voters had committed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alone_revision: Option<u64>,
    /// End of this member's log when the member asked to leave the member list. The agent writes this before it sends the
    /// request.
    pub left_at: Option<LogPosition>,
    /// True if this node ran standalone after an operator's confirmation, which gave up the peer's history by name. If the peer
    /// comes back with a history of its own, the operator does not have to choose again.
    #[serde(default)]
    pub gave_up: bool,
    /// True from the moment at which this node begins to join the peer's cluster until its member votes. A backup that is made in
    /// that time may be the only copy of the data apart from the peer's.
    #[serde(default)]
    pub joins: bool,
    /// Data that this note is about; `None` in a note that was written before notes named their data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<DataOwner>,
    /// Voter without which this node announced that it will run standalone. A forced new cluster removes that voter permanently,
    /// and so does a vote proxy. So if that voter still votes with this node, the agent did not carry out the announcement.
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
    /// This node's etcd as a voter, set once the agent saw it with a leader in this boot; `None` after a stop that the peer could
    /// see. While this is set and the CIB shows the claim to run standalone, the peer cannot have run standalone: see
    /// [`super::Evidence::running_voter`].
    pub voter: Option<RunningVoter>,
    /// True if Pacemaker promoted this instance of the resource.
    pub promoted: bool,
    /// Number of failed starts that Pacemaker had counted when this node's etcd last served.
    #[serde(default)]
    pub start_failures: u64,
    /// True if a vote proxy cast the vote of a peer that is off, and this node's etcd still did not become the only voter and
    /// leader. Until etcd serves again, the agent uses no other vote proxy, and restarts etcd.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub in_vain: bool,
    /// Position at which the data ended at the last stop in this boot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<DataEnd>,
    /// Pending hand-over of leadership to the peer; only the leader's node has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hand_over: Option<HandOver>,
    /// Time, in seconds since this boot, at which the agent first saw this node's etcd without a leader. It stores the time only
    /// while the peer is the configured primary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leaderless_since_s: Option<u32>,
}

/// Hashes the hand-over and the time of the lost leader only if they are set. The hash of a value without them is then the same
/// as before these fields existed. A search of the model orders states by that hash.
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

/// The operator's confirmation, given with `tandem confirm-recovery`. It is valid once, in one boot, and only while the data is
/// unchanged.
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
    /// True if there are three or more voters, which can acknowledge writes without this one. In that case this voter's data
    /// alone proves nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub among_many: bool,
}
