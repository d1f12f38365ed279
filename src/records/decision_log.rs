//! The agent's last decisions on disk: the evidence, the decision, the outcome. Such a file is the core of a bug report, and
//! `tandem replay` makes a test of it. It is bounded, and has no secrets, because evidence never holds any.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::base::{json, printable};
use crate::decide::plan::RunMode;
use crate::decide::{self, Effect, Evidence, Plan, Progress, Request};
use crate::os::{appended, clock, directory as os_directory};

/// The directory of the files that record the agent's decisions, one for each resource.
pub const DIRECTORY: &str = "/var/lib/tandem";
/// The version of the format of a file of decisions. A file of another version is refused.
const VERSION: u32 = 1;
/// The size in bytes above which a file of decisions is renamed to `.1`, and a new one begins.
const SIZE_LIMIT: u64 = 1024 * 1024;

/// The record of one decision of the agent: its evidence, its plan, and the outcome.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    pub version: u32,
    /// The time of the decision in seconds since 1970, by the wall clock.
    pub at: u64,
    pub request: Request,
    pub progress: Progress,
    /// The evidence on which the agent decided. In the file, the field's name is `snapshot`.
    #[serde(rename = "snapshot")]
    pub evidence: Evidence,
    pub plan: Plan,
    /// The outcome of the plan: "done", or the error that ended it.
    pub outcome: String,
}

/// The contents of a file that records decisions.
#[derive(Clone, Debug, Default)]
pub struct Decisions {
    pub entries: Vec<Entry>,
    /// The number of lines that a power cut has left incomplete.
    pub torn: usize,
}

/// The reason why a file that records decisions cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot read {path}: {source}")]
    Read { path: String, source: io::Error },
    #[error("{path}, line {line} is no decision of this version: {why}")]
    Line { path: String, line: usize, why: String },
}

impl Entry {
    /// Creates the record of a decision that was just carried out, with the present time.
    pub fn new(request: Request, progress: Progress, evidence: Evidence, plan: Plan, outcome: String) -> Self {
        Self { version: VERSION, at: clock::wall_seconds(), request, progress, evidence, plan, outcome }
    }

    /// Computes the plan anew from the recorded evidence. An earlier build of the agent did not write some fields of effects. If the
    /// recorded plan lacks such a field, the new plan is returned without it, too.
    pub fn decide_again(&self) -> Plan {
        let mut plan = decide::decide(self.request, &self.evidence, &self.progress).plan;
        // That build also did not name the voter that a forced cluster removes before the force.
        let is_note = |effect: &Effect| matches!(effect, Effect::WriteNote(_));
        let forces = plan.effects.contains(&Effect::RunContainer(RunMode::ForceNewCluster));
        if forces && !self.plan.effects.iter().any(is_note) {
            plan.effects.retain(|effect| !is_note(effect));
        }
        for (now, then) in plan.effects.iter_mut().zip(&self.plan.effects) {
            match (now, then) {
                (Effect::WriteNote(now), Effect::WriteNote(then)) => {
                    now.of = now.of.take().filter(|_| then.of.is_some());
                    now.without = now.without.filter(|_| then.without.is_some());
                }
                (Effect::Remember(now), Effect::Remember(then)) => {
                    now.ended_at = now.ended_at.take().filter(|_| then.ended_at.is_some());
                    let found_dead = then.ended_at.as_ref().is_some_and(|end| end.found_dead);
                    now.ended_at.iter_mut().for_each(|end| end.found_dead &= found_dead);
                }
                _ => {}
            }
        }
        plan
    }
}

/// Returns the path of the file to which decisions of `resource` are appended.
pub fn path(directory: &Path, resource: &str) -> PathBuf {
    directory.join(format!("decisions-{resource}.jsonl"))
}

