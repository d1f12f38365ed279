//! The keys of the etcd that runs on this node, at one revision.

use std::time::Duration;

use super::fork::Group;
use super::hashes::{Hashes, Mark};
use crate::adapters::etcd::blocking;
use crate::adapters::etcd::client::{Credentials, Endpoint};
use crate::adapters::etcd::key_pages::Wanted;
use crate::operate::failure::Failure;

/// Timeout for reading all keys of a running etcd, which may be gigabytes.
const ALL: Duration = Duration::from_secs(300);

/// Access to the running etcd with which a stored history is compared.
#[derive(Debug)]
pub struct Live {
    pub endpoint: Endpoint,
    pub credentials: Credentials,
}

/// All keys of a running etcd at one revision, in the order of their last changes.
#[derive(Debug)]
pub(super) struct State {
    pub(super) revision: u64,
    keys: Vec<Row>,
}

/// A key of a running etcd: the revisions of its last change and its creation, and the hash of its value.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    pub(super) modified: u64,
    pub(super) created: u64,
    pub(super) value: u64,
    mark: Mark,
}

impl Live {
    /// Reads all keys at the revision `at`, or at the newest one. Returns `None` if etcd has compacted that revision.
    pub(super) fn state(&self, at: Option<u64>, hashes: &Hashes) -> Result<Option<State>, Failure> {
        let mut keys = Vec::new();
        let mut take = |pair: crate::adapters::etcd::key_pages::Pair<'_>| {
            let (mark, value) = (hashes.of_pair(&pair), hashes.value(pair.value));
            keys.push(Row { modified: pair.modified, created: pair.created, value, mark });
        };
        let wanted = Wanted { at, ..Wanted::default() };
        let read = blocking::read_keys(&self.endpoint, &self.credentials, wanted, ALL, &mut take)?;
        keys.sort_unstable_by_key(|row| row.modified);
        Ok(read.map(|revision| State { revision, keys }))
    }
}

impl State {
    /// Returns a reader of the changes. Each call of the reader returns all changes of the next revision.
    pub(super) fn groups(&self) -> impl FnMut() -> Result<Option<Group>, Failure> {
        let mut left = self.keys.as_slice();
        move || {
            let Some(first) = left.first() else { return Ok(None) };
            let (group, rest) = left.split_at(left.partition_point(|row| row.modified <= first.modified));
            left = rest;
            let marks = group.iter().map(|row| row.mark).collect();
            Ok(Some(Group { revision: first.modified, marks }))
        }
    }

    /// Sorts the keys by their hashes, which [`State::find`] needs.
    pub(super) fn by_key(&mut self) {
        self.keys.sort_unstable_by_key(|row| row.mark.key);
    }

    pub(super) fn find(&self, key: u128) -> Option<Row> {
        self.keys.binary_search_by_key(&key, |row| row.mark.key).ok().and_then(|at| self.keys.get(at)).copied()
    }
}
