//! The shell of the agent: sockets, files, threads and clocks around the pure core.

pub(crate) mod feeder;
pub(crate) mod grpc;
pub(crate) mod keeper;
pub(crate) mod kubernetes;
pub(crate) mod lists;
pub(crate) mod network;
pub(crate) mod place;
pub(crate) mod readable;
mod report;
pub(crate) mod run;
pub(crate) mod seal;
pub(crate) mod start;
pub(crate) mod state;
