//! The files of this tree, for tests that read sources and documents.

#![allow(dead_code, reason = "each test program uses a part of it")]
#![allow(clippy::unwrap_used, reason = "what fails here ends the test")]

use std::path::{Path, PathBuf};

pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Returns every file and folder below `dir`, sorted, without the folders `target` and `.git`.
pub(crate) fn below(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![dir.to_owned()];
    while let Some(dir) = open.pop() {
        for entry in std::fs::read_dir(&dir).unwrap() {
            let path = entry.unwrap().path();
            if path.ends_with("target") || path.ends_with(".git") {
                continue;
            }
            if path.is_dir() {
                open.push(path.clone());
            }
            found.push(path);
        }
    }
    found.sort();
    found
}

/// Returns every file below `dir` with this extension.
pub(crate) fn of_kind(dir: &Path, extension: &str) -> Vec<PathBuf> {
    let is_one = |path: &PathBuf| path.is_file() && path.extension().is_some_and(|found| found == extension);
    below(dir).into_iter().filter(is_one).collect()
}

/// Returns every Rust file below `dir`, including tests.
pub(crate) fn rust_files(dir: &Path) -> Vec<PathBuf> {
    of_kind(dir, "rs")
}
