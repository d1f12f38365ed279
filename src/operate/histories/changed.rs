//! The keys that one history changed since the fork, and their state in the other history.

use std::collections::BTreeMap;

use prost::bytes::Bytes;
use serde::Serialize;

use super::hashes::Hashes;
use super::live::State;
use super::logged::{Base, Step, is_between};
use crate::adapters::data_dir::{Change, Keys};
use crate::operate::failure::Failure;

/// The kind of a key's change since the revision at which two etcd histories fork.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    Created,
    Changed,
    Deleted,
}

/// The state of a key in the other etcd history, if the first history changed the key since the fork.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum InOther {
    Unchanged,
    Changed,
    /// The other history has the same value, or neither history has the key any more.
    Same,
}

/// A key that one etcd history changed since the fork, with its state in the other history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key<'a> {
    pub key: &'a [u8],
    pub kind: Kind,
    /// The revision of the key's last change; `None` if only etcd's write-ahead log has that change.
    pub revision: Option<u64>,
    pub is_uncertain: bool,
    pub in_other: InOther,
}

/// All keys that one etcd history changed since its fork from the other one.
#[derive(Debug, Default)]
pub(super) struct Changed {
    keys: BTreeMap<Bytes, One>,
}

#[derive(Clone, Copy, Debug, Default)]
struct One {
    /// The revision of the key's last change; 0 if only etcd's write-ahead log has that change.
    revision: u64,
    /// The hash of the key's value; `None` if the key was deleted or its value is unknown.
    value: Option<u64>,
    is_deletion: bool,
    is_uncertain: bool,
    existed: Option<bool>,
    other: OtherOne,
}

/// The state of a changed key in the other etcd history.
#[derive(Clone, Copy, Debug, Default)]
struct OtherOne {
    value: Option<u64>,
    is_changed: bool,
    is_uncertain: bool,
}

impl Changed {
    /// Reads the keys that `history` changed after the revision `fork` and that begin with `prefix`.
    pub(super) fn of(history: &Keys, fork: u64, prefix: &[u8], hashes: &Hashes) -> Result<Self, Failure> {
        let mut all = Self::default();
        let is_whole = history.compacted() <= fork;
        let mut changes = history.changes(fork.saturating_add(1))?;
        while let Some(change) = changes.next_change()? {
            if !change.key.starts_with(prefix) {
                continue;
            }
            let existed = existed(&change, fork, is_whole);
            let value = (!change.is_deletion).then(|| hashes.value(&change.value));
            let (revision, is_deletion) = (change.revision, change.is_deletion);
            let one = all.keys.entry(change.key).or_insert(One { existed, ..One::default() });
            *one = One { revision, value, is_deletion, ..*one };
        }
        all.add_logged(history, prefix, hashes)?;
        Ok(all)
    }

    fn add_logged(&mut self, history: &Keys, prefix: &[u8], hashes: &Hashes) -> Result<(), Failure> {
        let mut base = Base::read(history)?;
        let existing = base.existing.clone();
        let keys = &mut self.keys;
        base.steps(history.above(), |step, is_certain| match step {
            Step::Put { key, value } if key.starts_with(prefix) => {
                let one = logged(keys, key, existing.contains(key));
                let value = value.filter(|_| is_certain).map(|value| hashes.value(value));
                *one = One { revision: 0, value, is_deletion: false, is_uncertain: !is_certain, ..*one };
            }
            Step::Delete { key } if key.starts_with(prefix) => {
                if existing.contains(key) || keys.contains_key(key) {
                    logged(keys, key, existing.contains(key)).delete(is_certain);
                }
            }
            Step::DeleteRange { from, end } => {
                for key in existing.iter().filter(|key| is_between(key, from, end) && key.starts_with(prefix)) {
                    logged(keys, key, true);
                }
                for (_, one) in keys.iter_mut().filter(|(key, _)| is_between(key, from, end)) {
                    one.delete(is_certain);
                }
            }
            Step::Put { .. } | Step::Delete { .. } => {}
        });
        Ok(())
    }

