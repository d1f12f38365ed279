//! Opens files for appending: logs, events, records. Other programs may write in their directories, so each file is checked to be
//! a regular one before it is opened. A FIFO would block its writer, and a device may act when it is opened.

use std::fs::{File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

use nix::libc;

use super::regular_file;

/// The number of attempts to open a file that other processes create and delete meanwhile.
const TRIES: usize = 3;

/// A file that is open for reading and appending.
pub(crate) struct Appended {
    pub file: File,
    /// True if [`open`] has created the file.
    pub is_new: bool,
}

/// Opens the file at `path` for reading and appending. Creates a missing file with `mode`, whatever the umask is. Fails if `path` is a
/// symbolic link.
pub(crate) fn open(path: &Path, mode: u32) -> io::Result<Appended> {
    for _ in 0..TRIES {
        // O_PATH has no effect on the file. It fixes the file, so that the one that was checked is the one that is opened.
        let place = OpenOptions::new().read(true).custom_flags(libc::O_PATH | libc::O_NOFOLLOW).open(path);
        match place {
            Ok(place) => {
                let options = &mut OpenOptions::new();
                let opened = regular_file::reopened(&place.into(), options.read(true).append(true))?;
                return opened.map(|file| Appended { file, is_new: false }).map_err(io::Error::other);
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        let mut options = OpenOptions::new();
        options.read(true).append(true).create_new(true).mode(mode).custom_flags(libc::O_NOFOLLOW);
        match options.open(path) {
            Ok(file) => {
                file.set_permissions(Permissions::from_mode(mode))?;
                return Ok(Appended { file, is_new: true });
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write as _;
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn a_file_is_made_once_and_grows() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        for is_new in [true, false] {
            let mut opened = open(&path, 0o640).unwrap();
            assert_eq!(opened.is_new, is_new);
            opened.file.write_all(b"line\n").unwrap();
        }
        assert_eq!(fs::read_to_string(&path).unwrap(), "line\nline\n");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
    }

    #[test]
    fn what_is_no_regular_file_is_named_and_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::write(at("target"), "").unwrap();
        symlink(at("target"), at("link")).unwrap();
        symlink(at("nowhere"), at("dangling")).unwrap();
        symlink("/dev/ptmx", at("link-to-a-device")).unwrap();
        nix::unistd::mkfifo(&at("fifo"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        let _socket = UnixListener::bind(at("socket")).unwrap();
        for (name, what) in [
            ("link", "a link"),
            ("dangling", "a link"),
            ("link-to-a-device", "a link"),
            ("fifo", "a FIFO"),
            ("socket", "a socket"),
            ("", "a directory"),
            ("/dev/null", "a device"),
        ] {
            let error = open(&at(name), 0o600).err().unwrap().to_string();
            assert_eq!(error, format!("it is {what} where a regular file belongs: move it away"), "{name}");
        }
        assert_eq!(fs::read_to_string(at("target")).unwrap(), "");
        assert!(!at("nowhere").exists());
    }
}
