//! The file with a BMC's password. While the password changes it has two lines: the old one and the new one. The BMC decides
//! which of them is valid, so that the file and the BMC may change in any order.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use serde::{Deserialize, Serialize};

use crate::os::clock::Deadline;
use crate::os::secret::Secret;
use crate::os::{regular_file, wiped};

/// The greatest number of passwords in a password file. Each has a line of its own.
pub const LINES: usize = 2;
/// The part of a password file that is read, in bytes. It is longer than any password.
pub(super) const LIMIT: usize = 64 * 1024;
/// The time to wait for the lock on a password file. A program holds this lock for milliseconds only.
const PATIENCE: Duration = Duration::from_secs(5);

/// The identity of a file in its present state. A changed file has another identity, so results about its old lines are not
/// applied to its new ones. The identity shows nothing of the file's contents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    device: u64,
    inode: u64,
    changed: i64,
    changed_nanoseconds: i64,
}

impl Identity {
    /// Returns the identity of an open file in its present state.
    pub fn of(file: &File) -> io::Result<Self> {
        let data = file.metadata()?;
        Ok(Self {
            device: data.dev(),
            inode: data.ino(),
            changed: data.mtime(),
            changed_nanoseconds: data.mtime_nsec(),
        })
    }
}

/// Returns the passwords in `content`: the first line, and the second one if it differs and is not empty.
pub fn lines(content: &[u8]) -> Vec<Secret> {
    let mut found: Vec<Secret> = Vec::with_capacity(LINES);
    for line in content.split(|byte| *byte == b'\n').take(LINES) {
        let line = Secret::new(line.strip_suffix(b"\r").unwrap_or(line));
        // An empty first line is kept, because the caller reports it.
        if found.is_empty() || (!line.is_empty() && !found.contains(&line)) {
            found.push(line);
        }
    }
    found
}

/// The contents of a password file. If it was made by [`Self::hold`], the file is also locked against changes by programs that
/// use the same lock. The lock is on the directory, because a change replaces the file itself.
#[derive(Debug)]
pub struct PasswordFile {
    path: PathBuf,
    pub lines: Vec<Secret>,
    pub identity: Identity,
    owner: (u32, u32),
    _lock: Option<Flock<File>>,
}

impl PasswordFile {
    /// Locks the file at `path` for a change, and reads it. If `path` is a symbolic link, the file is the link's target, so that
    /// a change keeps the link.
    pub fn hold(path: &Path) -> io::Result<Self> {
        let path = fs::canonicalize(path)?;
        let lock = lock(path.parent().unwrap_or(Path::new("/")), PATIENCE)?;
        Ok(Self { _lock: Some(lock), ..Self::look(&path)? })
    }

    /// Reads the file at `path` without a lock, for a caller that does not change it.
    pub fn look(path: &Path) -> io::Result<Self> {
        let path = fs::canonicalize(path)?;
        let file = regular_file::open(&path)?;
        let (identity, data) = (Identity::of(&file)?, file.metadata()?);
        let content = wiped::read(file.take(LIMIT as u64), LIMIT)?;
        Ok(Self { lines: lines(&content), identity, owner: (data.uid(), data.gid()), path, _lock: None })
    }

    /// Replaces the password file by one with `lines`. A program that reads the file at the same time gets either all old or all
    /// new lines. The new file has the same owner, and no other user can read it.
    pub fn replace(&mut self, lines: Vec<Secret>) -> io::Result<()> {
        let mut name = self.path.file_name().unwrap_or_default().to_owned();
        name.push(".new");
        let aside = self.path.with_file_name(name);
        match fs::remove_file(&aside) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let written = self.write(&aside, &lines);
        if let Err(error) = written {
            let _ = fs::remove_file(&aside);
            return Err(error);
        }
        self.identity = Identity::of(&File::open(&self.path)?)?;
        self.lines = lines;
        Ok(())
    }

    fn write(&self, aside: &Path, lines: &[Secret]) -> io::Result<()> {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(aside)?;
        let (uid, gid) = self.owner;
        std::os::unix::fs::fchown(&file, Some(uid), Some(gid))?;
        for line in lines {
            file.write_all(line.reveal())?;
            file.write_all(b"\n")?;
        }
        file.sync_all()?;
        fs::rename(aside, &self.path)?;
        File::open(self.path.parent().unwrap_or(Path::new("/")))?.sync_all()
    }
}

