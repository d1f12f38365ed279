//! `tandem`, the operator's command: a tree of subcommands, one file each.
//!
//! A subcommand is a [`Subcommand`] in [`SUBCOMMANDS`]. It prints its result to stdout; what keeps it from one is a
//! [`Failure`], which goes to stderr as one sentence.

mod confirm_recovery;
mod data_dir;
pub(crate) mod evidence;
mod explain;
mod generate;
mod node;
mod replay;
mod sim;

use std::ffi::OsString;
use std::fmt::Display;

use clap::{ArgMatches, Command};

use crate::output::{self, complain};

/// Exit code of a subcommand that failed or refused.
const FAILED: u8 = 1;
/// Exit code for arguments that make no sense.
const USAGE: u8 = 2;

/// A branch of the tree.
struct Subcommand {
    /// Its name, arguments and help.
    command: fn() -> Command,
    /// Does it.
    run: fn(&ArgMatches) -> Result<(), Failure>,
}

/// What `tandem` can do.
const SUBCOMMANDS: &[Subcommand] = &[
    explain::SUBCOMMAND,
    confirm_recovery::SUBCOMMAND,
    data_dir::SUBCOMMAND,
    replay::SUBCOMMAND,
    sim::SUBCOMMAND,
    generate::SUBCOMMAND,
];

/// Why a subcommand did not do what was asked: one sentence, with what to type instead.
#[derive(Debug)]
struct Failure(String);

impl<E: std::error::Error> From<E> for Failure {
    fn from(error: E) -> Self {
        Self(error.to_string())
    }
}

/// Runs the command; `args` follow the program's name.
pub fn run(args: &[OsString]) -> u8 {
    let name = OsString::from("tandem");
    let matches = match command_line().try_get_matches_from(std::iter::once(&name).chain(args)) {
        Ok(matches) => matches,
        Err(answer) => {
            // Help that was asked for comes this way too. Nothing is left to do if it cannot be printed.
            let _ = answer.print();
            return if answer.use_stderr() { USAGE } else { 0 };
        }
    };
    match dispatch(&matches, SUBCOMMANDS) {
        Ok(()) => 0,
        Err(Failure(why)) => {
            complain(format_args!("tandem: {why}"));
            FAILED
        }
    }
}

/// Prints lines of a result.
fn say(lines: impl Display) -> Result<(), Failure> {
    Ok(output::say(lines)?)
}

/// All of it, as it is parsed, as the man pages show it and as shells complete it.
fn command_line() -> Command {
    let version = env!("CARGO_PKG_VERSION");
    tree("tandem", SUBCOMMANDS).version(version).about("Looks after a two-member etcd on two machines")
}

/// A command that needs one of `subcommands`.
fn tree(name: &'static str, subcommands: &[Subcommand]) -> Command {
    let command = Command::new(name).subcommand_required(true).arg_required_else_help(true);
    command.subcommands(subcommands.iter().map(|subcommand| (subcommand.command)()))
}

/// Runs the one that `matches` name.
fn dispatch(matches: &ArgMatches, subcommands: &[Subcommand]) -> Result<(), Failure> {
    let chosen = matches.subcommand().and_then(|(name, matches)| {
        let found = subcommands.iter().find(|subcommand| (subcommand.command)().get_name() == name)?;
        Some((found, matches))
    });
    chosen.map_or_else(|| Err(Failure("type 'tandem help'".into())), |(found, matches)| (found.run)(matches))
}
