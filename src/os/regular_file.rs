//! Opening files that must be regular ones. A FIFO in the place of one would make its reader wait for ever, and a device
//! would have no end.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

use nix::libc;

/// What is there instead of a regular file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it is {0} where a regular file belongs: move it away")]
pub struct Irregular(&'static str);

/// Opens a file to be read; what is no regular file is an error that says so.
pub fn open(path: &Path) -> io::Result<File> {
    or_irregular(path)?.map_err(io::Error::other)
}

/// As [`open`], to be read and changed.
pub fn open_to_change(path: &Path) -> io::Result<File> {
    open_with(path, OpenOptions::new().read(true).write(true))?.map_err(io::Error::other)
}

/// As [`open`], for who has another answer than failing to what is no regular file.
pub fn or_irregular(path: &Path) -> io::Result<Result<File, Irregular>> {
    open_with(path, OpenOptions::new().read(true))
}

/// As [`fs::read`].
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// As [`fs::read`], of a file that is not to be larger than `limit` bytes.
pub fn read_at_most(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    read_into(&mut bytes, open(path)?, limit)?;
    Ok(bytes)
}

/// All of a file that is not to be larger than `limit` bytes, into a buffer of the caller's.
pub fn read_into(bytes: &mut Vec<u8>, file: File, limit: u64) -> io::Result<()> {
    file.take(limit.saturating_add(1)).read_to_end(bytes)?;
    if bytes.len() as u64 > limit { Err(io::ErrorKind::FileTooLarge.into()) } else { Ok(()) }
}

/// As [`read_at_most`], of a text.
pub fn text_of_at_most(path: &Path, limit: u64) -> io::Result<String> {
    String::from_utf8(read_at_most(path, limit)?).map_err(|_| io::ErrorKind::InvalidData.into())
}

/// The type is that of what was opened, so that nothing can be put in its place in between; and opening does not wait.
fn open_with(path: &Path, options: &mut OpenOptions) -> io::Result<Result<File, Irregular>> {
    match options.custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path) {
        Ok(file) => Ok(irregular(&file.metadata()?).map_or(Ok(file), Err)),
        // What cannot be opened at all, such as a socket or a directory to be changed, has a type all the same.
        Err(error) => {
            let what = fs::metadata(path).ok().as_ref().and_then(irregular);
            what.map_or(Err(error), |what| Ok(Err(what)))
        }
    }
}

fn irregular(metadata: &fs::Metadata) -> Option<Irregular> {
    let kind = metadata.file_type();
    let what = match () {
        () if kind.is_file() => return None,
        () if kind.is_dir() => "a directory",
        () if kind.is_fifo() => "a FIFO",
        () if kind.is_socket() => "a socket",
        () => "a device",
    };
    Some(Irregular(what))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_up_to_its_limit_and_only_if_it_is_one() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        fs::write(&path, "12345").unwrap();
        assert_eq!(text_of_at_most(&path, 5).unwrap(), "12345");
        assert_eq!(read_at_most(&path, 4).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        fs::write(&path, [0xff]).unwrap();
        assert_eq!(text_of_at_most(&path, 4).unwrap_err().kind(), io::ErrorKind::InvalidData);
        // Neither a device without end nor a FIFO that nobody writes to keeps the reader.
        assert!(read_at_most(Path::new("/dev/zero"), 4).unwrap_err().to_string().contains("a device"));
        let fifo = dir.path().join("fifo");
        nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRUSR).unwrap();
        assert!(read_at_most(&fifo, 4).unwrap_err().to_string().contains("a FIFO"));
    }
}
