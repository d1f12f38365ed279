//! The paths of the multiplexer's files.

use std::path::{Path, PathBuf};

/// The directory of the multiplexer's files, except in tests.
pub(super) const RUN_DIR: &str = "/run";

/// The paths of the multiplexer's files.
#[derive(Clone, Debug)]
pub(super) struct Paths {
    pub(super) dir: PathBuf,
}

impl Paths {
    pub(super) fn in_dir(dir: &Path) -> Self {
        Self { dir: dir.to_owned() }
    }

    /// Returns the path of the socket that clients connect to.
    pub(super) fn socket(&self) -> PathBuf {
        self.dir.join("watchdog-mux.sock")
    }

    /// Returns the path of a directory that exists while a client is connected. It also remains if a client's connection ended without
    /// `V`.
    pub(super) fn marker(&self) -> PathBuf {
        self.dir.join("watchdog-mux.active")
    }

    /// Returns the path of the state file, which the subcommands `status` and `metrics` read.
    pub(super) fn state(&self) -> PathBuf {
        self.dir.join(STATE)
    }
}

/// The name of the state file.
pub(super) const STATE: &str = "watchdog-mux.json";
