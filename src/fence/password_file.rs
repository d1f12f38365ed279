//! The file with a BMC's password, which has two lines while the password changes: the one that was valid, and the one that
//! will be. The BMC says which of them is valid now, so the two may change in any order.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::os::clock::Deadline;
use crate::os::ofd_lock;
use crate::os::secret::Secret;
use crate::os::{regular_file, wiped};

/// Lines beyond this are no passwords.
pub const LINES: usize = 2;
/// A first line longer than this is no password.
pub(super) const LIMIT: usize = 64 * 1024;
/// Held while a file is looked at and replaced, by whoever does that.
const LOCK: &str = "/run/tandem-password-files.lock";
/// What is done under the lock takes milliseconds.
const PATIENCE: Duration = Duration::from_secs(5);

/// Which state of which file it was, so that what was learnt of its lines is not taken for another one's. It says nothing of
/// what is in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    device: u64,
    inode: u64,
    changed: i64,
    changed_nanoseconds: i64,
}

impl Identity {
    /// Of an open file.
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

/// The passwords in `content`: its first line, and a second one that is another.
pub fn lines(content: &[u8]) -> Vec<Secret> {
    let mut found: Vec<Secret> = Vec::with_capacity(LINES);
    for line in content.split(|byte| *byte == b'\n').take(LINES) {
        let line = Secret::new(line.strip_suffix(b"\r").unwrap_or(line));
        // An empty first line is what its reader complains of.
        if found.is_empty() || (!line.is_empty() && !found.contains(&line)) {
            found.push(line);
        }
    }
    found
}

/// A file, held so that nobody else who keeps to the lock changes it meanwhile.
#[derive(Debug)]
pub struct PasswordFile {
    path: PathBuf,
    pub lines: Vec<Secret>,
    pub identity: Identity,
    owner: (u32, u32),
    _lock: Option<File>,
}

impl PasswordFile {
    /// Reads the file at `path`, to be changed; a link is followed, so that it stays one.
    pub fn hold(path: &Path) -> io::Result<Self> {
        let lock = lock(Path::new(LOCK))?;
        Ok(Self { _lock: Some(lock), ..Self::look(path)? })
    }

    /// Reads it, only to look.
    pub fn look(path: &Path) -> io::Result<Self> {
        let path = fs::canonicalize(path)?;
        let file = regular_file::open(&path)?;
        let (identity, data) = (Identity::of(&file)?, file.metadata()?);
        let content = wiped::read(file.take(LIMIT as u64), LIMIT)?;
        Ok(Self { lines: lines(&content), identity, owner: (data.uid(), data.gid()), path, _lock: None })
    }

    /// Puts a file with `lines` in its place: whoever reads it finds the old one or this one, whole. It belongs to the same
    /// owner, and nobody else reads it.
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

fn lock(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path)?;
    let end = Deadline::after(PATIENCE);
    while !ofd_lock::try_take(&file)? {
        if end.has_passed() {
            return Err(io::Error::new(ErrorKind::WouldBlock, "another command holds it"));
        }
        end.sleep(Duration::from_millis(20));
    }
    Ok(file)
}

/// `lines` with `new` as what will be valid, beside the one that is. `valid` is the one that the BMC was seen to accept; `None`
/// where two are there already and nobody knows which of them has to stay.
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
    fn a_file_is_replaced_whole_for_its_owner_alone_and_a_link_stays_one() {
        let dir = tempfile::tempdir().unwrap();
        let (real, link) = (dir.path().join("real"), dir.path().join("link"));
        fs::write(&real, "old\n").unwrap();
        fs::set_permissions(&real, fs::Permissions::from_mode(0o644)).unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        // As a command that was killed left it.
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
