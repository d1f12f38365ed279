//! The two-host lab: two real hosts on one machine, each with its own Corosync, Pacemaker, podman and etcd, and with a
//! Redfish BMC that really cuts its power. `cargo lab help` lists the commands.

#![allow(
    clippy::disallowed_methods,
    clippy::exit,
    clippy::format_push_string,
    reason = "the lab drives outside programs, sleeps and labels logs with wall time; the rules are for the agents"
)]
#![allow(unreachable_pub, missing_debug_implementations, reason = "a program, not a library: nothing is exported")]

mod agent_call;
mod alert;
mod asked;
mod bench_agent;
mod blank;
mod bmc;
mod chain;
mod check;
mod cli;
mod cluster;
mod collector;
mod cpu;
mod debian;
mod decisions;
mod demo;
mod disks;
mod etcd;
mod etcdctl;
mod evidence;
mod faulty;
mod fence_agents;
mod greps;
mod history;
mod host;
mod image;
mod init;
mod interrupt;
mod journals;
mod kubernetes;
mod net;
mod node;
mod openshift;
mod pacemaker;
mod patroni;
mod pcs;
mod power;
mod power_cuts;
mod proc;
mod program;
mod random;
mod redundant;
mod release;
mod report;
#[allow(clippy::unwrap_used, reason = "the schema is a file of the tests")]
#[path = "../conditions/rules.rs"]
mod rules;
mod scenarios;
mod self_test;
mod services;
mod sh;
mod shell_agent;
mod side_by_side;
mod sidecar;
mod stalls;
mod state;
mod story;
mod syslog;
mod teardown;
mod third_voter;
mod timeline;
mod tls;
mod token_load;
mod two_node_openshift;
mod typed;
mod units;
mod up;
mod verdict;
mod watches;
mod writer;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::main()
}
