//! Applies the requests that etcd's log has above the database to the keys of a history.

use std::collections::{BTreeMap, BTreeSet};

use prost::bytes::Bytes;

use crate::adapters::data_dir::{Keys, Logged, Request};
use crate::operate::failure::Failure;

/// The state, in a stored database, of the keys that entries of etcd's write-ahead log change after the database's last revision.
#[derive(Debug, Default)]
pub(super) struct Base {
    /// The keys that exist in the database.
    pub(super) existing: BTreeSet<Bytes>,
    /// The keys attached to each lease that the write-ahead log revokes, by lease id.
    leased: BTreeMap<i64, BTreeSet<Bytes>>,
}

/// A change that a request in etcd's write-ahead log makes.
#[derive(Debug, Clone, Copy)]
pub(super) enum Step<'a> {
    Put { key: &'a Bytes, value: Option<&'a [u8]> },
    Delete { key: &'a Bytes },
    DeleteRange { from: &'a [u8], end: Option<&'a [u8]> },
}

impl Base {
    /// Reads from the database the keys that change when etcd applies the write-ahead log's requests. Requests that the database already
    /// contains do not count.
    pub(super) fn read(keys: &Keys) -> Result<Self, Failure> {
        let mut base = Self::default();
        if keys.above().is_empty() {
            return Ok(base);
        }
        let requests = || keys.above().iter().map(|logged| &logged.request);
        let named: BTreeSet<&Bytes> = requests().filter_map(named).collect();
        let revoked: BTreeSet<i64> = requests().filter_map(revoked).collect();
        let ranges: Vec<(&[u8], Option<&[u8]>)> = requests().filter_map(range).collect();
        let mut changes = keys.changes(0)?;
        while let Some(change) = changes.next_change()? {
            let is_ranged = || ranges.iter().any(|(from, end)| is_between(&change.key, from, *end));
            if named.contains(&change.key) || is_ranged() {
                if change.is_deletion {
                    base.existing.remove(&change.key);
                } else {
                    base.existing.insert(change.key.clone());
                }
            }
            for leased in base.leased.values_mut() {
                leased.remove(&change.key);
            }
            if !change.is_deletion && revoked.contains(&change.lease) {
                base.leased.entry(change.lease).or_default().insert(change.key);
            }
        }
        Ok(base)
    }

    /// Calls `take` with each change that the requests in `above` make, in their order. These requests are in etcd's write-ahead log
    /// only. The second argument of `take` is true if the change certainly happened.
    pub(super) fn steps(&mut self, above: &[Logged], mut take: impl FnMut(Step<'_>, bool)) {
        for logged in above {
            let is_certain = !logged.is_conditional;
            match &logged.request {
                Request::Put { key, value, lease } => {
                    if *lease != 0 {
                        self.leased.entry(*lease).or_default().insert(key.clone());
                    }
                    take(Step::Put { key, value: value.as_deref() }, is_certain && value.is_some());
                }
                Request::Delete { key } => take(Step::Delete { key }, is_certain),
                Request::DeleteRange { from, end } => {
                    take(Step::DeleteRange { from, end: end.as_deref() }, is_certain);
                }
                Request::Revoke { lease } => {
                    // Since then a key may have another lease or none.
                    for key in self.leased.get(lease).into_iter().flatten() {
                        take(Step::Delete { key }, false);
                    }
                }
            }
        }
    }
}

fn named(request: &Request) -> Option<&Bytes> {
    match request {
        Request::Put { key, .. } | Request::Delete { key } => Some(key),
        Request::DeleteRange { .. } | Request::Revoke { .. } => None,
    }
}

fn revoked(request: &Request) -> Option<i64> {
    match request {
        Request::Revoke { lease } => Some(*lease),
        _ => None,
    }
}

fn range(request: &Request) -> Option<(&[u8], Option<&[u8]>)> {
    match request {
        Request::DeleteRange { from, end } => Some((from, end.as_deref())),
        _ => None,
    }
}

/// Returns whether `key` lies in the range from `from` to `end`. `end` itself is not in the range; `None` means no
/// upper limit.
pub(super) fn is_between(key: &[u8], from: &[u8], end: Option<&[u8]>) -> bool {
    key >= from && end.is_none_or(|end| key < end)
}
