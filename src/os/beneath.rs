//! A directory that another program may write to, such as the data dir, which etcd's container writes. The agent opens it once.
//! Everything in it is opened relative to that descriptor, component by component, without following links.
//!
//! Each file is first opened with `O_PATH`, which touches no device and waits for no FIFO. It is opened for use only if it is a
//! regular file. Every kernel supports that, while `openat2` needs Linux 5.6.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, openat, readlinkat, renameat};
use nix::sys::stat::{FileStat, Mode, fchmod, fstat, fstatat, mkdirat};
use nix::unistd::{UnlinkatFlags, linkat, symlinkat, unlinkat};

use crate::os::file_kind::Kind;
use crate::os::proc;
use crate::os::regular_file::{self, Irregular};

/// An open directory to which another program may write. No symbolic link is followed in it.
#[derive(Debug)]
pub struct Dir {
    /// The descriptor of the directory, opened with `O_PATH`.
    descriptor: OwnedFd,
    /// The path by which the directory was opened, for messages.
    path: PathBuf,
}

impl Dir {
    /// Opens the directory at `path`. Follows a symbolic link in that path, because the parents belong to root and only root can have
    /// made the link.
    pub fn open(path: &Path) -> io::Result<Self> {
        let descriptor = nix::fcntl::open(path, handle(), Mode::empty())?;
        Self::of(descriptor, path.to_owned())
    }

    /// Returns a second handle of the same open directory.
    pub fn try_clone(&self) -> io::Result<Self> {
        Ok(Self { descriptor: self.descriptor.try_clone()?, path: self.path.clone() })
    }

    /// Opens the directory at the path `place` in this directory.
    pub fn below(&self, place: impl AsRef<Path>) -> io::Result<Self> {
        let place = place.as_ref();
        Self::of(self.find(place)?, self.path.join(place))
    }

    /// Opens the directory at the path `place` in this directory. Creates each missing directory of the path, with access for root only.
    pub fn make_below(&self, place: impl AsRef<Path>) -> io::Result<Self> {
        let mut made = self.try_clone()?;
        for name in place.as_ref() {
            match mkdirat(&made.descriptor, checked(name)?, Mode::S_IRWXU) {
                Ok(()) | Err(Errno::EEXIST) => made = made.below(name)?,
                Err(errno) => return Err(errno.into()),
            }
        }
        Ok(made)
    }

    fn of(descriptor: OwnedFd, path: PathBuf) -> io::Result<Self> {
        let kind = Kind::of(&fstat(&descriptor)?);
        if kind == Kind::Directory { Ok(Self { descriptor, path }) } else { Err(Irregular::no_directory(kind)) }
    }

