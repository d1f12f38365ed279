//! The names of the files with events.

use std::path::{Path, PathBuf};

/// The names of the file to which events are appended, and of the file that was in its place before.
pub const FILES: [&str; 2] = ["events.jsonl", "events.jsonl.1"];

/// Returns the path of the file to which events are appended.
pub(super) fn path(directory: &Path) -> PathBuf {
    directory.join("events.jsonl")
}

/// Returns the path of the file with the events before those of the present file.
pub(super) fn older(directory: &Path) -> PathBuf {
    directory.join("events.jsonl.1")
}
