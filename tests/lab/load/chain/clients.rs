//! The clients of the chain, each of which uses only one node: one puts the next number, one reads it.

use etcd_client::{Client, Compare, CompareOp, KeyValue, Txn, TxnOp, TxnOpResponse};

use super::{Deed, Link};
use crate::cluster::etcd;

/// The etcd key, below a run's prefix, of the counter that a client on each node raises by one.
pub const KEY: &str = "chain";

/// Reads the counter under `key` by a linearizable read. Returns `None` if etcd does not respond.
pub async fn read(client: &mut Client, key: &str) -> Option<Deed> {
    let answer = client.get(key, None).await.ok()?;
    Some(Deed::Read { link: link(answer.kvs())?, said: etcd::header(answer.header())? })
}

/// Raises the counter under `key` by one if etcd still holds the value `known`. Otherwise returns the value that etcd
/// holds. Returns `None` if etcd does not respond.
pub async fn swap(client: &mut Client, key: &str, known: &Link, author: &str) -> Option<Deed> {
    let number = known.number + 1;
    let unchanged = Compare::mod_revision(key, CompareOp::Equal, known.revision);
    let put = TxnOp::put(key, Link::text(number, author), None);
    let txn = Txn::new().when([unchanged]).and_then([put]).or_else([TxnOp::get(key, None)]);
    let answer = client.txn(txn).await.ok()?;
    let said = etcd::header(answer.header())?;
    if answer.succeeded() {
        let link = Link { number, author: author.to_owned(), revision: said.revision };
        return Some(Deed::Swapped { link, onto: known.revision, said });
    }
    match answer.op_responses().first()? {
        TxnOpResponse::Get(found) => Some(Deed::Read { link: link(found.kvs())?, said }),
        _ => None,
    }
}

fn link(pairs: &[KeyValue]) -> Option<Link> {
    let Some(pair) = pairs.first() else { return Some(Link::none()) };
    Link::parse(pair.value_str().ok()?, pair.mod_revision())
}
