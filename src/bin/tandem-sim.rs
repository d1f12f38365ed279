//! The model: the agent's decisions in two machines that are simulated. No package holds it.

#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    tandem::sim::process::main(std::env::args_os())
}
