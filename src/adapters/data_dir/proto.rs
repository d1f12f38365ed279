//! The protobuf messages in etcd's WAL and snapshot files, with only the fields that this module reads or writes.
//!
//! Field numbers are etcd's (`raftpb`, `walpb`, `snappb`), and are the same from 3.4 to 3.6. The decoder skips all other fields.

use prost::Message;
use prost::bytes::Bytes;

/// The values of [`WalRecord`]'s field `kind`.
pub(super) mod record_type {
    pub(crate) const METADATA: i64 = 1;
    pub(crate) const ENTRY: i64 = 2;
    pub(crate) const STATE: i64 = 3;
    pub(crate) const CRC: i64 = 4;
    pub(crate) const SNAPSHOT: i64 = 5;
}

/// The values of [`Entry`]'s field `kind` for entries that contain no client data.
pub(super) mod entry_type {
    pub(crate) const CONF_CHANGE: u64 = 1;
    pub(crate) const CONF_CHANGE_V2: u64 = 2;
}

/// One record of the WAL, without the length in front of it.
#[derive(Clone, PartialEq, Message)]
pub(super) struct WalRecord {
    #[prost(int64, tag = "1")]
    pub(crate) kind: i64,
    #[prost(uint32, tag = "2")]
    pub(crate) crc: u32,
    #[prost(bytes = "bytes", tag = "3")]
    pub(crate) data: Bytes,
}

/// The ids of the member and the cluster that a WAL belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(super) struct Metadata {
    #[prost(uint64, tag = "1")]
    pub(crate) node_id: u64,
    #[prost(uint64, tag = "2")]
    pub(crate) cluster_id: u64,
}

/// Raft's durable state apart from its log.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(super) struct HardState {
    #[prost(uint64, tag = "1")]
    pub(crate) term: u64,
    #[prost(uint64, tag = "2")]
    pub(crate) vote: u64,
    #[prost(uint64, tag = "3")]
    pub(crate) commit: u64,
}

/// One entry of the Raft log.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Entry {
    // This is an enumeration in etcd's schema. Any varint is legal on the wire, as for `kind` of the changes below.
    #[prost(uint64, tag = "1")]
    pub(crate) kind: u64,
    #[prost(uint64, tag = "2")]
    pub(crate) term: u64,
    #[prost(uint64, tag = "3")]
    pub(crate) index: u64,
    #[prost(bytes = "bytes", tag = "4")]
    pub(crate) data: Bytes,
}

/// A change of one member, as etcd writes it to the log.
#[derive(Clone, PartialEq, Message)]
pub(super) struct ConfChange {
    #[prost(uint64, tag = "2")]
    pub(crate) kind: u64,
    #[prost(uint64, tag = "3")]
    pub(crate) node_id: u64,
    #[prost(bytes = "bytes", tag = "4")]
    pub(crate) context: Bytes,
}

/// A change of several members at once. Raft supports such changes, but etcd does not write them.
#[derive(Clone, PartialEq, Message)]
pub(super) struct ConfChangeV2 {
    #[prost(message, repeated, tag = "2")]
    pub(crate) changes: Vec<ConfChangeSingle>,
}

/// One member's part of a [`ConfChangeV2`].
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(super) struct ConfChangeSingle {
    #[prost(uint64, tag = "1")]
    pub(crate) kind: u64,
    #[prost(uint64, tag = "2")]
    pub(crate) node_id: u64,
}

/// The ids of the cluster's members at one index of the log.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct ConfState {
    #[prost(uint64, repeated, packed = "false", tag = "1")]
    pub(crate) voters: Vec<u64>,
    #[prost(uint64, repeated, packed = "false", tag = "2")]
    pub(crate) learners: Vec<u64>,
    #[prost(uint64, repeated, packed = "false", tag = "3")]
    pub(crate) voters_outgoing: Vec<u64>,
}

/// The WAL's record of a snapshot: the snapshot's position in the log, and the members there.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct WalSnapshot {
    #[prost(uint64, tag = "1")]
    pub(crate) index: u64,
    #[prost(uint64, tag = "2")]
    pub(crate) term: u64,
    /// The ids of the members at the snapshot; `None` before etcd 3.5.
    #[prost(message, optional, tag = "3")]
    pub(crate) conf_state: Option<ConfState>,
}

