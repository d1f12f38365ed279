//! Raft messages as a vote proxy sends them. Field numbers are etcd's (`raftpb`), the same from 3.4 to 3.7.
//!
//! Every field that etcd itself always writes is written here too, zero or not, as etcd's own encoder does.

use prost::Message as _;

/// The kinds of messages (`raftpb.MessageType`) that are sent, answered, or tell something.
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

/// `raftpb.EntryConfChange`.
pub(super) const CONF_CHANGE: u64 = 1;
/// Every kind of entry that changes the members; the other one is `raftpb.EntryConfChangeV2`.
pub(super) const CONF_CHANGES: [u64; 2] = [CONF_CHANGE, 2];
/// `raftpb.ConfChangeRemoveNode`.
pub(super) const REMOVE_NODE: u64 = 1;

/// `raftpb.Message`, as it is sent.
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

/// `raftpb.Entry`.
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

/// `raftpb.ConfChange`.
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
    /// A message without anything but its kind and term; who sends it to whom is filled in on the way out.
    pub(super) fn new(kind: u64, term: u64) -> Self {
        Self { kind, term, ..Self::default() }
    }

    /// The proposal that member `dead` is removed. A follower hands what its clients want on to the leader in this form;
    /// proposals carry no term.
    pub(super) fn removal_of(dead: u64, request: u64) -> Self {
        let change = ConfChange { id: request_id(dead, request), kind: REMOVE_NODE, node_id: dead };
        let entry = Entry { kind: CONF_CHANGE, data: change.encode_to_vec(), ..Entry::default() };
        Self { entries: vec![entry], ..Self::new(kind::PROPOSAL, 0) }
    }
}

/// etcd wakes whoever waits for a change of this id. Its own ids begin with the low 16 bits of the id of the member that was
/// asked, so one that begins with the dead member's wakes nobody.
fn request_id(dead: u64, request: u64) -> u64 {
    dead << 48 | request & ((1 << 48) - 1)
}
