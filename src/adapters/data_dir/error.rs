//! Why a data dir could not be read or was not touched.

use std::io;
use std::path::{Path, PathBuf};

/// The outcome is not known, or the change was refused. Never to be taken for "nothing is there".
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The operating system said no.
    #[error("{action} {}: {source}", path.display())]
    Io {
        /// What was tried, e.g. `reading`.
        action: &'static str,
        /// On which file or directory.
        path: PathBuf,
        /// The answer.
        source: io::Error,
    },
    /// The files are whole but hold something that this version does not know how to read.
    #[error("{} holds {what}, which this version of tandem cannot read: upgrade tandem", path.display())]
    Unsupported {
        /// The file.
        path: PathBuf,
        /// What was found there.
        what: String,
    },
    /// The database is damaged, or of a format that is not known.
    #[error("the database {} cannot be read: {why}", path.display())]
    Database {
        /// The file.
        path: PathBuf,
        why: String,
    },
    /// Files came and went while they were read; only a running etcd does that.
    #[error("{} changed on every attempt to read it: etcd is writing there; try again", path.display())]
    Changing {
        /// The data dir.
        path: PathBuf,
    },
    /// A change was asked for while etcd uses the files.
    #[error("etcd has {} open: stop it on this node first, e.g. with 'pcs resource disable etcd'", path.display())]
    Open {
        /// The locked file.
        path: PathBuf,
    },
    /// `member` cannot be renamed inside the data dir: it is a mount point itself, or of another file system.
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
    /// A change was asked for that must not be made on what this data dir holds.
    #[error("{} {why}", path.display())]
    Refused {
        /// The data dir.
        path: PathBuf,
        /// The reason, and what to do instead.
        why: String,
    },
}

impl Error {
    /// Wraps an I/O error with what was tried on which path.
    pub(super) fn io(action: &'static str, path: impl AsRef<Path>) -> impl FnOnce(io::Error) -> Self {
        let path = path.as_ref().to_owned();
        move |source| Self::Io { action, path, source }
    }

    /// Whether a file was gone that had just been listed.
    pub(super) fn is_not_found(&self) -> bool {
        matches!(self, Self::Io { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }
}
