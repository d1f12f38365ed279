//! The one binary: which program it is depends on the name it was started under.

use std::process::ExitCode;

fn main() -> ExitCode {
    tandem::applet::main(std::env::args_os())
}
