//! The program as the lab installs it where a check is to fail: built with the feature `lab-faults`, else the same.

use std::process::ExitCode;

fn main() -> ExitCode {
    tandem::applet::main(std::env::args_os())
}
