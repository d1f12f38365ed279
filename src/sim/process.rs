//! `tandem-sim` as a process: its arguments and its exit code.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser;

use super::command_line::{Command, Failure};
use crate::os::output::complain;

/// The exit code of a call with wrong arguments. `tandem` has the same.
const USAGE: u8 = 2;

#[derive(Parser)]
#[command(name = "tandem-sim", version, about = "Runs the agent's own decisions in a model of two machines")]
struct CommandLine {
    #[command(subcommand)]
    command: Command,
}

/// Runs the subcommand in `args`. The first of `args` is the program's name.
pub fn main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    ExitCode::from(run(args))
}

fn run(args: impl IntoIterator<Item = OsString>) -> u8 {
    let line = match CommandLine::try_parse_from(args) {
        Ok(line) => line,
        Err(answer) => {
            // Clap answers with help that was asked for here, too. If it cannot be printed, nothing is left to do.
            let _ = answer.print();
            return if answer.use_stderr() { USAGE } else { 0 };
        }
    };
    match line.command.run() {
        Ok(()) => 0,
        Err(Failure(why)) => {
            complain(format_args!("tandem-sim: {why}"));
            1
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_arguments_fit_together() {
        CommandLine::command().debug_assert();
    }
}
