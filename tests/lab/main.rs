//! The two-host lab: two real hosts on one machine, each with its own Corosync, Pacemaker, podman and etcd, and with a
//! Redfish BMC that really cuts its power. `cargo lab help` lists the commands.

#![allow(
    clippy::disallowed_methods,
    clippy::exit,
    clippy::format_push_string,
    reason = "the lab drives outside programs, sleeps and labels logs with wall time; the rules are for the agents"
)]
#![allow(unreachable_pub, missing_debug_implementations, reason = "a program, not a library: nothing is exported")]

mod bench_agent;
mod cli;
mod cluster;
mod demo;
mod host;
mod interrupt;
mod judge;
mod load;
mod power_cuts;
mod programs;
mod random;
#[allow(clippy::unwrap_used, reason = "the schema is a file of the tests")]
#[path = "../support/openshift/rules.rs"]
mod rules;
mod scenarios;
mod sh;
mod side_by_side;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::main()
}
