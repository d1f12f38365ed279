//! `tandem replay`: decides again from recorded evidence, so that a bug report becomes a test.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use super::{evidence, explain, say};
use crate::decide::Plan;
use crate::operate::failure::Failure;
use crate::records::decision_log::{self, Entry};

/// Decides again from recorded evidence, and fails if a decision differs from the recorded one
#[derive(Args)]
pub(super) struct Arguments {
    /// File of decisions that an agent has written, such as /var/lib/tandem/decisions-etcd.jsonl
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Also prints the evidence of each decision
    #[arg(long)]
    evidence: bool,
    /// Prints only the decisions that differ
    #[arg(long)]
    quiet: bool,
}

/// Decides again from the evidence of each recorded decision. Prints each result immediately, because a file may
/// contain megabytes.
pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let decisions = decision_log::read(&arguments.file)?;
    let mut different = 0;
    for (number, entry) in decisions.entries.iter().enumerate() {
        let difference = difference(entry);
        if difference.is_some() || !arguments.quiet {
            let Entry { request, evidence, plan, .. } = entry;
            say(format_args!("{}: {request} on {}: {}", number + 1, evidence.me.name, plan.because))?;
        }
        if difference.is_some() || arguments.evidence {
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

/// Decides again from the evidence of `entry`. Returns both plans as text if the new plan differs from the recorded
/// plan.
fn difference(entry: &Entry) -> Option<String> {
    let now = entry.decide_again();
    if now == entry.plan {
        return None;
    }
    let Entry { progress, evidence, plan, .. } = entry;
    let begun = format!("after {} ms, {}", evidence.elapsed_ms, progress.phase);
    // The text leaves details out, and one of them may be the difference.
    let whole = |plan: &Plan| format!("{}  as recorded        {}\n", explain::outcome(plan), json!(plan));
    Some(format!("{begun}\nrecorded\n{}now\n{}", whole(plan), whole(&now)))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn the_help_names_the_place_of_the_files() {
        let place = decision_log::path(Path::new(decision_log::DIRECTORY), "etcd").display().to_string();
        let help = crate::admin::command_line().find_subcommand_mut("replay").unwrap().render_help().to_string();
        assert!(help.contains(&place), "{place}: {help}");
    }
}
