//! The names of the files with events.

use std::path::{Path, PathBuf};

/// Both files, for reports.
pub const FILES: [&str; 2] = ["events.jsonl", "events.jsonl.1"];

/// Returns the path of the present file.
pub(super) fn path(directory: &Path) -> PathBuf {
    directory.join("events.jsonl")
}

/// Returns the path of the previous file.
pub(super) fn older(directory: &Path) -> PathBuf {
    directory.join("events.jsonl.1")
}
