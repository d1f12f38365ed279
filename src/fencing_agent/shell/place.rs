//! The files of the agent: those that outlive a restart, and those that show its state.

use std::fs::DirBuilder;
use std::io::{self, ErrorKind};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::fencing_agent::config::Members;
use crate::os::beneath::Dir;
use crate::os::{clock, proc};

/// Default directory of the files that a running agent needs until the next boot.
pub(crate) const RUN_DIR: &str = "/run/fencing-agent";
/// Default directory of the files that a boot must not delete.
pub(crate) const STATE_DIR: &str = "/var/lib/tandem/fencing-agent";

const NUMBER: &str = "number";
const UNFED: &str = "unfed.json";
const MEMBERS: &str = "members.json";
const ARMED: &str = "armed";
/// Name of the file from which `fencing-agent status` reads the agent's state.
pub(crate) const STATUS: &str = "status.json";
const LIMIT: u64 = 1024 * 1024;

/// Creates a directory and its parents. Only root may access them.
pub(crate) fn make(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// The files that must survive a boot, with their directory.
#[derive(Clone, Debug)]
pub(crate) struct Kept {
    dir: PathBuf,
}

/// The reason why an agent did not feed the watchdog, as it is written to disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Unfed {
    boot: String,
    /// Time of the write as text, for the log.
    at: String,
    reason: String,
}

impl Kept {
    pub(crate) fn in_dir(dir: &Path) -> Self {
        Self { dir: dir.to_owned() }
    }

    fn open(&self) -> io::Result<Dir> {
        Dir::open(&self.dir)
    }

    /// Returns the number of this start, and writes it to disk. It is higher than the number of each earlier start. This also holds if the
    /// file was lost, because a number is never below the wall clock's seconds since 1970.
    pub(crate) fn take_number(&self) -> io::Result<u64> {
        let dir = self.open()?;
        let last: u64 = match dir.own_text(NUMBER, LIMIT) {
            Ok(text) => text.trim().parse().unwrap_or(0),
            Err(error) if error.kind() == ErrorKind::NotFound => 0,
            Err(error) => return Err(error),
        };
        let number = clock::wall_seconds().max(last.saturating_add(1));
        // The number is on disk before it is used, because a number that is used twice would reuse a key of seals.
        dir.replace(NUMBER, format!("{number}\n").as_bytes(), 0o600)?;
        Ok(number)
    }

    /// Writes the reason why the watchdog is not fed. `None` removes the file.
    pub(crate) fn remember_unfed(&self, reason: Option<&str>) -> io::Result<()> {
        let dir = self.open()?;
        let Some(reason) = reason else {
            return match dir.remove(UNFED) {
                Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
                removed => removed,
            };
        };
        let unfed = Unfed { boot: proc::boot_id(), at: clock::utc_stamp(), reason: reason.to_owned() };
        dir.replace(UNFED, &serde_json::to_vec(&unfed)?, 0o600)
    }

    /// Returns the reason why the watchdog was not fed at the end of an earlier boot, and removes the file. Returns `None` if there is no
    /// reason.
    pub(crate) fn take_unfed(&self) -> Option<String> {
        let dir = self.open().ok()?;
        let unfed: Unfed = serde_json::from_slice(&dir.own_file(UNFED, LIMIT).ok()?).ok()?;
        if unfed.boot == proc::boot_id() {
            return None;
        }
        let _ = dir.remove(UNFED);
        Some(format!("{} ({})", unfed.reason, unfed.at))
    }

    /// Writes the list of members to disk, for a later start that cannot read its own list.
    pub(crate) fn keep_members(&self, members: &Members) -> io::Result<()> {
        self.open()?.replace(MEMBERS, &serde_json::to_vec(members)?, 0o600)
    }

    /// Returns the list of members that was last written to disk; `None` if there is none.
    pub(crate) fn members(&self) -> Option<Members> {
        let bytes = self.open().ok()?.own_file(MEMBERS, LIMIT).ok()?;
        serde_json::from_slice(&bytes).ok()
    }
}

/// A file that exists while an agent has the watchdog open and not disarmed. The file remains if that agent is killed. A boot deletes it.
#[derive(Clone, Debug)]
pub(crate) struct Armed {
    dir: PathBuf,
}

impl Armed {
    pub(crate) fn in_dir(dir: &Path) -> Self {
        Self { dir: dir.to_owned() }
    }

    /// Returns whether the watchdog has the magic close, if an earlier agent has left it running; else `None`.
    pub(crate) fn read(&self) -> Option<bool> {
        let text = Dir::open(&self.dir).and_then(|dir| dir.own_text(ARMED, LIMIT)).ok()?;
        Some(text.trim() == "magic close")
    }

    pub(crate) fn note(&self, has_magic_close: bool) {
        let text = if has_magic_close { "magic close\n" } else { "no magic close\n" };
        let written = Dir::open(&self.dir).and_then(|dir| dir.replace(ARMED, text.as_bytes(), 0o600));
        if let Err(error) = written {
            log::warn!("{} cannot be written: {error}", self.dir.join(ARMED).display());
        }
    }

    pub(crate) fn forget(&self) {
        let _ = Dir::open(&self.dir).and_then(|dir| dir.remove(ARMED));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_rises_with_each_start_and_without_its_file() {
        let dir = tempfile::tempdir().unwrap();
        let kept = Kept::in_dir(dir.path());
        let first = kept.take_number().unwrap();
        assert!(first >= clock::wall_seconds() - 60);
        assert!(kept.take_number().unwrap() > first);
        std::fs::write(dir.path().join(NUMBER), (u64::from(u32::MAX) * 4).to_string()).unwrap();
        assert_eq!(kept.take_number().unwrap(), u64::from(u32::MAX) * 4 + 1);
        assert!(Kept::in_dir(&dir.path().join("none")).take_number().is_err());
    }

    #[test]
    fn a_reason_is_taken_once_and_by_another_boot() {
        let dir = tempfile::tempdir().unwrap();
        let kept = Kept::in_dir(dir.path());
        kept.remember_unfed(None).unwrap();
        kept.remember_unfed(Some("quorum lost")).unwrap();
        assert_eq!(kept.take_unfed(), None, "this boot has not ended");
        let file = dir.path().join(UNFED);
        let text = std::fs::read_to_string(&file).unwrap().replace(&proc::boot_id(), "another");
        std::fs::write(&file, text).unwrap();
        assert!(kept.take_unfed().unwrap().starts_with("quorum lost ("));
        assert_eq!(kept.take_unfed(), None);
    }

    #[test]
    fn the_list_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        let kept = Kept::in_dir(dir.path());
        assert_eq!(kept.members(), None);
        let members = Members::from([("a".to_owned(), vec!["192.0.2.1".parse().unwrap()])]);
        kept.keep_members(&members).unwrap();
        assert_eq!(kept.members(), Some(members));
    }
}
