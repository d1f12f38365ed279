//! What clients asked for in the part of the log that the database does not hold yet: etcd writes its database a moment after its log.

use prost::Message;
use prost::bytes::Bytes;

use super::history;
use super::proto::{self, Entry, Operation, entry_type, record_type};
use super::wal::{Segment, Stop};

/// What these requests take in memory. etcd writes its database ten times a second.
const MOST_BYTES: usize = 64 << 20;

/// A request of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Logged {
    /// Its place in the log.
    pub index: u64,
    pub request: Request,
    /// Whether it is a part of a transaction. Its conditions are not evaluated, so it may not have been carried out.
    pub is_conditional: bool,
}

/// What it changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// Without a value the key keeps the one that it has.
    Put {
        key: Bytes,
        value: Option<Bytes>,
        lease: i64,
    },
    Delete {
        key: Bytes,
    },
    /// Of all keys from one up to another one, or of all behind the first.
    DeleteRange {
        from: Bytes,
        end: Option<Bytes>,
    },
    /// Of all keys that hang on a lease.
    Revoke {
        lease: i64,
    },
}

/// The requests that were read.
#[derive(Debug, Default)]
struct Above {
    requests: Vec<Logged>,
    bytes: usize,
}

/// Reads the requests in `wals` that are above log index `applied`.
pub(super) fn above(wals: &[Segment], applied: u64) -> Result<Vec<Logged>, Stop> {
    let mut above = Above::default();
    history::for_each(wals, |record| match record.kind {
        record_type::ENTRY => above.take(history::decode(record.data, "an entry")?, applied),
        _ => Ok(()),
    })?;
    Ok(above.requests)
}

impl Above {
    fn take(&mut self, entry: Entry, applied: u64) -> Result<(), Stop> {
        // An entry that was there before makes way, with all behind it.
        while self.requests.last().is_some_and(|last| last.index >= entry.index) {
            self.requests.pop();
        }
        if entry.index <= applied || matches!(entry.kind, entry_type::CONF_CHANGE | entry_type::CONF_CHANGE_V2) {
            return Ok(());
        }
        self.bytes += entry.data.len();
        if self.bytes > MOST_BYTES {
            let why = format!("the log holds more than {} MiB that the database lacks", MOST_BYTES >> 20);
            return Err(Stop::Damaged(why));
        }
        // What cannot be decoded is a request in the form of etcd 2, which changes no key.
        let Ok(asked) = proto::Request::decode(entry.data) else { return Ok(()) };
        let index = entry.index;
        let mut add = |request, is_conditional| self.requests.push(Logged { index, request, is_conditional });
        asked.put.into_iter().for_each(|put| add(put.into(), false));
        asked.delete.into_iter().for_each(|delete| add(delete.into(), false));
        asked.revocation.into_iter().for_each(|of| add(Request::Revoke { lease: of.lease }, false));
        asked.transaction.into_iter().for_each(|transaction| branches(transaction, &mut |request| add(request, true)));
        Ok(())
    }
}

/// Calls `add` with each request of both branches.
fn branches(transaction: proto::Transaction, add: &mut dyn FnMut(Request)) {
    for Operation { put, delete, transaction } in transaction.success.into_iter().chain(transaction.failure) {
        let requests = [put.map(Request::from), delete.map(Request::from)];
        requests.into_iter().flatten().for_each(&mut *add);
        if let Some(inner) = transaction {
            branches(inner, add);
        }
    }
}

impl From<proto::Put> for Request {
    fn from(put: proto::Put) -> Self {
        Self::Put { key: put.key, value: (!put.ignore_value).then_some(put.value), lease: put.lease }
    }
}

impl From<proto::Delete> for Request {
    fn from(delete: proto::Delete) -> Self {
        match &delete.range_end[..] {
            [] => Self::Delete { key: delete.key },
            [0] => Self::DeleteRange { from: delete.key, end: None },
            _ => Self::DeleteRange { from: delete.key, end: Some(delete.range_end) },
        }
    }
}
