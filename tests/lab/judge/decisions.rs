//! Replay of the agents' decisions by the same program: the recorded evidence must be enough to lead to every recorded
//! plan.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::host;
use crate::host::node::{NODES, Node};
use crate::host::state::Lab;
use crate::sh::{self, Output, Result};

/// The environment variable that names a directory for copies of the recorded decisions. A run with this variable
/// renews `tests/data/fixtures/decisions/lab`.
const KEEP: &str = "LAB_KEEP_DECISIONS";
/// The text after the number of decisions in the last line that `tandem replay` prints.
const REPLAYED: &str = " decisions replayed";

/// Replays the agent decisions that both hosts recorded since the last call, and returns their number. The error
/// shows the first decision that differs in the replay. A host on which Tandem decided nothing has no records.
pub fn replay(lab: &Lab, what: &str) -> Result<usize> {
    let mut count = 0;
    let mut said = Vec::new();
    for node in NODES {
        let Some(file) = take(lab, node)? else { continue };
        if let Some(dir) = std::env::var_os(KEEP) {
            fs::copy(&file, Path::new(&dir).join(format!("{what}-{node}.jsonl")))?;
        }
        let done = sh::output(Command::new(program(lab, node)).args(["replay", "--quiet"]).arg(&file))?;
        let replayed = number_before(&done.stdout, REPLAYED).filter(|_| done.ok).ok_or_else(|| {
            let why = if done.stdout.contains(REPLAYED) { first_difference(&done) } else { done.text() };
            format!("{node} decided what its record does not lead to: {why}")
        })?;
        let torn = number_before(&done.stdout, " records were cut short").unwrap_or(0);
        count += replayed;
        said.push(if torn == 0 { format!("{node} {replayed}") } else { format!("{node} {replayed}, {torn} torn") });
    }
    println!("   decisions replayed without a difference: {}", said.join("; "));
    Ok(count)
}

/// Returns the path of the host's own `tandem`. A replay must use it, because another build may rightly decide otherwise.
fn program(lab: &Lab, node: Node) -> PathBuf {
    lab.disk(node, "usr").join("sbin/tandem")
}

/// Drops the host's decisions since the last replay, because some of them were made by another program than the host
/// has now.
pub fn forget(lab: &Lab, node: Node) -> Result<()> {
    take_text(lab, node).map(drop)
}

/// Moves a host's recorded decisions to one file outside of its disks, so that the next scenario begins without
/// records. Returns `None` if there are none.
fn take(lab: &Lab, node: Node) -> Result<Option<PathBuf>> {
    let text = take_text(lab, node)?;
    if text.is_empty() {
        return Ok(None);
    }
    must_be_of_this_program(lab, node, &text)?;
    sh::make_dir(&lab.taken_decisions(node))?;
    let all = lab.taken_decisions(node).join("all.jsonl");
    sh::write(&all, text)?;
    Ok(Some(all))
}

/// Keeps the host's decisions since the last replay, next to those that were replayed last. With them the operator
/// can debug a failed scenario.
pub fn keep_unreplayed(lab: &Lab, node: Node) -> Result<()> {
    let text = take_text(lab, node)?;
    sh::make_dir(&lab.taken_decisions(node))?;
    sh::write(&lab.taken_decisions(node).join("since.jsonl"), text)
}

/// Moves a host's recorded decisions off the host and returns them, the oldest first.
fn take_text(lab: &Lab, node: Node) -> Result<Vec<u8>> {
    host::take_files(lab, node, "tandem", "decisions-")
}

/// Checks that the first recorded decision is newer than the installed program. An older decision was made by another build, and a replay
/// by this program proves nothing about it.
fn must_be_of_this_program(lab: &Lab, node: Node, records: &[u8]) -> Result<()> {
    let placed = fs::metadata(program(lab, node))?.ctime();
    let first = records.split(|byte| *byte == b'\n').find_map(|line| serde_json::from_slice(line).ok());
    let at = first.and_then(|entry: serde_json::Value| entry.get("at")?.as_i64());
    match at {
        Some(at) if at < placed => Err(format!("{node} has decisions that another build has recorded").into()),
        _ => Ok(()),
    }
}

/// Returns the number before `words` at the beginning of a line of `text`; `None` if no line has one.
fn number_before(text: &str, words: &str) -> Option<usize> {
    text.lines().find_map(|line| line.split_once(words)?.0.parse().ok())
}

/// Returns the first decision that differs in the replay, from the output of `tandem replay`.
fn first_difference(done: &Output) -> String {
    let begins = |line: &&str| line.split_once(": ").is_some_and(|(number, _)| number.parse::<u32>().is_ok());
    let mut lines = done.stdout.lines();
    let head = lines.next().unwrap_or_default();
    let rest = lines.take_while(|line| !begins(line) && !line.contains(REPLAYED));
    std::iter::once(head).chain(rest).collect::<Vec<_>>().join("\n     ")
}
