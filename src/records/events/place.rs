//! The directory of the events. Its parent belongs to Pacemaker's user. So it is opened once, without following a link, and
//! everything in it is reached from that descriptor.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use nix::libc;

use crate::os::{appended, proc};

/// The mode of the directory of the events. Alert agents write there as Pacemaker's user. The user's group may only read, because a member
/// of the group could otherwise forge an event.
const MODE: u32 = 0o750;
pub(super) const FILE_MODE: u32 = 0o640;
/// The mode of the lock file. A user that could read the file could lock it, and so stop all writers.
pub(super) const LOCK_MODE: u32 = 0o600;
const OTHERS_WRITE: u32 = 0o022;

pub(super) struct Place {
    directory: File,
    /// The user and the group that own the directory and its files.
    owner: (u32, u32),
}

impl Place {
    /// Opens the directory of the events, and creates it if it is missing. Pacemaker's user owns it, like the directory of the CIB.
    pub(super) fn made(path: &Path) -> io::Result<Self> {
        let above = open(path.parent().unwrap_or(Path::new("/")), libc::O_PATH)?;
        let within = proc::open_file(&above);
        let above = fs::metadata(within.join("cib")).or_else(|_| above.metadata())?;
        let name = within.join(path.file_name().ok_or(ErrorKind::InvalidInput)?);
        let directory = match open(&name, libc::O_NOFOLLOW) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                DirBuilder::new().mode(MODE).create(&name).or_else(or_there)?;
                open(&name, libc::O_NOFOLLOW)?
            }
            opened => opened?,
        };
        let mut metadata = directory.metadata()?;
        let is_own = metadata.uid() == nix::unistd::geteuid().as_raw();
        let is_new = is_own && fs::read_dir(proc::open_file(&directory))?.next().is_none();
        if is_new && metadata.uid() != above.uid() {
            fchown(&directory, Some(above.uid()), Some(above.gid()))?;
            metadata = directory.metadata()?;
        }
        if !is_own && metadata.uid() != above.uid() && metadata.uid() != 0 {
            return Err(io::Error::other("it belongs to another user"));
        }
        if is_new || metadata.mode() & OTHERS_WRITE != 0 {
            narrowed(&directory, MODE)
                .or_else(|error| if metadata.mode() & 0o002 == 0 { Ok(()) } else { Err(error) })?;
        }
        Ok(Self { directory, owner: (metadata.uid(), metadata.gid()) })
    }

    /// Returns a path to the file `name` that leads through the open directory. It is valid even if the directory was renamed.
    pub(super) fn at(&self, name: &Path) -> PathBuf {
        proc::open_file(&self.directory).join(name.file_name().unwrap_or_default())
    }

    /// Opens a file of the directory for appending. A new file gets the owner and the group of the directory before anything is written to
    /// it.
    pub(super) fn open(&self, name: &Path, mode: u32) -> io::Result<File> {
        let opened = appended::open(&self.at(name), mode)?;
        let metadata = opened.file.metadata()?;
        if opened.is_new && metadata.uid() != self.owner.0 {
            fchown(&opened.file, Some(self.owner.0), Some(self.owner.1))?;
        }
        if metadata.mode() & OTHERS_WRITE != 0 {
            // An older release has created the file. A user that may not change the mode may still append.
            let _ = narrowed(&opened.file, mode);
        }
        Ok(opened.file)
    }
}

fn open(path: &Path, flags: i32) -> io::Result<File> {
    OpenOptions::new().read(true).custom_flags(libc::O_DIRECTORY | flags).open(path)
}

fn or_there(error: io::Error) -> io::Result<()> {
    if error.kind() == ErrorKind::AlreadyExists { Ok(()) } else { Err(error) }
}

fn narrowed(file: &File, mode: u32) -> io::Result<()> {
    file.set_permissions(Permissions::from_mode(mode))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().mode() & 0o7777
    }

    #[test]
    fn no_member_of_the_group_writes_in_it_and_what_an_older_release_made_is_narrowed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("tandem");
        for _ in 0..2 {
            let file = Path::new("events.jsonl");
            Place::made(&path).unwrap().open(file, FILE_MODE).unwrap();
            assert_eq!((mode(&path), mode(&path.join(file))), (0o750, 0o640));
            fs::set_permissions(&path, Permissions::from_mode(0o777)).unwrap();
            fs::set_permissions(path.join(file), Permissions::from_mode(0o666)).unwrap();
        }
    }

    #[test]
    fn nothing_is_made_behind_a_link() {
        let dir = tempfile::tempdir().unwrap();
        let elsewhere = dir.path().join("elsewhere");
        fs::create_dir(&elsewhere).unwrap();
        symlink(&elsewhere, dir.path().join("tandem")).unwrap();
        assert!(Place::made(&dir.path().join("tandem")).is_err());
        symlink(elsewhere.join("target"), elsewhere.join("events.lock")).unwrap();
        assert!(Place::made(&elsewhere).unwrap().open(Path::new("events.lock"), LOCK_MODE).is_err());
        assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 1);
    }

    /// Asserts that no file is created in a directory that replaces the opened one at its path. Pacemaker's user can replace the directory
    /// at any moment.
    #[test]
    fn another_directory_in_its_place_gets_nothing_of_what_was_begun() {
        let dir = tempfile::tempdir().unwrap();
        let (path, moved) = (dir.path().join("tandem"), dir.path().join("moved"));
        let place = Place::made(&path).unwrap();
        fs::rename(&path, &moved).unwrap();
        fs::create_dir(&path).unwrap();
        place.open(Path::new("events.jsonl"), FILE_MODE).unwrap();
        assert!(moved.join("events.jsonl").exists() && !path.join("events.jsonl").exists());
    }
}
