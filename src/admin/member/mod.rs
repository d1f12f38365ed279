//! `tandem member`: shows the members of an etcd, of a pair or of any other, and the changes that may be made now.

mod changed;
mod guard;
mod list;
mod plan;
mod protect;
mod source;
#[cfg(test)]
mod tests;
mod watch;
mod words;

use clap::Subcommand;

use super::exit::Exit;
use super::prompt::Prompt;
use super::report::show;
use crate::operate::failure::Failure;
use crate::operate::members;
use crate::operate::members::order::Order;
use crate::operate::members::outcome::Outcome;
use crate::os::output::complain;

/// Shows and changes the members of an etcd, and checks which change is allowed now
#[derive(Subcommand)]
pub(super) enum Command {
    List(list::Arguments),
    #[command(subcommand)]
    Plan(plan::Plan),
    Add(words::Add),
    Remove(words::Remove),
    Replace(words::Replace),
    Promote(words::Promote),
    Protect(protect::Protect),
    Unprotect(protect::Unprotect),
    Watch(watch::Arguments),
    Guard(guard::Arguments),
}

impl Command {
    pub(super) fn run(&self) -> Result<Exit, Failure> {
        match self {
            Self::List(arguments) => show(&list::run(arguments)?, arguments.form),
            Self::Plan(plan) => plan.run(),
            Self::Add(of) => change(of.order()),
            Self::Remove(of) => change(of.order()),
            Self::Replace(of) => change(of.order()),
            Self::Promote(of) => change(of.order()),
            Self::Protect(hook) => hook.run(),
            Self::Unprotect(hook) => hook.run(),
            Self::Watch(arguments) => watch::run(arguments),
            Self::Guard(arguments) => show(&guard::run(arguments)?, arguments.form),
        }
    }
}

/// Performs a change of etcd's members, and prints its report.
fn change((order, shared): (Order, &words::Shared)) -> Result<Exit, Failure> {
    let prompt = Prompt::new(&shared.answers, shared.form);
    match members::change::change(&order, &shared.terms(), &prompt)? {
        Outcome::Changed(changed) => show(&changed, shared.form),
        Outcome::Planned(planned) => show(&planned, shared.form),
        Outcome::Misused(why) => {
            complain(format_args!("tandem: {why}"));
            Ok(Exit::Usage)
        }
    }
}

/// Formats an id in hexadecimal, as etcdctl prints it.
fn shown_id(id: u64) -> String {
    format!("{id:x}")
}
