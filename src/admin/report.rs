//! The answers of subcommands: one typed value, printed as text for people or as one JSON object for programs.
//!
//! A new subcommand is a file with its arguments and its [`Report`], a golden pair in `tests/data/golden/commands`, and its
//! help text, which becomes its man page.

use std::borrow::Cow;

use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use serde::Serialize;

use super::exit::Exit;
use crate::operate::failure::Failure;
use crate::os::output::{self, Painted};

/// Version of the `--json` format. It stays when a key is added, and changes when a key is removed or gets another meaning.
const FORMAT: u32 = 1;

/// The result of a subcommand. Its JSON consists of its serialized fields and the key `format`.
pub(super) trait Report: Serialize {
    /// Returns the result as text for the operator, without the last line break. The text is empty if there is nothing to report.
    fn text(&self) -> String;

    /// Returns why the subcommand fails although it has a result; `None` if it succeeds. The result is printed, and this text goes to
    /// stderr.
    fn complaint(&self) -> Option<Cow<'_, str>> {
        None
    }

    /// Returns the words that get a colour on a terminal if a line of the text begins with them.
    fn painted(&self) -> &'static Painted {
        &[]
    }

    /// Returns the exit code for a result without a complaint.
    fn exit(&self) -> Exit {
        Exit::Done
    }
}

/// The form in which a result is printed: text or JSON. Each subcommand with a report has it among its arguments.
#[derive(Clone, Copy, Debug)]
pub(super) struct Form {
    pub json: bool,
}

/// The id of the argument `--json` in clap.
const JSON: &str = "json";
/// The id of the argument `-o` in clap.
const OUTPUT: &str = "output-form";

impl Args for Form {
    /// Adds `--json`, and `-o json` (`--output json`) as in kubectl. A subcommand with an option of that name keeps its own.
    fn augment_args(command: Command) -> Command {
        let help = "Prints one JSON object instead of text; its key \"format\" is 1";
        let json = Arg::new(JSON).long("json").action(ArgAction::SetTrue).help(help);
        let is_taken = |option: &Arg| (option.get_short() == Some('o'), option.get_long() == Some("output"));
        let (short, long) = command
            .get_arguments()
            .map(is_taken)
            .fold((false, false), |(short, long), (own_short, own_long)| (short || own_short, long || own_long));
        let command = command.arg(json);
        if short {
            return command;
        }
        let output = Arg::new(OUTPUT).short('o').value_name("FORM").value_parser([JSON]).help("The same as --json");
        command.arg(if long { output } else { output.long("output") })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Form {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        // A subcommand with its own `-o` has no such argument.
        let has_output = matches.try_get_one::<String>(OUTPUT).is_ok_and(|form| form.is_some());
        Ok(Self { json: matches.get_flag(JSON) || has_output })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

#[derive(Serialize)]
struct Document<'a, R> {
    format: u32,
    #[serde(flatten)]
    report: &'a R,
}

/// Formats `report` as text or JSON.
fn render(report: &impl Report, form: Form) -> Result<String, Failure> {
    if !form.json {
        return Ok(report.text());
    }
    Ok(serde_json::to_string_pretty(&Document { format: FORMAT, report })?)
}

/// Formats `report` as one line of JSON, for subcommands that print several reports.
pub(super) fn line(report: &impl Report) -> Result<String, Failure> {
    Ok(serde_json::to_string(&Document { format: FORMAT, report })?)
}

/// Prints `report` and returns the exit code of the subcommand. Fails if the report has a complaint.
pub(super) fn show(report: &impl Report, form: Form) -> Result<Exit, Failure> {
    let text = render(report, form)?;
    if !text.is_empty() {
        output::say_painted(text, if form.json { &[] } else { report.painted() })?;
    }
    report.complaint().map_or_else(|| Ok(report.exit()), |why| Err(Failure(why.into_owned())))
}

#[cfg(test)]
pub(super) mod golden {
    //! The answer of each subcommand as a file for people and one for programs, in `tests/data/golden/commands`.
    //! `TANDEM_BLESS=1` rewrites them. Read the difference before you commit it.

    use std::fs;
    use std::path::{Path, PathBuf};

    use super::*;
    use crate::records::decision_log::Entry;

    /// Returns a recorded decision of the agent, from which tests make reports.
    pub(in crate::admin) fn recorded() -> Entry {
        let text = include_str!("../../tests/data/fixtures/decisions/one.jsonl");
        serde_json::from_str(text.lines().next().unwrap()).unwrap()
    }

    pub(in crate::admin) fn directory() -> PathBuf {
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/golden/commands")
    }

    /// Asserts that `report` is equal to the golden files of `name`, as text and as JSON. `name` is the subcommand's words, joined by
    /// hyphens.
    pub(in crate::admin) fn compare(name: &str, report: &impl Report) {
        compare_in(&directory(), name, report);
    }

    /// Asserts that `report` is equal to the files of `name` in `directory`, as text and as JSON.
    pub(in crate::admin) fn compare_in(directory: &Path, name: &str, report: &impl Report) {
        for (json, ending) in [(false, "txt"), (true, "json")] {
            let rendered = render(report, Form { json }).unwrap() + "\n";
            let file = directory.join(format!("{name}.{ending}"));
            if std::env::var_os("TANDEM_BLESS").is_some() {
                fs::write(&file, &rendered).unwrap();
            }
            let expected = fs::read_to_string(&file).unwrap_or_default();
            assert_eq!(rendered, expected, "{}; TANDEM_BLESS=1 writes it anew, to be read", file.display());
        }
    }
}
