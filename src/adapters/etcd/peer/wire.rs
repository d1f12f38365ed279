//! Raft messages as a vote proxy sends them. The field numbers are etcd's (`raftpb`), and are the same from 3.4 to 3.7.
//!
//! Fields that etcd's encoder always writes are written here too, zero or not.

use prost::Message as _;

/// The kinds of Raft messages (`raftpb.MessageType`) that the vote proxy sends, answers or interprets.
pub(super) mod kind {
    pub(crate) const PROPOSAL: u64 = 2;
    pub(crate) const APPEND: u64 = 3;
    pub(crate) const APPEND_ANSWER: u64 = 4;
    pub(crate) const VOTE: u64 = 5;
    pub(crate) const VOTE_ANSWER: u64 = 6;
    pub(crate) const HEARTBEAT: u64 = 8;
    pub(crate) const HEARTBEAT_ANSWER: u64 = 9;
    pub(crate) const TIMEOUT_NOW: u64 = 14;
    pub(crate) const PRE_VOTE_ANSWER: u64 = 18;
}

/// The kind of a log entry with one member change (`raftpb.EntryConfChange`).
pub(super) const CONF_CHANGE: u64 = 1;
/// The kinds of log entries that change the members. The second one is `raftpb.EntryConfChangeV2`.
pub(super) const CONF_CHANGES: [u64; 2] = [CONF_CHANGE, 2];
/// The kind of a member change that removes a member (`raftpb.ConfChangeRemoveNode`).
pub(super) const REMOVE_NODE: u64 = 1;

/// A `raftpb.Message` from the vote proxy, with only the fields that it sets.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Outgoing {
    #[prost(uint64, required, tag = "1")]
    pub(crate) kind: u64,
    #[prost(uint64, required, tag = "2")]
    pub(crate) to: u64,
    #[prost(uint64, required, tag = "3")]
    pub(crate) from: u64,
    #[prost(uint64, required, tag = "4")]
    pub(crate) term: u64,
    #[prost(uint64, required, tag = "5")]
    pub(crate) log_term: u64,
    #[prost(uint64, required, tag = "6")]
    pub(crate) index: u64,
    #[prost(message, repeated, tag = "7")]
    pub(crate) entries: Vec<Entry>,
    #[prost(uint64, required, tag = "8")]
    pub(crate) commit: u64,
    #[prost(bool, required, tag = "10")]
    pub(crate) reject: bool,
    #[prost(uint64, required, tag = "11")]
    pub(crate) reject_hint: u64,
    #[prost(bytes = "vec", optional, tag = "12")]
    pub(crate) context: Option<Vec<u8>>,
}

/// The fields of `raftpb.Entry`.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Entry {
    #[prost(uint64, required, tag = "1")]
    pub(crate) kind: u64,
    #[prost(uint64, required, tag = "2")]
    pub(crate) term: u64,
    #[prost(uint64, required, tag = "3")]
    pub(crate) index: u64,
    #[prost(bytes = "vec", required, tag = "4")]
    pub(crate) data: Vec<u8>,
}

/// The fields of `raftpb.ConfChange`.
#[derive(Clone, PartialEq, prost::Message)]
struct ConfChange {
    #[prost(uint64, required, tag = "1")]
    id: u64,
    #[prost(uint64, required, tag = "2")]
    kind: u64,
    #[prost(uint64, required, tag = "3")]
    node_id: u64,
}

impl Outgoing {
    /// Creates a message of `kind` in `term`. The sender and the receiver are added when the message is posted.
    pub(super) fn new(kind: u64, term: u64) -> Self {
        Self { kind, term, ..Self::default() }
    }

    /// Returns the message that proposes the removal of member `dead`. Followers forward their clients' requests to the leader in
    /// the same form, without a term.
    pub(super) fn removal_of(dead: u64, request: u64) -> Self {
        let change = ConfChange { id: request_id(dead, request), kind: REMOVE_NODE, node_id: dead };
        let entry = Entry { kind: CONF_CHANGE, data: change.encode_to_vec(), ..Entry::default() };
        Self { entries: vec![entry], ..Self::new(kind::PROPOSAL, 0) }
    }
}

/// Returns the id for a member change. When etcd applies a change, it answers the waiting client request with the same id. The ids of an
/// etcd's own requests begin with the low 16 bits of its member id. This id begins with those of the dead member, so no request of a live
/// member has it.
fn request_id(dead: u64, request: u64) -> u64 {
    dead << 48 | request & ((1 << 48) - 1)
}
