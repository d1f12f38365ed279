//! The reasons why a data dir could not be read, or was not changed.

use std::io;
use std::path::{Path, PathBuf};

/// An unknown outcome, or a refused change. It never means an empty data dir.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The operating system returned an error.
    #[error("{action} {}: {source}", path.display())]
    Io {
        /// The operation, e.g. `reading`.
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
    /// The files are intact, but contain something that this version cannot read.
    #[error("{} holds {what}, which this version of tandem cannot read: upgrade tandem", path.display())]
    Unsupported {
        /// The file.
        path: PathBuf,
        /// The thing that it cannot read.
        what: String,
    },
    /// The database is damaged, or of an unknown format.
    #[error("the database {} cannot be read: {why}", path.display())]
    Database {
        /// The file.
        path: PathBuf,
        why: String,
    },
    /// Files appeared and disappeared during the reading. Only a running etcd does that.
    #[error("{} changed on every attempt to read it: etcd is writing there; try again", path.display())]
    Changing {
        /// The data dir.
        path: PathBuf,
    },
    /// A change was requested while etcd uses the files.
    #[error("etcd has {} open: stop it on this node first, e.g. with 'pcs resource disable etcd'", path.display())]
    Open {
        /// The locked file.
        path: PathBuf,
    },
    /// `member` cannot be renamed inside the data dir, because it is a mount point or on another file system.
    #[error(
        "mount the file system one level higher, at {}, not at {}: that cannot be renamed ({source})",
        dir.display(), member.display()
    )]
    Mounted {
        /// The data dir.
        dir: PathBuf,
        member: PathBuf,
        source: io::Error,
    },
    /// The requested change is unsafe for the contents of this data dir.
    #[error("{} {why}", path.display())]
    Refused {
        /// The data dir.
        path: PathBuf,
        /// The reason, and what to do instead.
        why: String,
    },
}

impl Error {
    /// Wraps an I/O error with the operation and the path.
    pub(super) fn io(action: &'static str, path: impl AsRef<Path>) -> impl FnOnce(io::Error) -> Self {
        let path = path.as_ref().to_owned();
        move |source| Self::Io { action, path, source }
    }

    /// Returns whether a file has disappeared that was just listed.
    pub(super) fn is_not_found(&self) -> bool {
        matches!(self, Self::Io { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }
}
