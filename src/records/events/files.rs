//! The names of the files.

use std::path::{Path, PathBuf};

/// Both, for reports.
pub const FILES: [&str; 2] = ["events.jsonl", "events.jsonl.1"];

/// The file that grows.
pub(super) fn path(directory: &Path) -> PathBuf {
    directory.join("events.jsonl")
}

/// The file before it.
pub(super) fn older(directory: &Path) -> PathBuf {
    directory.join("events.jsonl.1")
}
