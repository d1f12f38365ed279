//! `tandem`, the operator's command: a tree of subcommands, one file each.
//!
//! A subcommand consists of its arguments and a function from them to a [`report::Report`]. [`exit`] has the exit
//! codes, [`prompt`] asks the questions. Subcommands change the cluster only through `crate::adapters::pacemaker`.

mod alert;
mod certs;
mod collect;
mod completion;
mod confirm_recovery;
mod data_dir;
mod etcdctl;
mod events;
pub(crate) mod evidence;
mod exit;
mod explain;
mod fencing;
mod gather;
mod generate;
mod lone_boot;
mod member;
mod metrics;
mod node;
mod power;
mod progress;
mod prompt;
mod release_locks;
mod replay;
mod report;
mod setup;
mod sim;
mod since;
mod space;
mod status;
mod upgrade;
mod voters;

use std::ffi::OsString;
use std::fmt::Display;

use clap::error::{ContextKind, ContextValue};
use clap::{CommandFactory, Parser, Subcommand};

use self::exit::Exit;
use self::report::show;
use crate::operate::failure::Failure;
use crate::os::output::{self, complain};

/// All of it, as it is parsed, as the man pages show it and as shells complete it.
#[derive(Parser)]
#[command(name = "tandem", version, about = "Operates a two-member etcd on two machines")]
struct CommandLine {
    #[command(subcommand)]
    command: Command,
}

/// What `tandem` can do.
#[derive(Subcommand)]
enum Command {
    Status(status::Arguments),
    Explain(explain::Arguments),
    ConfirmRecovery(confirm_recovery::Arguments),
    LoneBoot(lone_boot::Arguments),
    Setup(setup::Arguments),
    Upgrade(upgrade::Arguments),
    #[command(subcommand)]
    Fencing(fencing::Command),
    #[command(subcommand)]
    Power(power::Command),
    #[command(subcommand)]
    Certs(certs::Command),
    #[command(subcommand)]
    DataDir(data_dir::Command),
    #[command(subcommand)]
    Member(member::Command),
    Space(space::Arguments),
    Etcdctl(etcdctl::Arguments),
    Events(events::Arguments),
    Collect(collect::Arguments),
    Gather(gather::Arguments),
    ReleaseLocks(release_locks::Arguments),
    Metrics(metrics::Arguments),
    Replay(replay::Arguments),
    Completion(completion::Arguments),
    #[command(hide = true)]
    Sim(sim::Arguments),
}

impl Command {
    fn run(&self) -> Result<Exit, Failure> {
        match self {
            Self::Status(arguments) => status::run(arguments),
            Self::Explain(arguments) => show(&explain::run(arguments)?, arguments.form),
            Self::ConfirmRecovery(arguments) => show(&confirm_recovery::run(arguments)?, arguments.form),
            Self::LoneBoot(arguments) => show(&lone_boot::run(arguments)?, arguments.form),
            Self::Setup(arguments) => setup::run(arguments),
            Self::Upgrade(arguments) => show(&upgrade::run(arguments)?, arguments.form),
            Self::Fencing(command) => command.run(),
            Self::Power(command) => command.run(),
            Self::Certs(command) => command.run(),
            Self::DataDir(command) => command.run(),
            Self::Member(command) => command.run(),
            Self::Space(arguments) => show(&space::run(arguments)?, arguments.form),
            Self::Etcdctl(arguments) => Err(etcdctl::run(arguments)),
            Self::Events(arguments) => events::run(arguments),
            Self::Collect(arguments) => show(&collect::run(arguments)?, arguments.form),
            Self::Gather(arguments) => show(&gather::run(arguments)?, arguments.form),
            Self::ReleaseLocks(arguments) => show(&release_locks::run()?, arguments.form),
            Self::Metrics(arguments) => metrics::run(arguments).map(done),
            Self::Replay(arguments) => replay::run(arguments).map(done),
            Self::Completion(arguments) => completion::run(arguments).map(done),
            Self::Sim(_) => Ok(sim::run()),
        }
    }
}

