//! What the agents decided is decided again, by the same program: the recorded evidence alone must lead to every
//! recorded plan.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::host;
use crate::node::{NODES, Node};
use crate::sh::{self, Output, Result};
use crate::state::Lab;

/// Where whoever renews the recorded runs under `tests/fixtures/decisions/lab` has them copied to.
const KEEP: &str = "LAB_KEEP_DECISIONS";
/// What the line that tells how many were replayed goes on with after the number.
const REPLAYED: &str = " decisions replayed";

/// Takes the decisions that both hosts have recorded since the last time and replays them; a difference is an error that
/// shows the first one. A host on which Tandem decided nothing has none.
/// Answers how many there were.
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

/// The program that the host runs: another build may decide otherwise, and rightly.
fn program(lab: &Lab, node: Node) -> PathBuf {
    lab.disk(node, "usr").join("sbin/tandem")
}

/// Drops what a host has recorded since the last time: another program than its own has recorded some of it.
pub fn forget(lab: &Lab, node: Node) -> Result<()> {
    take_text(lab, node).map(drop)
}

/// Moves a host's records to one file outside of its disks, so that the next scenario begins without them.
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

/// Keeps what a host has recorded since, for whoever looks at why a scenario failed, beside what was replayed last.
pub fn keep_unreplayed(lab: &Lab, node: Node) -> Result<()> {
    let text = take_text(lab, node)?;
    sh::make_dir(&lab.taken_decisions(node))?;
    sh::write(&lab.taken_decisions(node).join("since.jsonl"), text)
}

/// Moves them away, and answers what they hold: the older one of two has the longer name.
fn take_text(lab: &Lab, node: Node) -> Result<Vec<u8>> {
    host::take_files(lab, node, "tandem", "decisions-")
}

/// Nothing that was recorded before the program was put in its place can be its own.
fn must_be_of_this_program(lab: &Lab, node: Node, records: &[u8]) -> Result<()> {
    let placed = fs::metadata(program(lab, node))?.ctime();
    let first = records.split(|byte| *byte == b'\n').find_map(|line| serde_json::from_slice(line).ok());
    let at = first.and_then(|entry: serde_json::Value| entry.get("at")?.as_i64());
    match at {
        Some(at) if at < placed => Err(format!("{node} has decisions that another build has recorded").into()),
        _ => Ok(()),
    }
}

/// The number at the beginning of the line that goes on with `words`.
fn number_before(text: &str, words: &str) -> Option<usize> {
    text.lines().find_map(|line| line.split_once(words)?.0.parse().ok())
}

/// From the first decision that differs to where the next one begins.
fn first_difference(done: &Output) -> String {
    let begins = |line: &&str| line.split_once(": ").is_some_and(|(number, _)| number.parse::<u32>().is_ok());
    let mut lines = done.stdout.lines();
    let head = lines.next().unwrap_or_default();
    let rest = lines.take_while(|line| !begins(line) && !line.contains(REPLAYED));
    std::iter::once(head).chain(rest).collect::<Vec<_>>().join("\n     ")
}
