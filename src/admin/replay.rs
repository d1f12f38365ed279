//! `tandem replay`: decides again from recorded evidence, so that a bug report becomes a test.

use std::path::{Path, PathBuf};

use clap::builder::PathBufValueParser;
use clap::{Arg, ArgAction, ArgMatches, Command};
use serde_json::json;

use super::{Failure, Subcommand, evidence, explain, say};
use crate::decide::Plan;
use crate::decision_log::{self, Entry};

pub(super) const SUBCOMMAND: Subcommand = Subcommand { command, run };

fn command() -> Command {
    let file = format!(
        "A file of decisions, such as {}",
        decision_log::path(Path::new(decision_log::DIRECTORY), "etcd").display()
    );
    let flag = |name: &'static str, help: &'static str| Arg::new(name).long(name).action(ArgAction::SetTrue).help(help);
    Command::new("replay")
        .about("Decides again from recorded evidence; fails where a decision differs from the recorded one")
        .arg(Arg::new("FILE").required(true).value_parser(PathBufValueParser::new()).help(file))
        .arg(flag("evidence", "Prints each round's evidence too"))
        .arg(flag("quiet", "Prints only the decisions that differ"))
}

fn run(matches: &ArgMatches) -> Result<(), Failure> {
    let file = matches.get_one::<PathBuf>("FILE").map_or(Path::new(""), PathBuf::as_path);
    let decisions = decision_log::read(file)?;
    let mut different = 0;
    for (number, entry) in decisions.entries.iter().enumerate() {
        let difference = difference(entry);
        if difference.is_some() || !matches.get_flag("quiet") {
            let Entry { request, evidence, plan, .. } = entry;
            say(format_args!("{}: {request} on {}: {}", number + 1, evidence.me.name, plan.because))?;
        }
        if difference.is_some() || matches.get_flag("evidence") {
            say(evidence::text(&entry.evidence).trim_end())?;
        }
        if let Some(text) = difference {
            different += 1;
            say(text.trim_end())?;
        }
    }
    say(format_args!("{} decisions replayed, {different} differ", decisions.entries.len()))?;
    if decisions.torn > 0 {
        say(format_args!("{} records were cut short by a loss of power and are left out", decisions.torn))?;
    }
    if different == 0 { Ok(()) } else { Err(Failure(format!("{different} decisions differ from the recorded ones"))) }
}

/// What was decided and what would be, where that differs.
fn difference(entry: &Entry) -> Option<String> {
    let now = entry.decide_again();
    if now == entry.plan {
        return None;
    }
    let Entry { progress, evidence, plan, .. } = entry;
    let begun = format!("after {} ms, {}", evidence.elapsed_ms, progress.phase);
    // The words leave details out, and what differs may be one of them.
    let whole = |plan: &Plan| format!("{}  as recorded        {}\n", explain::outcome(plan), json!(plan));
    Some(format!("{begun}\nrecorded\n{}now\n{}", whole(plan), whole(&now)))
}
