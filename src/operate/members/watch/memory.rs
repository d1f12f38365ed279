//! The counts, from one observation to the next, of how often another client removed each hook.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::adapters::openshift::machines::{Machine, Machines};
use crate::base::Fact;
use crate::operate::failure::Failure;
use crate::records::state_file;

/// Default path of the file with the counts of removed deletion hooks, for the collector and for `tandem member watch`.
pub const PATH: &str = "/var/lib/tandem/machine-hooks.json";
/// Number of removals by another client after which a Machine's deletion hook is not set any more, because the removals are on purpose.
const TRIES: u32 = 3;

/// The number of times that another client removed the deletion hook of each Machine, by the Machine's uid. The counts are stored between
/// observations.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Memory {
    pub(super) machines: BTreeMap<String, HookSeen>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct HookSeen {
    pub(super) is_on: bool,
    /// Number of times that the deletion hook was missing although the Machine was not being deleted.
    pub(super) taken_off: u32,
}

impl Memory {
    /// Reads the counts of removed deletion hooks from `path`; they are empty if the file is missing. An unreadable file is an error,
    /// because its counts would be lost.
    pub(super) fn read(path: &Path) -> Result<Self, Failure> {
        match state_file::read(path) {
            Fact::Known(memory) => Ok(memory),
            Fact::Absent | Fact::NotAsked => Ok(Self::default()),
            Fact::Unknown(why) => Err(Failure(format!(
                "{why}: type 'rm {}' once it is readable or of no use; hooks are counted anew then",
                path.display()
            ))),
        }
    }

    pub(super) fn write(&self, path: &Path) -> Result<(), Failure> {
        state_file::write(path, self).map_err(|error| Failure(format!("cannot write {}: {error}", path.display())))
    }

    /// Deletes the hook counts of Machines that no longer exist.
    pub(super) fn forget_all_but(&mut self, machines: &Machines) {
        let is_there = |uid: &str| machines.all().iter().any(|machine| machine.uid() == Some(uid));
        self.machines.retain(|uid, _| is_there(uid));
    }

    /// Updates the count for a voter's Machine from its present deletion hook. Returns whether the hook has just been removed so often
    /// that it is not set any more.
    pub(super) fn see(&mut self, machine: &Machine) -> bool {
        let Some(uid) = machine.uid() else { return false };
        let seen = self.machines.entry(uid.to_owned()).or_default();
        if machine.is_protected() {
            // An operator has set the hook again, so the count starts over.
            if seen.taken_off >= TRIES {
                seen.taken_off = 0;
            }
            seen.is_on = true;
            return false;
        }
        let was_taken_off = std::mem::take(&mut seen.is_on) && !machine.is_being_deleted();
        seen.taken_off += u32::from(was_taken_off);
        was_taken_off && seen.taken_off == TRIES
    }

    /// Returns whether the deletion hook of this Machine is not set any more, because it was removed too often. Without a uid nothing can
    /// be counted, so the hook is not set either.
    pub(super) fn gave_up(&self, machine: &Machine) -> bool {
        let Some(uid) = machine.uid() else { return true };
        self.machines.get(uid).is_some_and(|seen| seen.taken_off >= TRIES)
    }

    /// Records that the deletion hook of the Machine `uid` was set.
    pub(super) fn puts_on(&mut self, uid: &str) {
        self.machines.entry(uid.to_owned()).or_default().is_on = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/fixtures/formats/0.1.0/machine-hooks.json");

    #[test]
    fn the_file_is_read_as_it_was_written_once() {
        let seen = HookSeen { is_on: true, taken_off: 2 };
        let memory = Memory { machines: [("5b0e4d0c-8d5b-4e59-8b3f-3f1d8e0a7c11".to_owned(), seen)].into() };
        assert_eq!(Memory::read(Path::new(SAMPLE)).unwrap(), memory);
        let sample: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(SAMPLE).unwrap()).unwrap();
        assert_eq!(serde_json::to_value(&memory).unwrap(), sample);
        let later: Memory = serde_json::from_str(r#"{"machines": {"u": {"later": 1}}, "later": 1}"#).unwrap();
        assert_eq!(later.machines["u"], HookSeen::default());
    }

    #[test]
    fn what_cannot_be_read_is_no_memory_without_hooks() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("machine-hooks.json");
        assert_eq!(Memory::read(&path).unwrap(), Memory::default());
        std::fs::write(&path, "{").unwrap();
        assert!(Memory::read(&path).unwrap_err().0.contains("type 'rm "));
    }
}
