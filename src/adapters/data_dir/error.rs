//! The reasons why a data dir could not be read, or was not changed.

use std::io;
use std::path::{Path, PathBuf};

/// The reason why the contents of a data dir are unknown, or why a change of them was refused. It never means that the data dir
/// is empty.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The operating system returned an error.
    #[error("{action} {}: {source}", path.display())]
    Io {
        /// The operation that failed, e.g. `reading`.
        action: &'static str,
        /// Path of the file or directory on which the operation failed.
        path: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
    /// The files are intact, but contain something that this version of Tandem cannot read.
    #[error("{} holds {what}, which this version of tandem cannot read: upgrade tandem", path.display())]
    Unsupported {
        /// Path of the file that Tandem cannot read.
        path: PathBuf,
        /// The part of the file that Tandem does not know, e.g. a record type.
        what: String,
    },
    /// etcd's database is damaged, or of an unknown format.
    #[error("the database {} cannot be read: {why}", path.display())]
    Database {
        /// Path of the database that cannot be read.
        path: PathBuf,
        why: String,
    },
    /// Files of the data dir appeared and disappeared while they were read. Only a running etcd does that.
    #[error("{} changed on every attempt to read it: etcd is writing there; try again", path.display())]
    Changing {
        /// Path of the data dir that changed while it was read.
        path: PathBuf,
    },
    /// A change was requested while an etcd process has the data dir's files locked.
    #[error("etcd has {} open: stop it on this node first, e.g. with 'pcs resource disable etcd'", path.display())]
    Open {
        /// Path of the locked file.
        path: PathBuf,
    },
    /// `member` cannot be renamed inside the data dir, because it is a mount point or on another file system.
    #[error(
        "mount the file system one level higher, at {}, not at {}: that cannot be renamed ({source})",
        dir.display(), member.display()
    )]
    Mounted {
        /// Path of the data dir in which `member` cannot be renamed.
        dir: PathBuf,
        member: PathBuf,
        source: io::Error,
    },
    /// The requested change is unsafe for the contents of this data dir.
    #[error("{} {why}", path.display())]
    Refused {
        /// Path of the data dir, or of a renamed `member`, for which the change was refused.
        path: PathBuf,
        /// The reason for the refusal, and what the operator can do instead.
        why: String,
    },
}

impl Error {
    /// Returns a function that makes an [`Error::Io`] from an I/O error of the operation `action` on `path`.
    pub(super) fn io(action: &'static str, path: impl AsRef<Path>) -> impl FnOnce(io::Error) -> Self {
        let path = path.as_ref().to_owned();
        move |source| Self::Io { action, path, source }
    }

    /// Returns whether a file was missing. A running etcd purges files between the listing and the reading.
    pub(super) fn is_not_found(&self) -> bool {
        matches!(self, Self::Io { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }
}
