//! The file of results: one row for each scenario and each series of power cuts, of its latest run with `--results`.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use crate::cluster::up::Wish;
use crate::host;
use crate::host::state;
use crate::programs::shell_agent::Agent;
use crate::sh::{self, Result};

const HEAD: &str = "\
# Results of the lab

The lab writes this file: `RESULTS=tests/lab/RESULTS.md` with `make lab`, `make vm-lab`, `make power-cuts` or `make vm-power-cuts`
(`--results FILE` with `cargo lab`) replaces the row of each scenario and series that ran. [README.md](README.md) describes the runs.
Times depend on the machine and on its other work: compare rows of the same day, or run both.
Rows before 2026-11-30 were taken over from a list that was written by hand.

| run | hosts | day | result | figures |
|---|---|---|---|---|
";

/// One row of the file of results: a run and its result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The name of the scenario, or the command line of the series.
    pub run: String,
    /// The hosts and the programs on them, from [`hosts`].
    pub hosts: String,
    /// The day of the run, as `2026-11-30`.
    pub day: String,
    pub result: String,
    pub figures: Vec<String>,
}

/// Describes the hosts of a lab and what differs on them from the default.
pub fn hosts(wish: Wish) -> String {
    let kind = match wish.hosts {
        host::Kind::Namespaces => "namespaces",
        host::Kind::Vm => "virtual machines",
    };
    let mut words = vec![kind.to_owned(), format!("etcd {}", wish.etcd.number())];
    if !wish.release.number().is_empty() {
        words.push(format!("Debian {}", wish.release.number()));
    }
    if wish.agent == Agent::Shell {
        words.push("shell agent".to_owned());
    }
    if wish.restarts {
        words.push("recovery by restart".to_owned());
    }
    words.join(", ")
}

/// Returns today's date in UTC.
pub fn today() -> String {
    state::stamp(state::since_epoch()).chars().take(10).collect()
}

/// Writes `rows` to the file `path`. Other rows of the file are kept, and those of the same run on the same hosts are
/// replaced.
pub fn keep(path: &Path, rows: Vec<Row>) -> Result<()> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
        Err(error) => return Err(format!("{}: {error}", path.display()).into()),
    };
    sh::write(path, merged(&text, rows))
}

/// Returns the file's new text: the rows of `text` and the new ones, sorted by run and hosts.
fn merged(text: &str, rows: Vec<Row>) -> String {
    let old = text.lines().filter_map(parse);
    let all: BTreeMap<(String, String), Row> =
        old.chain(rows).map(|row| ((row.run.clone(), row.hosts.clone()), row)).collect();
    let lines = all.into_values().map(|row| {
        let figures = row.figures.join("; ").replace('|', "/").replace('\n', " ");
        format!("| `{}` | {} | {} | {} | {figures} |\n", row.run, row.hosts, row.day, row.result)
    });
    HEAD.to_owned() + &lines.collect::<String>()
}

/// Reads a row of the table. Returns `None` for any other line.
fn parse(line: &str) -> Option<Row> {
    let cells: Vec<&str> = line.strip_prefix("| ")?.strip_suffix(" |")?.split(" | ").collect();
    let [run, hosts, day, result, figures] = cells[..] else { return None };
    let run = run.strip_prefix('`')?.strip_suffix('`')?;
    Some(Row {
        run: run.to_owned(),
        hosts: hosts.to_owned(),
        day: day.to_owned(),
        result: result.to_owned(),
        figures: vec![figures.to_owned()],
    })
}

/// Returns whether the file keeps the rows of other runs, and replaces the row of the same run on the same hosts.
pub fn keeps_the_rows_of_other_runs() -> bool {
    let row = |run: &str, hosts: &str, figures: &[&str]| Row {
        run: run.to_owned(),
        hosts: hosts.to_owned(),
        day: "2026-11-30".to_owned(),
        result: "passed in 61 s".to_owned(),
        figures: figures.iter().map(|figure| (*figure).to_owned()).collect(),
    };
    let first = merged("", vec![row("partition", "namespaces", &["a|b", "c"]), row("alarm", "namespaces", &[])]);
    let second = merged(&first, vec![row("partition", "namespaces", &["d"]), row("partition", "vm", &["e"])]);
    let expected =
        [row("alarm", "namespaces", &[""]), row("partition", "namespaces", &["d"]), row("partition", "vm", &["e"])];
    first.contains("| a/b; c |\n") && second.lines().filter_map(parse).eq(expected)
}