    /// Reads the state of the changed keys in the stored history `other`.
    pub(super) fn find_in(&mut self, other: &Keys, fork: u64, hashes: &Hashes) -> Result<(), Failure> {
        if self.keys.is_empty() {
            return Ok(());
        }
        let mut changes = other.changes(0)?;
        while let Some(change) = changes.next_change()? {
            let Some(one) = self.keys.get_mut(&change.key) else { continue };
            one.note_existence(change.created, fork);
            one.other.value = (!change.is_deletion).then(|| hashes.value(&change.value));
            one.other.is_changed = change.revision > fork;
        }
        let keys = &mut self.keys;
        Base::read(other)?.steps(other.above(), |step, is_certain| match step {
            Step::Put { key, value } => {
                if let Some(one) = keys.get_mut(key) {
                    let value = value.map(|value| hashes.value(value));
                    one.other = OtherOne { value, is_changed: true, is_uncertain: !is_certain };
                }
            }
            Step::Delete { key } => keys.get_mut(key).into_iter().for_each(|one| one.other.delete(is_certain)),
            Step::DeleteRange { from, end } => {
                let within = keys.iter_mut().filter(|(key, _)| is_between(key, from, end));
                within.for_each(|(_, one)| one.other.delete(is_certain));
            }
        });
        Ok(())
    }

    /// Reads the state of the changed keys in a running etcd. [`Changed::find_in`] does the same for a stored history.
    pub(super) fn find_live(&mut self, mut state: State, fork: u64, hashes: &Hashes) {
        state.by_key();
        for (key, one) in &mut self.keys {
            let Some(row) = state.find(hashes.key(key)) else { continue };
            one.note_existence(row.created, fork);
            one.other = OtherOne { value: Some(row.value), is_changed: row.modified > fork, is_uncertain: false };
        }
    }

    pub(super) fn keys(&self) -> impl Iterator<Item = Key<'_>> {
        self.keys.iter().map(|(key, one)| Key {
            key,
            kind: match one.existed {
                _ if one.is_deletion => Kind::Deleted,
                Some(true) => Kind::Changed,
                _ => Kind::Created,
            },
            revision: Some(one.revision).filter(|revision| *revision > 0),
            is_uncertain: one.is_uncertain,
            in_other: one.in_other(),
        })
    }
}

impl One {
    fn delete(&mut self, is_certain: bool) {
        *self = Self { revision: 0, value: None, is_deletion: true, is_uncertain: !is_certain, ..*self };
    }

    /// Records that the key existed at the fork if its creation, at revision `created`, was not after the fork.
    fn note_existence(&mut self, created: u64, fork: u64) {
        if self.existed.is_none() && (1..=fork).contains(&created) {
            self.existed = Some(true);
        }
    }

    fn in_other(&self) -> InOther {
        let is_gone = self.is_deletion && self.other.value.is_none();
        let is_equal = self.value.is_some() && self.value == self.other.value;
        if !self.is_uncertain && !self.other.is_uncertain && (is_gone || is_equal) {
            return InOther::Same;
        }
        let was_deleted = self.existed == Some(true) && self.other.value.is_none();
        if self.other.is_changed || was_deleted { InOther::Changed } else { InOther::Unchanged }
    }
}

impl OtherOne {
    fn delete(&mut self, is_certain: bool) {
        if self.value.is_some() {
            *self = Self { value: None, is_changed: true, is_uncertain: !is_certain };
        }
    }
}

/// Returns whether a key existed at the revision `fork`. `change` is the key's first change after that. Returns `None`
/// if earlier changes may be compacted.
fn existed(change: &Change, fork: u64, is_whole: bool) -> Option<bool> {
    match change.is_deletion {
        true => is_whole.then_some(true),
        false if change.created <= fork => Some(true),
        false => is_whole.then_some(false),
    }
}

fn logged<'a>(keys: &'a mut BTreeMap<Bytes, One>, key: &Bytes, exists: bool) -> &'a mut One {
    keys.entry(key.clone()).or_insert(One { existed: Some(exists), ..One::default() })
}
