//! The repeated status: printed as it changes, or awaited.

use std::io::{IsTerminal, stdout};
use std::time::Duration;

use clap::ValueEnum;
use serde::Serialize;

use super::document::Status;
use super::table;
use crate::admin::exit::Exit;
use crate::admin::report::{Form, Report, line as json_line};
use crate::operate::failure::Failure;
use crate::operate::health::Verdict;
use crate::operate::health::words::span;
use crate::os::clock::{self, Deadline};
use crate::os::output::{self, Painted};

/// Interval between two queries while `--wait-for` waits for a state.
const OFTEN: Duration = Duration::from_secs(1);

/// State that is awaited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Wanted {
    /// There are two voters, and no problem needs an operator
    Redundant,
    /// etcd takes writes
    Serving,
}

impl Wanted {
    fn is_there(self, verdict: Verdict) -> bool {
        match self {
            Self::Redundant => verdict == Verdict::Redundant,
            Self::Serving => matches!(verdict, Verdict::Redundant | Verdict::Degraded),
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Redundant => "redundant",
            Self::Serving => "serving",
        }
    }
}

/// The report of `tandem status --wait-for`: the last status, and whether the state was reached.
#[derive(Debug, Serialize)]
pub(super) struct Waited {
    reached: bool,
    #[serde(flatten)]
    status: Status,
    #[serde(skip)]
    wanted: Wanted,
    #[serde(skip)]
    patience: Duration,
}

impl Report for Waited {
    fn text(&self) -> String {
        if self.reached {
            return self.status.text();
        }
        let (wanted, patience) = (self.wanted.word(), span(self.patience.as_secs()));
        format!("{}\n\nnot {wanted} within {patience}", self.status.text())
    }

    fn painted(&self) -> &'static Painted {
        self.status.painted()
    }

    fn exit(&self) -> Exit {
        if self.reached { Exit::Done } else { self.status.exit() }
    }
}

/// Queries the status until it is `wanted` or `patience` is over.
pub(super) fn wait(
    wanted: Wanted,
    patience: Duration,
    mut ask: impl FnMut() -> Result<Status, Failure>,
) -> Result<Waited, Failure> {
    let deadline = Deadline::after(patience);
    loop {
        let status = ask()?;
        let reached = wanted.is_there(status.verdict);
        if reached || deadline.has_passed() {
            return Ok(Waited { reached, status, wanted, patience });
        }
        deadline.sleep(OFTEN);
    }
}

/// Prints the status at each `interval`, until standard output is closed.
pub(super) fn watch(
    interval: Duration,
    form: Form,
    mut ask: impl FnMut() -> Result<Status, Failure>,
) -> Result<Exit, Failure> {
    let in_place = !form.json && stdout().is_terminal();
    let mut last = String::new();
    loop {
        let status = ask()?;
        let change = change(&status);
        let is_read = match (in_place, form.json) {
            (true, _) => output::is_read_alone(with_clock(&status, interval), status.painted())?,
            _ if change == last => true,
            (_, true) => output::is_read(json_line(&status)?)?,
            (_, false) => output::is_read(format_args!("{} {change}", status.at))?,
        };
        last = change;
        if !is_read {
            return Ok(Exit::Done);
        }
        clock::sleep(interval);
    }
}

/// Returns the status as text with the time of the query. A frozen screen is thereby recognisable.
fn with_clock(status: &Status, interval: Duration) -> String {
    format!("{}\n\nat {}, every {}", status.text(), status.at, span(interval.as_secs()))
}

/// Returns a line with the parts of a status in which a difference counts as a change. It omits numbers that change all the time, such as
/// etcd's index.
pub(super) fn change(status: &Status) -> String {
    let verdict = table::head(status);
    let mut parts = vec![verdict.split(':').next().unwrap_or_default().to_owned()];
    for node in &status.nodes {
        let role = node.etcd.role.map_or_else(|| "not known".to_owned(), |role| role.to_string());
        parts.push(format!("{} {}, etcd {role}", node.name, table::machine(status, node)));
    }
    parts.extend(status.problems.iter().map(|problem| match &problem.node {
        Some(node) => format!("{} ({node})", problem.id),
        None => problem.id.to_owned(),
    }));
    parts.join("; ")
}
