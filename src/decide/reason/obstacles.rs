//! Obstacles of a recovery without a restart, and of a hand-over of leadership.

use serde::{Deserialize, Serialize};

use crate::decide::evidence::Version;

/// Cause for restarting etcd instead of casting the vote of a member that is off.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoVoteProxy {
    /// `recovery=restart`.
    NotWanted,
    /// The peer's machine is there, and only its etcd is not: it could be started again behind us.
    PeerIsThere,
    /// The memory of this boot is not what lets this node continue.
    NotProven,
    /// etcd does not report its term and its members.
    NotTold { why: String },
    /// The voters are not exactly the two.
    OtherVoters,
    /// The vote proxy was not tested with this release.
    UntestedRelease { version: Version },
    /// The term moved again and again while the announcement was published.
    TermMoves,
    /// It was tried, and our etcd does not lead alone after it.
    InVain,
}

/// Obstacle that keeps leadership where it is, although another node is to have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Held {
    CibUnknown,
    /// The peer's etcd does not answer.
    Silent,
    /// It has no vote.
    NoVoter,
    AnotherLeader,
    Lags {
        lag: u64,
    },
    /// Users do not reach the peer.
    NotReached,
    Alarm,
    /// The peer's agent is not active.
    NotActive,
    /// The peer is on standby, or shuts down.
    Leaves,
    MembersChange,
    Maintenance,
}