/// Appends `entry` to the file of decisions of `resource`.
pub fn append(directory: &Path, resource: &str, entry: &Entry) -> io::Result<()> {
    os_directory::make(directory, 0o750)?;
    let path = path(directory, resource);
    if fs::metadata(&path).is_ok_and(|metadata| metadata.len() > SIZE_LIMIT) {
        fs::rename(&path, path.with_extension("jsonl.1"))?;
    }
    let mut file = appended::open(&path, 0o600)?.file;
    let mut line = if ends_in_a_line(&file)? { Vec::new() } else { vec![b'\n'] };
    serde_json::to_writer(&mut line, entry)?;
    line.push(b'\n');
    // One write keeps the lines of two parallel actions apart.
    file.write_all(&line)
}

/// Returns whether the file ends in a complete line. After a power cut the last line may be incomplete. The next line must then begin with
/// a line break.
fn ends_in_a_line(file: &fs::File) -> io::Result<bool> {
    let Some(end) = file.metadata()?.len().checked_sub(1) else { return Ok(true) };
    let mut last = [0];
    file.read_exact_at(&mut last, end)?;
    Ok(last == *b"\n")
}

/// Reads a file of decisions. Counts incomplete lines, and refuses a file with any other invalid line.
pub fn read(path: &Path) -> Result<Decisions, Error> {
    let name = path.display().to_string();
    let content = fs::read(path).map_err(|source| Error::Read { path: name.clone(), source })?;
    let mut decisions = Decisions::default();
    for (number, line) in content.split(|byte| *byte == b'\n').enumerate() {
        match parse(line) {
            Ok(Line::Entry(entry)) => decisions.entries.push(*entry),
            Ok(Line::Torn) => decisions.torn += 1,
            Ok(Line::Empty) => {}
            Err(why) => return Err(Error::Line { path: name, line: number + 1, why }),
        }
    }
    Ok(decisions)
}

enum Line {
    Entry(Box<Entry>),
    Torn,
    Empty,
}

fn parse(line: &[u8]) -> Result<Line, String> {
    // Some file systems fill unwritten parts with zeros.
    let written = line.iter().rposition(|byte| *byte != 0).map_or(&[][..], |last| &line[..=last]);
    if line.trim_ascii().is_empty() {
        return Ok(Line::Empty);
    }
    let entry = serde_json::from_slice::<Value>(written).and_then(|mut value| {
        clean(&mut value);
        json::from_value::<Entry>(&value)
    });
    match entry {
        Ok(entry) if entry.version == VERSION => Ok(Line::Entry(Box::new(entry))),
        Ok(entry) => Err(format!("version {} is not {VERSION}", entry.version)),
        Err(error) if error.is_eof() => Ok(Line::Torn),
        Err(error) => Err(error.to_string()),
    }
}

/// Makes each text in `value` one line. The file may come with a bug report from anywhere, and `tandem replay` prints texts of the file.
fn clean(value: &mut Value) {
    match value {
        Value::String(text) => *text = printable::one_line(text).into_owned(),
        Value::Array(values) => values.iter_mut().for_each(clean),
        Value::Object(fields) => fields.values_mut().for_each(clean),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_loss_of_power_cut_short_is_counted_and_takes_nothing_along() {
        let dir = tempfile::tempdir().unwrap();
        let one = include_str!("../../tests/data/fixtures/decisions/one.jsonl");
        let entry = serde_json::from_str::<Entry>(one).unwrap();
        let path = path(dir.path(), "etcd");
        for end in [&one.as_bytes()[..one.len() / 2], &[&one.as_bytes()[..9], &[0; 5]].concat(), &[0; 7]] {
            fs::write(&path, [one.as_bytes(), end].concat()).unwrap();
            append(dir.path(), "etcd", &entry).unwrap();
            let decisions = read(&path).unwrap();
            assert_eq!((decisions.entries.as_slice(), decisions.torn), (&[entry.clone(), entry.clone()][..], 1));
        }
    }

    #[test]
    fn what_is_no_decision_of_this_version_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("decisions");
        fs::write(&path, "\nno decision\n").unwrap();
        assert!(matches!(read(&path), Err(Error::Line { line: 2, .. })));
    }
}
