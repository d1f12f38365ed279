//! The names of the files with events.

use std::path::{Path, PathBuf};

/// The names of the present file of events and of the older one.
pub const FILES: [&str; 2] = ["events.jsonl", "events.jsonl.1"];

/// Returns the path of the file to which events are appended.
pub(super) fn path(directory: &Path) -> PathBuf {
    directory.join("events.jsonl")
}

/// Returns the path of the older file of events.
pub(super) fn older(directory: &Path) -> PathBuf {
    directory.join("events.jsonl.1")
}
