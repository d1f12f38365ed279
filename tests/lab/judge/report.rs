//! The results of a run of scenarios, and their output. The last lines may be all that is kept of a run.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::results::{self, Row};
use crate::cluster::up::Wish;
use crate::sh::{self, Result};

/// The environment variable that names a file of results. Each of several runs adds its numbers of passed and failed
/// scenarios, with the reasons.
const COUNTS: &str = "LAB_COUNTS";

/// The result of one scenario.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Done {
    pub name: String,
    pub seconds: f64,
    pub failed: Option<Failed>,
    /// The times and counts that the scenario printed (see [`figures`](super::figures)).
    pub figures: Vec<String>,
}

impl Done {
    fn end(&self) -> &'static str {
        if self.failed.is_some() { "FAILED" } else { "passed" }
    }
}

/// The reason of a scenario's failure, and the state of the lab at that moment.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Failed {
    pub why: String,
    pub seen: Vec<String>,
}

/// The results of scenarios that ran one after the other.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Report {
    pub done: Vec<Done>,
    /// The failures outside of scenarios, such as that of a teardown.
    pub besides: Vec<String>,
    /// The number of agent decisions that were replayed.
    pub replayed: usize,
}

impl Report {
    pub fn save(&self, path: &Path) -> Result<()> {
        sh::write(path, serde_json::to_string(self)?)
    }

    pub fn load(path: &Path) -> Result<Self> {
        Ok(serde_json::from_str(&fs::read_to_string(path)?)?)
    }

    /// Merges the reports of labs that ran at the same time into one. The scenarios are in the order of `names`.
    pub fn join(parts: Vec<Self>, names: &[&str]) -> Self {
        let mut all = Self::default();
        for part in parts {
            all.done.extend(part.done);
            all.besides.extend(part.besides);
            all.replayed += part.replayed;
        }
        all.done.sort_by_key(|done| names.iter().position(|name| *name == done.name));
        all
    }

    /// Returns one line for each failure.
    fn failures(&self) -> Vec<String> {
        let of_scenarios = self.done.iter().filter_map(|done| Some(failure(&done.name, &done.failed.as_ref()?.why)));
        of_scenarios.chain(self.besides.iter().map(|what| failure("besides", what))).collect()
    }

    /// Returns the rows of the scenarios for the file of results.
    pub fn rows(&self, wish: Wish) -> Vec<Row> {
        let row = |done: &Done| Row {
            run: done.name.clone(),
            hosts: results::hosts(wish),
            day: results::today(),
            result: format!("{} in {:.0} s", done.end(), done.seconds),
            figures: done.figures.clone(),
        };
        self.done.iter().map(row).collect()
    }

    /// Prints each failure with its reason and the state of the lab, and then the number of failures.
    pub fn sum_up(&self) -> Result<()> {
        println!("{} recorded decisions replayed without a difference", self.replayed);
        println!();
        for done in &self.done {
            println!("  {:<36} {} {:>5.0} s", done.name, done.end(), done.seconds);
        }
        println!();
        let failures = self.failures();
        let passed = self.done.iter().filter(|done| done.failed.is_none()).count();
        count(passed, &failures);
        for done in &self.done {
            let Some(failure) = &done.failed else { continue };
            println!("failed: {}: {}", done.name, failure.why);
            for line in &failure.seen {
                println!("    {line}");
            }
        }
        for what in &self.besides {
            println!("failed: {what}");
        }
        // Repeats the failures, because the descriptions above may be long.
        for failure in &failures {
            println!("{failure}");
        }
        println!("{passed} passed, {} failed", failures.len());
        if failures.is_empty() { Ok(()) } else { Err("not every scenario passed".into()) }
    }
}

/// Describes a failure in one line.
pub fn failure(name: &str, why: &str) -> String {
    format!("failed: {name}: {}", why.lines().next().unwrap_or_default())
}

/// Adds this run's numbers to the file that [`COUNTS`] names. Without that variable it does nothing.
pub fn count(passed: usize, failures: &[String]) {
    let Some(path) = std::env::var_os(COUNTS) else { return };
    if let Ok(mut file) = OpenOptions::new().append(true).create(true).open(path) {
        let _ = writeln!(file, "{passed} {}", failures.len());
        for failure in failures {
            let _ = writeln!(file, "{failure}");
        }
    }
}