fn lock(directory: &Path, patience: Duration) -> io::Result<Flock<File>> {
    let end = Deadline::after(patience);
    let mut directory = File::open(directory)?;
    loop {
        directory = match Flock::lock(directory, FlockArg::LockExclusiveNonblock) {
            Ok(lock) => return Ok(lock),
            Err((_, error)) if error != Errno::EWOULDBLOCK => return Err(error.into()),
            Err(_) if end.has_passed() => {
                return Err(io::Error::new(ErrorKind::WouldBlock, "another command holds it"));
            }
            Err((unlocked, _)) => unlocked,
        };
        end.sleep(Duration::from_millis(20));
    }
}

/// Returns the lines that a password file has before the password is changed at the BMC: the valid line of `lines`, and then the
/// future password `new`. `valid` is the index of the line that the BMC has accepted. Returns `None` if there are two lines and
/// it is unknown which one is valid.
pub fn staged(lines: &[Secret], valid: Option<usize>, new: &Secret) -> Option<Vec<Secret>> {
    let stays = match lines {
        _ if lines.contains(new) => return Some(lines.to_vec()),
        [] => return Some(vec![new.clone()]),
        [only] => only,
        _ => lines.get(valid?)?,
    };
    Some(vec![stays.clone(), new.clone()])
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn secrets(words: &[&str]) -> Vec<Secret> {
        words.iter().map(|word| Secret::new(*word)).collect()
    }

    #[test]
    fn a_file_has_one_password_or_two_that_differ() {
        for (content, expected) in [
            ("a\n", &["a"][..]),
            ("a", &["a"]),
            ("a b \r\nc\r\n", &["a b ", "c"]),
            ("a\nb\nc\n", &["a", "b"]),
            ("a\na\n", &["a"]),
            ("a\n\nb\n", &["a"]),
            ("", &[""]),
            ("\nb\n", &["", "b"]),
        ] {
            assert_eq!(lines(content.as_bytes()), secrets(expected), "{content:?}");
        }
        assert_eq!(lines(b"\xff\n")[0].reveal(), b"\xff");
    }

    #[test]
    fn what_is_valid_stays_beside_what_will_be() {
        let (new, both) = (Secret::new("c"), secrets(&["a", "b"]));
        assert_eq!(staged(&both[..1], None, &new), Some(secrets(&["a", "c"])));
        assert_eq!(staged(&both, Some(1), &new), Some(secrets(&["b", "c"])));
        assert_eq!(staged(&both, None, &new), None, "one of them is valid, and nobody knows which");
        assert_eq!(staged(&both, None, &both[1]), Some(both.clone()), "typed again");
    }

    #[test]
    fn a_directory_has_one_holder_and_another_directory_has_its_own() {
        let dirs = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let [file, other] = dirs.each_ref().map(|dir| dir.path().join("password"));
        fs::write(&file, "a\n").unwrap();
        fs::write(&other, "a\n").unwrap();
        let held = PasswordFile::hold(&file).unwrap();
        let refused = lock(dirs[0].path(), Duration::ZERO).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::WouldBlock);
        PasswordFile::hold(&other).unwrap();
        drop(held);
        lock(dirs[0].path(), Duration::ZERO).unwrap();
    }

    #[test]
    fn a_file_is_replaced_whole_for_its_owner_alone_and_a_link_stays_one() {
        let dir = tempfile::tempdir().unwrap();
        let (real, link) = (dir.path().join("real"), dir.path().join("link"));
        fs::write(&real, "old\n").unwrap();
        fs::set_permissions(&real, fs::Permissions::from_mode(0o644)).unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        // A command that was killed leaves such a file.
        fs::write(dir.path().join("real.new"), "half").unwrap();
        let mut file = PasswordFile::look(&link).unwrap();
        let before = file.identity;
        file.replace(secrets(&["old", "new"])).unwrap();
        assert_eq!(fs::read_to_string(&real).unwrap(), "old\nnew\n");
        assert_eq!(fs::metadata(&real).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink() && !dir.path().join("real.new").exists());
        let after = PasswordFile::look(&link).unwrap();
        assert_eq!((after.identity, &after.lines), (file.identity, &secrets(&["old", "new"])));
        assert_ne!(after.identity, before, "what was learnt of the old one's lines is void");
        assert!(!format!("{after:?}").contains("old\""));
    }
}
