//! The memory of the last successful login at a BMC, for the next actions. It has the line of a password file, and whether basic
//! authentication or a session worked.
//!
//! Without it, each monitor would be refused once while the first line is no longer valid. Many BMCs count refusals over a
//! period, whatever they accepted in between. The memory contains no part of a password, only the identity of the file and its
//! state. A program that may read the memory may also read that file.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::password_file::Identity;
use crate::adapters::https::address::Address;
use crate::adapters::redfish::service::{Tried, Way};
use crate::os::clock;
use crate::records::state_file;

/// The directory of the files that store the results of logins. A reboot empties it, so no file is older than this boot.
const DIR: &str = "/run";

/// The result of an action's logins at one BMC. The agent stores it for the next actions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Memory {
    pub(super) way: Option<Way>,
    /// The identity of the password file; `None` if the file had only one line.
    pub(super) file: Option<Identity>,
    /// The line of the password file to try first, counted from 0; `None` if the BMC refused both lines.
    pub(super) line: Option<usize>,
    /// True if the BMC accepted `line`. False if the BMC has neither accepted nor refused it, or if `line` is `None`.
    pub(super) accepted: bool,
    /// The time of the logins in seconds since 1970.
    pub(super) at: u64,
}

/// A file in `/run` with the results of the last logins at one BMC.
#[derive(Clone, Debug)]
pub(super) struct Remembered {
    path: PathBuf,
    pub(super) memory: Memory,
}

impl Remembered {
    /// Reads the file with the results of the last logins at the BMC at `address`. A missing or unreadable file counts as empty.
    pub(super) fn of(address: &Address) -> Self {
        Self::below(Path::new(DIR), address)
    }

    fn below(dir: &Path, address: &Address) -> Self {
        let path = dir.join(format!("fence_redfish_rs-{}-login.json", address.full()));
        let memory = state_file::read::<Memory>(&path).known().copied().unwrap_or_default();
        Self { path, memory }
    }

    /// Returns the result of the last logins with the lines of `file`; `None` if the file has changed since those logins.
    pub(super) fn about(&self, file: Identity) -> Option<Memory> {
        (self.memory.file == Some(file)).then_some(self.memory)
    }

    /// Stores the result of an action that tried the lines of `file` in this `order`. Ignores a failure to store it. In that case a
    /// later action may try a line that the BMC refuses.
    pub(super) fn keep(&self, tried: &Tried, file: Option<(Identity, &[usize])>) {
        if *tried == Tried::default() {
            return;
        }
        let mut memory = Memory { way: tried.way.or(self.memory.way), at: clock::wall_seconds(), ..self.memory };
        if let Some((identity, order)) = file {
            let left = (0..order.len()).find(|at| !tried.refused.contains(at));
            let line = tried.accepted.or(left).and_then(|at| order.get(at)).copied();
            (memory.file, memory.line, memory.accepted) = (Some(identity), line, tried.accepted.is_some());
            // If no line is valid, the BMC may have changed the kind of login.
            memory.way = memory.way.filter(|_| line.is_some());
        }
        if file.is_none() && memory.way == self.memory.way {
            return;
        }
        if let Err(error) = state_file::write(&self.path, &memory) {
            log::debug!("{} cannot be written: {error}", self.path.display());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};

    use super::*;

    #[test]
    fn the_next_action_begins_with_the_line_that_was_accepted() {
        let dir = tempfile::tempdir().unwrap();
        let address = Address::parse("192.0.2.1", 443).unwrap();
        fs::write(dir.path().join("password"), "a\nb\n").unwrap();
        let file = Identity::of(&File::open(dir.path().join("password")).unwrap()).unwrap();
        let remembered = || Remembered::below(dir.path(), &address);
        let line = || remembered().about(file).map(|memory| (memory.line, memory.accepted));
        assert_eq!(line(), None);
        let tried = |accepted, refused: &[usize]| Tried { accepted, refused: refused.to_vec(), way: Some(Way::Basic) };
        remembered().keep(&tried(Some(1), &[0]), Some((file, &[0, 1])));
        assert_eq!(line(), Some((Some(1), true)));
        remembered().keep(&tried(Some(0), &[]), Some((file, &[1, 0])));
        assert_eq!(line(), Some((Some(1), true)), "the order in which they were shown counts");
        remembered().keep(&tried(None, &[0]), Some((file, &[0, 1])));
        assert_eq!(line(), Some((Some(1), false)), "the BMC hung after it had refused one");
        remembered().keep(&tried(None, &[0, 1]), Some((file, &[0, 1])));
        assert_eq!(line(), Some((None, false)));
        remembered().keep(&Tried::default(), Some((file, &[0, 1])));
        assert_eq!(line(), Some((None, false)), "nothing was learnt where nobody answered");
        assert_eq!(remembered().memory.way, None, "the BMC may have switched basic authentication off");
        remembered().keep(&tried(Some(1), &[0]), Some((file, &[0, 1])));
        assert_eq!(remembered().memory.way, Some(Way::Basic));
        fs::write(dir.path().join("other"), "a\nb\n").unwrap();
        let other = Identity::of(&File::open(dir.path().join("other")).unwrap()).unwrap();
        assert_eq!(remembered().about(other), None);
        fs::write(&remembered().path, "{").unwrap();
        assert_eq!(remembered().memory, Memory::default());
    }
}
