//! The program that the lab installs to make a check fail: it is built with the feature `lab-faults`, and otherwise the
//! same.

use std::process::ExitCode;

fn main() -> ExitCode {
    tandem::applet::main(std::env::args_os())
}
