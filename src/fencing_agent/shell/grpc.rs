//! The interface for local programs: `metadata/fencing.proto` over a socket.
//!
//! Messages and service are written by hand. Generated code would need `protoc` and a build script, for six messages and two
//! calls.

pub(crate) mod client;
pub(crate) mod hub;
pub(crate) mod messages;
pub(crate) mod service;

/// The path of the gRPC call `GetAll`.
const GET_ALL: &str = "/fencing.v1.Fencing/GetAll";
/// The path of the gRPC call `StreamEvents`.
const STREAM_EVENTS: &str = "/fencing.v1.Fencing/StreamEvents";
