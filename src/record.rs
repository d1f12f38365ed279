//! The agent's last decisions, kept on disk: what was known, what was decided, how it went. A bug report is such a file,
//! and `tandem replay` makes a test of it. Bounded, without secrets: a snapshot never holds any.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::clock;
use crate::decide::{Plan, Progress, Request, Snapshot};

/// Where the decisions of all resources are kept.
pub const DIRECTORY: &str = "/var/lib/tandem";
/// The format's version; a file of another one is refused, not guessed.
const VERSION: u32 = 1;
/// A file grows to this many bytes, then it becomes the older of two.
const SIZE_LIMIT: u64 = 1024 * 1024;

/// One round.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    pub version: u32,
    /// Seconds since 1970, by the wall clock.
    pub at: u64,
    pub request: Request,
    pub progress: Progress,
    pub snapshot: Snapshot,
    pub plan: Plan,
    /// How the effects went: "done", or the error that ended them.
    pub outcome: String,
}

/// A file of decisions that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot read {path}: {source}")]
    Read { path: String, source: io::Error },
    #[error("{path}, line {line} is no decision of this version: {why}")]
    Line { path: String, line: usize, why: String },
}

impl Entry {
    /// An entry for a round that has just ended.
    pub fn new(request: Request, progress: Progress, snapshot: Snapshot, plan: Plan, outcome: String) -> Self {
        Self { version: VERSION, at: clock::wall_seconds(), request, progress, snapshot, plan, outcome }
    }
}

/// The newest file of `resource`.
pub fn path(directory: &Path, resource: &str) -> PathBuf {
    directory.join(format!("decisions-{resource}.jsonl"))
}

/// Adds `entry` to the decisions of `resource`.
pub fn append(directory: &Path, resource: &str, entry: &Entry) -> io::Result<()> {
    fs::create_dir_all(directory)?;
    let path = path(directory, resource);
    if fs::metadata(&path).is_ok_and(|metadata| metadata.len() > SIZE_LIMIT) {
        fs::rename(&path, path.with_extension("jsonl.1"))?;
    }
    let mut line = serde_json::to_vec(entry)?;
    line.push(b'\n');
    let mut file = OpenOptions::new().append(true).create(true).mode(0o600).open(&path)?;
    // One write: the lines of two actions that run side by side do not mix.
    file.write_all(&line)
}

/// Reads a file of decisions.
pub fn read(path: &Path) -> Result<Vec<Entry>, Error> {
    let name = path.display().to_string();
    let text = fs::read_to_string(path).map_err(|source| Error::Read { path: name.clone(), source })?;
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    lines
        .map(|(number, line)| parse(line).map_err(|why| Error::Line { path: name.clone(), line: number + 1, why }))
        .collect()
}

fn parse(line: &str) -> Result<Entry, String> {
    let entry: Entry = serde_json::from_str(line).map_err(|error| error.to_string())?;
    if entry.version == VERSION { Ok(entry) } else { Err(format!("version {} is not {VERSION}", entry.version)) }
}
