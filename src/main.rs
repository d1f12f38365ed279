//! The one binary: which program it is depends on the name it was started under.

#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    tandem::applet::main(std::env::args_os())
}
