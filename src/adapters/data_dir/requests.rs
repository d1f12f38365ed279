//! The clients' requests in the part of the log that the database does not hold yet. etcd writes its database a moment after its
//! log.

use prost::Message;
use prost::bytes::Bytes;

use super::history;
use super::proto::{self, Entry, Operation, entry_type, record_type};
use super::wal::{Segment, Stop};

/// The greatest size in bytes of the requests that the log has and the database lacks. They are few, because etcd writes its database ten
/// times a second.
const MOST_BYTES: usize = 64 << 20;

/// A client's request that changes keys, with its place in the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Logged {
    /// The index of the log entry that has the request.
    pub index: u64,
    pub request: Request,
    /// True if the request is part of a transaction. The transaction's conditions are not evaluated, so etcd may not have
    /// executed the request.
    pub is_conditional: bool,
}

/// The change of keys that a client's request makes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// A write of a key. If `value` is `None`, the key keeps its present value.
    Put {
        key: Bytes,
        value: Option<Bytes>,
        lease: i64,
    },
    Delete {
        key: Bytes,
    },
    /// A deletion of all keys from `from` up to `end`, without `end`. If `end` is `None`, all keys from `from` on.
    DeleteRange {
        from: Bytes,
        end: Option<Bytes>,
    },
    /// The revocation of a lease, which deletes all keys of the lease.
    Revoke {
        lease: i64,
    },
}

/// The requests that were found in the log so far, and the total size of their entries in bytes.
#[derive(Debug, Default)]
struct Above {
    requests: Vec<Logged>,
    bytes: usize,
}

/// Reads the clients' requests from the WAL files `wals`, from the entries after index `applied`.
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
        // An entry replaces an earlier one of its index, and all entries after that.
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
        // An entry that cannot be decoded is a request in the form of etcd 2, which changes no key.
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

/// Calls `add` for each request of a transaction, whichever branch etcd executes.
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
