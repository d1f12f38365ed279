//! The shell of the agent: sockets, files, threads and clocks around the pure core.

pub(crate) mod grpc;
pub(crate) mod seal;
