//! Hashes of keys and values. The hash keys are random for each process, so that no program can prepare two values with
//! one hash.

use std::hash::{BuildHasher, RandomState};

use crate::adapters::data_dir::Change;
use crate::adapters::etcd::key_pages::Pair;

#[derive(Debug, Default)]
pub(super) struct Hashes {
    one: RandomState,
    other: RandomState,
}

/// A change of a key at a revision, reduced to hashes so that the changes of two histories can be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Mark {
    pub(super) key: u128,
    /// Hash of everything that the change wrote, except the key.
    pub(super) content: u64,
}

impl Hashes {
    pub(super) fn key(&self, key: &[u8]) -> u128 {
        u128::from(self.one.hash_one(key)) << 64 | u128::from(self.other.hash_one(key))
    }

    pub(super) fn value(&self, value: &[u8]) -> u64 {
        self.one.hash_one(value)
    }

    pub(super) fn of_change(&self, change: &Change) -> Mark {
        let Change { is_deletion, created, version, lease, value, .. } = change;
        let content = self.other.hash_one((is_deletion, created, version, lease, &value[..]));
        Mark { key: self.key(&change.key), content }
    }

    /// Returns the [`Mark`] of the change that wrote `pair`.
    pub(super) fn of_pair(&self, pair: &Pair<'_>) -> Mark {
        let Pair { created, version, lease, value, .. } = pair;
        Mark { key: self.key(pair.key), content: self.other.hash_one((&false, created, version, lease, value)) }
    }
}
