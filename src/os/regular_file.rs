//! Opens files that must be regular ones. A FIFO in place of a file would block its reader forever, and a device would have no
//! end.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use nix::fcntl::OFlag;
use nix::libc;
use nix::sys::stat::{Mode, fstat};

use crate::os::file_kind::Kind;
use crate::os::proc;

/// An object that is found in place of a regular file or a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Irregular {
    #[error("it is {0} where a regular file belongs: move it away")]
    NoFile(&'static str),
    #[error("it is a hard link where a file with one name belongs: move it away")]
    HardLink,
    #[error("it is {0} where a directory belongs: put the directory itself there")]
    NoDirectory(&'static str),
}

impl Irregular {
    /// Returns the error for an object of a `kind` that is found in place of a directory.
    pub(crate) fn no_directory(kind: Kind) -> io::Error {
        io::Error::other(Self::NoDirectory(kind.words()))
    }
}

/// Returns whether `error` reports another object in place of a file or a directory.
pub(crate) fn is_irregular(error: &io::Error) -> bool {
    error.get_ref().is_some_and(<dyn std::error::Error + Send + Sync>::is::<Irregular>)
}

/// Opens the regular file at `path` for reading. Fails if another object is there.
pub fn open(path: &Path) -> io::Result<File> {
    or_irregular(path)?.map_err(io::Error::other)
}

/// Opens the regular file at `path` for reading and writing. Fails if another object is there.
pub fn open_to_change(path: &Path) -> io::Result<File> {
    open_with(path, OpenOptions::new().read(true).write(true))?.map_err(io::Error::other)
}

/// Opens a file as [`open`] does. The inner error means that the object at `path` is no regular file, for callers that handle that case.
pub fn or_irregular(path: &Path) -> io::Result<Result<File, Irregular>> {
    open_with(path, OpenOptions::new().read(true))
}

/// Reads a whole file. Fails if it is larger than `limit` bytes, or is no regular file.
pub fn read_at_most(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    read_into(&mut bytes, open(path)?, limit)?;
    Ok(bytes)
}

/// Appends the contents of `file` to `bytes`. Fails if they are larger than `limit` bytes.
pub fn read_into(bytes: &mut Vec<u8>, file: File, limit: u64) -> io::Result<()> {
    file.take(limit.saturating_add(1)).read_to_end(bytes)?;
    if bytes.len() as u64 > limit { Err(io::ErrorKind::FileTooLarge.into()) } else { Ok(()) }
}

/// Reads a file as [`read_at_most`] does, and returns its UTF-8 text.
pub fn text_of_at_most(path: &Path, limit: u64) -> io::Result<String> {
    String::from_utf8(read_at_most(path, limit)?).map_err(|_| io::ErrorKind::InvalidData.into())
}

/// Opens the regular file at `path`. First checks its kind by a descriptor with `O_PATH`, because opening a device may have an effect.
fn open_with(path: &Path, options: &mut OpenOptions) -> io::Result<Result<File, Irregular>> {
    reopened(&nix::fcntl::open(path, OFlag::O_PATH | OFlag::O_CLOEXEC, Mode::empty())?, options)
}

/// Opens the object of the `O_PATH` descriptor `place` for use, if it is a regular file. No other object can take its place between the
/// check and the opening. If another process has a lease on the file, fails at once instead of waiting for that process.
pub(crate) fn reopened(place: &OwnedFd, options: &mut OpenOptions) -> io::Result<Result<File, Irregular>> {
    match Kind::of(&fstat(place)?) {
        Kind::File => options.custom_flags(libc::O_NONBLOCK).open(proc::open_file(place)).map(Ok),
        kind => Ok(Err(Irregular::NoFile(kind.words()))),
    }
}

/// Fails if `file` has a second name (a hard link), because its contents are then also at another place.
pub(crate) fn check_only_name(file: &File) -> io::Result<()> {
    if file.metadata()?.nlink() > 1 { Err(io::Error::other(Irregular::HardLink)) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// Asserts that `/dev/ptmx` is not opened. Opening it would create a terminal, which the test would find.
    #[test]
    fn no_device_is_ever_opened() {
        let dir = tempfile::tempdir().unwrap();
        let link = dir.path().join("link");
        std::os::unix::fs::symlink("/dev/ptmx", &link).unwrap();
        let terminals = || fs::read_dir("/dev/pts").unwrap().count();
        let before = terminals();
        let file = open(&link);
        assert!(file.is_err_and(|error| error.to_string().contains("a device")) && terminals() == before);
        let place = nix::fcntl::open(&link, OFlag::O_PATH, Mode::empty()).unwrap();
        assert_eq!(Kind::of(&fstat(&place).unwrap()), Kind::Device);
    }

    #[test]
    fn a_file_is_read_up_to_its_limit_and_only_if_it_is_one() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        fs::write(&path, "12345").unwrap();
        assert_eq!(text_of_at_most(&path, 5).unwrap(), "12345");
        assert_eq!(read_at_most(&path, 4).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        fs::write(&path, [0xff]).unwrap();
        assert_eq!(text_of_at_most(&path, 4).unwrap_err().kind(), io::ErrorKind::InvalidData);
        // Neither a device without end nor a FIFO without a writer blocks the reader.
        assert!(read_at_most(Path::new("/dev/zero"), 4).unwrap_err().to_string().contains("a device"));
        let fifo = dir.path().join("fifo");
        nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRUSR).unwrap();
        assert!(read_at_most(&fifo, 4).unwrap_err().to_string().contains("a FIFO"));
    }
}
