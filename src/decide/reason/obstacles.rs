//! Obstacles of a recovery without a restart, and of a hand-over of leadership.

use serde::{Deserialize, Serialize};

use crate::decide::evidence::Version;

/// Reason why the agent restarts etcd in a recovery, and does not let a vote proxy cast the vote of the member that is off.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoVoteProxy {
    /// The resource's parameter `recovery=restart` forbids a vote proxy.
    NotWanted,
    /// The peer's machine is not confirmed off. Its etcd might start again while a vote proxy casts its vote.
    PeerIsThere,
    /// The agent has no proof that this node's etcd ran as a voter in this boot. This node may run standalone for another reason,
    /// but a vote proxy needs that proof.
    NotProven,
    /// etcd does not report its term and its members.
    NotTold { why: String },
    /// The voters are not exactly this node's member and the peer's.
    OtherVoters,
    /// The vote proxy was not tested with this release.
    UntestedRelease { version: Version },
    /// etcd's term changed repeatedly while the agent announced that this node will run standalone.
    TermMoves,
    /// A vote proxy has voted, but this node's etcd did not become the leader and the only voter.
    InVain,
}

/// Obstacle that keeps leadership on this node although the peer is to lead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Held {
    CibUnknown,
    /// The peer's etcd does not answer.
    Silent,
    /// The peer's etcd has no vote.
    NoVoter,
    AnotherLeader,
    Lags {
        lag: u64,
    },
    /// Users cannot reach the peer.
    NotReached,
    Alarm,
    /// Pacemaker has not started the peer's agent.
    NotActive,
    /// The peer is on standby, or is shutting down.
    Leaves,
    MembersChange,
    Maintenance,
}