/// The outer message of a `.snap` file: a checksum, and an encoded [`Snapshot`].
#[derive(Clone, PartialEq, Message)]
pub(super) struct SnapFile {
    #[prost(uint32, tag = "1")]
    pub(crate) crc: u32,
    #[prost(bytes = "bytes", tag = "2")]
    pub(crate) data: Bytes,
}

/// The message inside a [`SnapFile`].
#[derive(Clone, PartialEq, Message)]
pub(super) struct Snapshot {
    #[prost(bytes = "bytes", tag = "1")]
    pub(crate) data: Bytes,
    #[prost(message, optional, tag = "2")]
    pub(crate) metadata: Option<SnapshotMetadata>,
}

/// The position of a [`Snapshot`] in the log, and the members there.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct SnapshotMetadata {
    #[prost(message, optional, tag = "1")]
    pub(crate) conf_state: Option<ConfState>,
    #[prost(uint64, tag = "2")]
    pub(crate) index: u64,
    #[prost(uint64, tag = "3")]
    pub(crate) term: u64,
}

/// The value in etcd's bucket `key` (`mvccpb.KeyValue`). In a deletion only `key` is set.
#[derive(Clone, PartialEq, Message)]
pub(super) struct KeyValue {
    #[prost(bytes = "bytes", tag = "1")]
    pub(crate) key: Bytes,
    #[prost(int64, tag = "2")]
    pub(crate) create_revision: i64,
    #[prost(int64, tag = "4")]
    pub(crate) version: i64,
    #[prost(bytes = "bytes", tag = "5")]
    pub(crate) value: Bytes,
    #[prost(int64, tag = "6")]
    pub(crate) lease: i64,
}

/// A client's request inside an [`Entry`] (`etcdserverpb.InternalRaftRequest`), with only the requests that change keys.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Request {
    #[prost(message, optional, tag = "4")]
    pub(crate) put: Option<Put>,
    #[prost(message, optional, tag = "5")]
    pub(crate) delete: Option<Delete>,
    #[prost(message, optional, tag = "6")]
    pub(crate) transaction: Option<Transaction>,
    #[prost(message, optional, tag = "9")]
    pub(crate) revocation: Option<Revocation>,
}

/// A write of a key.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct Put {
    #[prost(bytes = "bytes", tag = "1")]
    pub(crate) key: Bytes,
    #[prost(bytes = "bytes", tag = "2")]
    pub(crate) value: Bytes,
    #[prost(int64, tag = "3")]
    pub(crate) lease: i64,
    /// True if the key keeps its present value, whatever `value` is.
    #[prost(bool, tag = "5")]
    pub(crate) ignore_value: bool,
    #[prost(bool, tag = "6")]
    pub(crate) ignore_lease: bool,
}

/// A deletion of `key`, or of all keys from `key` up to `range_end`.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct Delete {
    #[prost(bytes = "bytes", tag = "1")]
    pub(crate) key: Bytes,
    #[prost(bytes = "bytes", tag = "2")]
    pub(crate) range_end: Bytes,
}

/// A transaction with two lists of operations. etcd executes one of the lists.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Transaction {
    #[prost(message, repeated, tag = "2")]
    pub(crate) success: Vec<Operation>,
    #[prost(message, repeated, tag = "3")]
    pub(crate) failure: Vec<Operation>,
}

/// One operation of a [`Transaction`].
#[derive(Clone, PartialEq, Message)]
pub(super) struct Operation {
    #[prost(message, optional, tag = "2")]
    pub(crate) put: Option<Put>,
    #[prost(message, optional, tag = "3")]
    pub(crate) delete: Option<Delete>,
    #[prost(message, optional, tag = "4")]
    pub(crate) transaction: Option<Transaction>,
}

/// The revocation of a lease, which deletes all keys of the lease.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(super) struct Revocation {
    #[prost(int64, tag = "1")]
    pub(crate) lease: i64,
}
