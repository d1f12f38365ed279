//! `tandem fencing`: checks whether each node could be fenced, fences a node as a test, and changes the credentials for
//! it.

mod check;
mod test;
mod update;

use clap::Subcommand;

use super::exit::Exit;
use super::report::show;
use crate::operate::failure::Failure;

/// Checks and tests the fencing of both nodes, and changes passwords of their BMCs
#[derive(Subcommand)]
pub(super) enum Command {
    Check(check::Arguments),
    Test(test::Arguments),
    Update(Box<update::Arguments>),
}

impl Command {
    pub(super) fn run(&self) -> Result<Exit, Failure> {
        match self {
            Self::Check(arguments) => show(&check::run(arguments)?, arguments.form),
            Self::Test(arguments) => test::run(arguments),
            Self::Update(arguments) => show(&update::run(arguments)?, arguments.form),
        }
    }
}
