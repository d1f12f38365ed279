//! `tandem certs`: the certificates by which etcd and its clients recognize each other.

mod install;
mod issue;
mod join;
mod renew;
mod rotate;
mod show;

use clap::Subcommand;

use super::exit::Exit;
use super::report::show;
use crate::operate::failure::Failure;

/// Shows, renews and replaces the certificates of etcd and its clients
#[derive(Subcommand)]
pub(super) enum Command {
    Show(show::Arguments),
    Issue(issue::Arguments),
    Renew(renew::Arguments),
    RotateCa(rotate::Arguments),
    Join(join::Arguments),
    Install(install::Arguments),
}

impl Command {
    pub(super) fn run(&self) -> Result<Exit, Failure> {
        match self {
            Self::Show(arguments) => show(&show::run(arguments)?, arguments.form),
            Self::Issue(arguments) => show(&issue::run(arguments)?, arguments.form),
            Self::Renew(arguments) => show(&renew::run(arguments)?, arguments.form),
            Self::RotateCa(arguments) => show(&rotate::run(arguments)?, arguments.form),
            Self::Join(arguments) => show(&join::run(arguments)?, arguments.form),
            Self::Install(arguments) => show(&install::run(arguments)?, arguments.form),
        }
    }
}
