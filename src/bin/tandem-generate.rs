//! Writes the man pages and completions of `tandem` and its agents for `make install`. No package holds it.

#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(tandem::admin::generate(std::env::args_os()))
}
