//! What a run of scenarios came to, and how that is said: the last lines may be all that is kept of a run.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::sh::{self, Result};

/// Names the file to which whoever runs several parts in a row has each add how many passed and failed, and what failed why.
const COUNTS: &str = "LAB_COUNTS";

/// A scenario that was run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Done {
    pub name: String,
    pub seconds: f64,
    pub failed: Option<Failed>,
}

/// A failure, and what there was to see at that moment.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Failed {
    pub why: String,
    pub seen: Vec<String>,
}

/// Scenarios that ran in turn.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Report {
    pub done: Vec<Done>,
    /// What failed besides, such as a teardown.
    pub besides: Vec<String>,
    /// Decisions that were replayed.
    pub replayed: usize,
}

impl Report {
    pub fn save(&self, path: &Path) -> Result<()> {
        sh::write(path, serde_json::to_string(self)?)
    }

    pub fn load(path: &Path) -> Result<Self> {
        Ok(serde_json::from_str(&fs::read_to_string(path)?)?)
    }

    /// Puts the reports of labs that ran side by side into one, in the order of `names`.
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

    /// A line for each failure.
    fn failures(&self) -> Vec<String> {
        let of_scenarios = self.done.iter().filter_map(|done| Some(failure(&done.name, &done.failed.as_ref()?.why)));
        of_scenarios.chain(self.besides.iter().map(|what| failure("besides", what))).collect()
    }

    /// Says what failed with the reason and what was seen then, and how many there were.
    pub fn sum_up(&self) -> Result<()> {
        println!("{} recorded decisions replayed without a difference", self.replayed);
        println!();
        for done in &self.done {
            let end = if done.failed.is_some() { "FAILED" } else { "passed" };
            println!("  {:<36} {end} {:>5.0} s", done.name, done.seconds);
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
        // Once more, as what was seen may be long.
        for failure in &failures {
            println!("{failure}");
        }
        println!("{passed} passed, {} failed", failures.len());
        if failures.is_empty() { Ok(()) } else { Err("not every scenario passed".into()) }
    }
}

/// A failure in one line.
pub fn failure(name: &str, why: &str) -> String {
    format!("failed: {name}: {}", why.lines().next().unwrap_or_default())
}

/// Adds to the counts of a run of several parts, where this is one of them.
pub fn count(passed: usize, failures: &[String]) {
    let Some(path) = std::env::var_os(COUNTS) else { return };
    if let Ok(mut file) = OpenOptions::new().append(true).create(true).open(path) {
        let _ = writeln!(file, "{passed} {}", failures.len());
        for failure in failures {
            let _ = writeln!(file, "{failure}");
        }
    }
}
