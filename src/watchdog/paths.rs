//! Where the multiplexer's files are.

use std::path::{Path, PathBuf};

/// Where they are outside of tests.
pub(super) const RUN_DIR: &str = "/run";

/// The files in the directory of run-time state.
#[derive(Clone, Debug)]
pub(super) struct Paths {
    pub(super) dir: PathBuf,
}

impl Paths {
    pub(super) fn in_dir(dir: &Path) -> Self {
        Self { dir: dir.to_owned() }
    }

    /// The socket that clients connect to.
    pub(super) fn socket(&self) -> PathBuf {
        self.dir.join("watchdog-mux.sock")
    }

    /// The directory that is there while a client is, and after one that has not left in order.
    pub(super) fn marker(&self) -> PathBuf {
        self.dir.join("watchdog-mux.active")
    }

    /// What `status` and `metrics` read.
    pub(super) fn state(&self) -> PathBuf {
        self.dir.join(STATE)
    }
}

/// The name of the file with the state.
pub(super) const STATE: &str = "watchdog-mux.json";
