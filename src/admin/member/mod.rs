//! `tandem member`: the members of an etcd, of a pair or of any other, and which change of them may be made now.

mod ask;
mod changed;
mod elsewhere;
mod judge;
mod list;
mod look;
mod pair;
mod plan;
mod protect;
mod source;
mod step;
#[cfg(test)]
mod tests;
mod words;

use clap::Subcommand;

use self::look::Seen;
use self::source::{Source, SourceArguments};
use super::exit::Exit;
use super::report::show;
use crate::operate::cluster;
use crate::operate::failure::Failure;

/// Shows and changes the members of an etcd, and says which change of them may be made now
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
        }
    }
}

/// A pair's members are changed by its agents, in Pacemaker's cluster; those of any other etcd by its own commands.
fn change((order, shared): (words::Order, &words::Shared)) -> Result<Exit, Failure> {
    let source = shared.source.source()?;
    if source.pair.is_some() { pair::run(&order, shared) } else { elsewhere::run(&order, &source, shared) }
}

/// As etcdctl shows ids.
fn shown_id(id: u64) -> String {
    format!("{id:x}")
}

/// What the cluster's properties tell of the members, where the source is a pair.
fn of_cluster(arguments: &SourceArguments, source: &Source, seen: &mut Seen) {
    if source.pair.is_some()
        && let Ok(cluster) = cluster::ask(arguments.resource())
    {
        seen.beside(&cluster);
    }
}
