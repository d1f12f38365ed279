//! The messages of `metadata/fencing.proto`, field by field.

use std::collections::BTreeMap;
use std::time::Duration;

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct Empty {}

/// The protobuf message `google.protobuf.Timestamp`.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub(crate) struct Timestamp {
    #[prost(int64, tag = "1")]
    pub(crate) seconds: i64,
    #[prost(int32, tag = "2")]
    pub(crate) nanos: i32,
}

impl Timestamp {
    /// Returns the time that is `since` after the beginning of 1970.
    pub(crate) fn of(since: Duration) -> Self {
        Self {
            seconds: i64::try_from(since.as_secs()).unwrap_or(i64::MAX),
            nanos: i32::try_from(since.subsec_nanos()).unwrap_or_default(),
        }
    }

    pub(crate) fn since_1970(self) -> Duration {
        Duration::new(u64::try_from(self.seconds).unwrap_or_default(), u32::try_from(self.nanos).unwrap_or_default())
    }
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct Node {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(btree_map = "string, string", tag = "2")]
    pub(crate) addresses: BTreeMap<String, String>,
    #[prost(message, optional, tag = "3")]
    pub(crate) prev_disconnect_time: Option<Timestamp>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub(crate) enum EventType {
    Undefined = 0,
    Left = 1,
    Join = 2,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct Event {
    #[prost(message, optional, tag = "1")]
    pub(crate) node: Option<Node>,
    #[prost(message, optional, tag = "2")]
    pub(crate) time: Option<Timestamp>,
    #[prost(enumeration = "EventType", tag = "3")]
    pub(crate) r#type: i32,
    #[prost(string, optional, tag = "4")]
    pub(crate) source_name: Option<String>,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct AllNodes {
    #[prost(message, repeated, tag = "1")]
    pub(crate) nodes: Vec<Node>,
}
