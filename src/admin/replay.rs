//! `tandem replay`: decides again from recorded snapshots, so that a bug report becomes a test.

use std::path::{Path, PathBuf};

use clap::builder::PathBufValueParser;
use clap::{Arg, ArgAction, ArgMatches, Command};

use super::{Failure, Subcommand, evidence};
use crate::decide;
use crate::record::{self, Entry};

pub(super) const SUBCOMMAND: Subcommand = Subcommand { command, run };

fn command() -> Command {
    let help = format!("A file of decisions, such as {}", record::path(Path::new(record::DIRECTORY), "etcd").display());
    Command::new("replay")
        .about("Decides again from recorded snapshots; fails where a decision differs from the recorded one")
        .arg(Arg::new("FILE").required(true).value_parser(PathBufValueParser::new()).help(help))
        .arg(Arg::new("evidence").long("evidence").action(ArgAction::SetTrue).help("Prints each round's evidence too"))
}

fn run(matches: &ArgMatches) -> Result<(), Failure> {
    let file = matches.get_one::<PathBuf>("FILE").map_or(Path::new(""), PathBuf::as_path);
    let entries = record::read(file)?;
    let mut different = 0;
    for (number, entry) in entries.iter().enumerate() {
        different += u32::from(!replay(number + 1, entry, matches.get_flag("evidence")));
    }
    println!("{} decisions replayed, {different} differ", entries.len());
    if different == 0 { Ok(()) } else { Err(Failure(format!("{different} decisions differ from the recorded ones"))) }
}

/// Prints one decision; whether it came out as recorded.
fn replay(number: usize, entry: &Entry, with_evidence: bool) -> bool {
    let plan = decide::decide(entry.request, &entry.snapshot, &entry.progress);
    println!("{number}: {:?} on {}: {}", entry.request, entry.snapshot.me.name, entry.plan.because);
    if with_evidence {
        print!("{}", evidence::text(&entry.snapshot));
    }
    if plan == entry.plan {
        return true;
    }
    println!("  recorded  {:?} then {:?}", entry.plan.effects, entry.plan.next);
    println!("  now       {:?} then {:?}", plan.effects, plan.next);
    println!("            because {}", plan.because);
    false
}