    /// Returns the directory's path, for messages.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the sorted names of the directory's entries.
    pub fn names(&self) -> io::Result<Vec<OsString>> {
        let mut listing = nix::dir::Dir::openat(&self.descriptor, ".", reading() | OFlag::O_DIRECTORY, Mode::empty())?;
        let mut names = Vec::new();
        for entry in listing.iter() {
            let entry = entry?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name != "." && name != ".." {
                names.push(name.to_owned());
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    /// Opens the file at the path `place` in this directory for reading. The inner error means that the object there is no regular file.
    pub fn or_irregular(&self, place: impl AsRef<Path>) -> io::Result<Result<File, Irregular>> {
        self.reopened(place.as_ref(), OpenOptions::new().read(true))
    }

    /// Opens the regular file at the path `place` in this directory for reading.
    pub fn file(&self, place: impl AsRef<Path>) -> io::Result<File> {
        self.or_irregular(place)?.map_err(io::Error::other)
    }

    /// Opens the regular file at the path `place` in this directory for reading and writing.
    pub fn file_to_change(&self, place: impl AsRef<Path>) -> io::Result<File> {
        self.reopened(place.as_ref(), OpenOptions::new().read(true).write(true))?.map_err(io::Error::other)
    }

    /// Reads a file of at most `limit` bytes that this program has written. Fails if the file has a second name (a hard link).
    pub fn own_file(&self, place: impl AsRef<Path>, limit: u64) -> io::Result<Vec<u8>> {
        let file = self.file(place)?;
        regular_file::check_only_name(&file)?;
        let mut bytes = Vec::new();
        regular_file::read_into(&mut bytes, file, limit)?;
        Ok(bytes)
    }

    /// Reads a file as [`Dir::own_file`] does, and returns its UTF-8 text.
    pub fn own_text(&self, place: impl AsRef<Path>, limit: u64) -> io::Result<String> {
        String::from_utf8(self.own_file(place, limit)?).map_err(|_| ErrorKind::InvalidData.into())
    }

    fn reopened(&self, place: &Path, options: &mut OpenOptions) -> io::Result<Result<File, Irregular>> {
        regular_file::reopened(&self.find(place)?, options)
    }

    /// Returns the kernel's data about the object at the path `place` in this directory. Does not follow a symbolic link there.
    pub fn stat(&self, place: impl AsRef<Path>) -> io::Result<FileStat> {
        Ok(fstat(self.find(place.as_ref())?)?)
    }

    /// Creates the file `name` in this directory, with access to the file for root only. Fails if the name exists.
    pub fn create_new(&self, name: impl AsRef<OsStr>) -> io::Result<File> {
        let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let own = Mode::S_IRUSR | Mode::S_IWUSR;
        Ok(openat(&self.descriptor, checked(name.as_ref())?, flags, own)?.into())
    }

    /// Replaces the file `name` in this directory with `text`, so that the new contents survive a power cut. Writes and syncs a new file,
    /// renames it, and syncs the directory.
    pub fn replace(&self, name: impl AsRef<OsStr>, text: &[u8], mode: u32) -> io::Result<()> {
        self.replace_with(name, mode, |file| file.write_all(text))
    }

    /// Replaces a file as [`Dir::replace`] does. The function `write` writes the contents.
    pub fn replace_with(
        &self,
        name: impl AsRef<OsStr>,
        mode: u32,
        write: impl FnOnce(&mut File) -> io::Result<()>,
    ) -> io::Result<()> {
        let name = name.as_ref();
        let aside = Path::new(name).with_extension("new");
        self.remove_all(&aside)?;
        let mut file = self.create_new(&aside)?;
        write(&mut file)?;
        fchmod(&file, Mode::from_bits_truncate(mode))?;
        #[cfg(feature = "lab-faults")]
        if crate::os::lab_faults::is_on(crate::os::lab_faults::SKIP_NOTE_SYNC) {
            return self.rename(&aside, name);
        }
        file.sync_all()?;
        self.rename(&aside, name)?;
        self.sync()
    }

    /// Renames `from` to `to`. Both are names in this directory.
    pub fn rename(&self, from: impl AsRef<OsStr>, to: impl AsRef<OsStr>) -> io::Result<()> {
        let (from, to) = (checked(from.as_ref())?, checked(to.as_ref())?);
        Ok(renameat(&self.descriptor, from, &self.descriptor, to)?)
    }

    /// Replaces the entry `name` in this directory with a symbolic link to `target`.
    pub fn replace_with_link(&self, name: impl AsRef<OsStr>, target: &Path) -> io::Result<()> {
        let name = checked(name.as_ref())?;
        if readlinkat(&self.descriptor, name).is_ok_and(|found| found == target) {
            return Ok(());
        }
        let aside = Path::new(name).with_extension("new");
        self.remove_all(&aside)?;
        symlinkat(target, &self.descriptor, checked(aside.as_os_str())?)?;
        // A rename replaces everything but a directory.
        if self.rename(&aside, name).is_err() {
            self.remove_all(name)?;
            self.rename(&aside, name)?;
        }
        self.sync()
    }

    /// Gives the open `file` the additional name `name` in this directory (a hard link).
    pub fn link(&self, file: &File, name: impl AsRef<OsStr>) -> io::Result<()> {
        let open = proc::open_file(file);
        let name = checked(name.as_ref())?;
        Ok(linkat(nix::fcntl::AT_FDCWD, &open, &self.descriptor, name, AtFlags::AT_SYMLINK_FOLLOW)?)
    }

    /// Deletes the file or the symbolic link `name` in this directory. A missing entry is no error.
    pub fn remove(&self, name: impl AsRef<OsStr>) -> io::Result<()> {
        match unlinkat(&self.descriptor, checked(name.as_ref())?, UnlinkatFlags::NoRemoveDir) {
            Ok(()) | Err(Errno::ENOENT) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Deletes the entry `name` in this directory. Deletes a directory with its contents.
    pub fn remove_all(&self, name: impl AsRef<OsStr>) -> io::Result<()> {
        let name = checked(name.as_ref())?;
        match fstatat(&self.descriptor, name, AtFlags::AT_SYMLINK_NOFOLLOW) {
            // This follows no link, neither at the end of this path nor below it.
            Ok(found) if Kind::of(&found) == Kind::Directory => {
                fs::remove_dir_all(proc::open_file(&self.descriptor).join(name))
            }
            Ok(_) => self.remove(name),
            Err(Errno::ENOENT) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Syncs this directory to disk. Until this is done, a power cut may undo a rename or the creation of a file in it.
    pub fn sync(&self) -> io::Result<()> {
        File::from(openat(&self.descriptor, ".", reading(), Mode::empty())?).sync_all()
    }

    /// Returns an `O_PATH` descriptor of the object at the path `place` in this directory. Such a descriptor refers to a device or a FIFO
    /// without opening it for use.
    fn find(&self, place: &Path) -> io::Result<OwnedFd> {
        let mut found = self.descriptor.try_clone()?;
        for component in place.components() {
            let Component::Normal(name) = component else { return Err(ErrorKind::InvalidInput.into()) };
            found = match openat(&found, name, handle() | OFlag::O_NOFOLLOW, Mode::empty()) {
                Err(Errno::ENOTDIR) => return Err(Irregular::no_directory(Kind::of(&fstat(&found)?))),
                found => found?,
            };
        }
        Ok(found)
    }
}

/// Returns the flags that open an object only as a reference (`O_PATH`). Such an opening has no effect on a device or a FIFO.
fn handle() -> OFlag {
    OFlag::O_PATH | OFlag::O_CLOEXEC
}

fn reading() -> OFlag {
    OFlag::O_RDONLY | OFlag::O_CLOEXEC
}

/// Returns `name` if it is a single name in a directory. Fails if it is a path, or `.` or `..`.
fn checked(name: &OsStr) -> io::Result<&OsStr> {
    let mut components = Path::new(name).components();
    match (components.next(), components.next()) {
        (Some(Component::Normal(only)), None) => Ok(only),
        _ => Err(ErrorKind::InvalidInput.into()),
    }
}

#[cfg(test)]
#[path = "beneath/tests.rs"]
mod tests;