/// Returns the exit code of a subcommand that prints no report.
fn done((): ()) -> Exit {
    Exit::Done
}

/// Runs `tandem` and returns its exit code. `args` are the arguments after the program's name.
pub fn run(args: &[OsString]) -> u8 {
    let name = OsString::from("tandem");
    let line = match CommandLine::try_parse_from(std::iter::once(&name).chain(args)) {
        Ok(line) => line,
        Err(answer) => {
            let answer = with_nearest(answer);
            // Help that was asked for comes this way, too. If it cannot be printed, nothing is left to do.
            let _ = answer.print();
            return if answer.use_stderr() { Exit::Usage } else { Exit::Done } as u8;
        }
    };
    match line.command.run() {
        Ok(exit) => exit as u8,
        Err(Failure(why)) => {
            complain(format_args!("tandem: {why}"));
            Exit::Failed as u8
        }
    }
}

/// Returns the fault of a command line of `tandem` without running it; `None` if it is valid. `words` are the words after the program's
/// name.
pub fn misused(words: &[&str]) -> Option<String> {
    let line = CommandLine::try_parse_from(std::iter::once(&"tandem").chain(words));
    line.err().filter(clap::Error::use_stderr).map(|fault| fault.to_string())
}

/// Keeps only the last of the subcommands that clap suggests for a mistyped one. The last suggestion is the nearest.
fn with_nearest(mut answer: clap::Error) -> clap::Error {
    if let Some(ContextValue::Strings(mut names)) = answer.remove(ContextKind::SuggestedSubcommand)
        && let Some(nearest) = names.pop()
    {
        answer.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(vec![nearest]));
    }
    answer
}

/// Runs `tandem release-locks` as an alert agent, and returns its exit code. Pacemaker passes no arguments.
pub fn release_locks(_: &[OsString]) -> u8 {
    run(&[OsString::from("release-locks")])
}

/// Runs the alert agent that records events, and returns its exit code. Pacemaker passes no arguments.
pub fn alert(args: &[OsString]) -> u8 {
    alert::run(args)
}

/// Runs `tandem-generate` and returns its exit code. `args` begin with the program's name.
pub fn generate(args: impl IntoIterator<Item = OsString>) -> u8 {
    generate::run(args) as u8
}

/// Prints lines to standard output.
fn say(lines: impl Display) -> Result<(), Failure> {
    Ok(output::say(lines)?)
}

/// Returns the command tree of `tandem`, from which man pages and completions are generated.
fn command_line() -> clap::Command {
    CommandLine::command()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The subcommands without `--json`, because they print as they run.
    const WITHOUT_REPORT: [&str; 6] = ["completion", "etcdctl", "metrics-rules", "power-off", "replay", "sim"];

    fn leaves(command: &clap::Command, words: &str) -> Vec<(String, clap::Command)> {
        if !command.has_subcommands() {
            return vec![(words.to_owned(), command.clone())];
        }
        let below = command.get_subcommands().filter(|below| below.get_name() != "help");
        below
            .flat_map(|below| {
                let joined = if words.is_empty() { String::new() } else { format!("{words}-") };
                leaves(below, &format!("{joined}{}", below.get_name()))
            })
            .collect()
    }

    #[test]
    fn every_subcommand_can_be_parsed_and_answers_with_a_report_that_has_a_golden() {
        command_line().debug_assert();
        let mut without = Vec::new();
        for (name, command) in leaves(&command_line(), "") {
            if !command.get_arguments().any(|argument| argument.get_id() == "json") {
                without.push(name);
                continue;
            }
            let file = report::golden::directory().join(format!("{name}.json"));
            let golden = std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
            let golden: serde_json::Value = serde_json::from_str(&golden).unwrap();
            assert_eq!(golden["format"], 1, "{name}");
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            for key in golden.as_object().unwrap().keys().filter(|key| *key != "format") {
                assert!(help.contains(key.as_str()), "the help of {name} says nothing of its key {key}");
            }
        }
        without.sort();
        let mut expected = WITHOUT_REPORT;
        expected.sort_unstable();
        assert_eq!(without, expected);
    }
}
