//! `fencing-agent` in network namespaces on bridges, with a FIFO in place of each watchdog, from which the test reads
//! each feed. A cut moves nodes to another bridge. A machine would reset if the bytes stop without a `V`. Needs root.

#![expect(clippy::disallowed_methods, reason = "the tests wait as an operator would")]
#![allow(clippy::unwrap_used, reason = "what fails here ends the test")]

mod cluster;
mod commands;
#[path = "../support/executable.rs"]
mod executable;
mod five;
mod kubernetes;
#[path = "../support/namespaces.rs"]
mod namespaces;
mod nightly;
mod python;
mod ratios;
#[allow(dead_code, reason = "it is the unit tests' own, which use the rest of it")]
#[path = "../../src/adapters/kubernetes/nodes/stand_in.rs"]
mod stand_in;
mod three;
