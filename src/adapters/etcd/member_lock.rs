//! The lock against two member changes at once: a key with a lease, in the form of etcd's own lock service. That service, as in
//! `etcdctl lock tandem/member-change`, waits for this lock. This lock waits for no other holder, and reports it instead.
//!
//! Next to it is a key without a lease, which names the last removed member. A command that was cut off after a removal reads it.

use std::time::Duration;

use etcd_client::{Client, Compare, CompareOp, PutOptions, Txn, TxnOp};

use super::client::{self, Credentials, Endpoint, Error};
use super::members::{self, LOCK};

/// The key with the last member that was removed. The key must not begin with [`LOCK`], because etcd's lock service takes every key with
/// that prefix for a claim to the lock.
const REMOVED: &str = "tandem/member-removed";

/// The outcome of an attempt to take the member-change lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Taken {
    Yes {
        key: String,
        lease: i64,
    },
    /// Another command holds the lock. The text describes that command.
    By(String),
}

/// Takes the member-change lock for `seconds`, unless another command holds it. `holder` describes this command to others.
pub(super) async fn take(
    endpoint: &Endpoint,
    credentials: &Credentials,
    holder: &str,
    seconds: i64,
    timeout: Duration,
) -> Result<Taken, Error> {
    client::ask(endpoint, credentials, timeout, async move |client| put_if_nobody_has_it(client, holder, seconds).await)
        .await
}

async fn put_if_nobody_has_it(mut client: Client, holder: &str, seconds: i64) -> Result<Taken, etcd_client::Error> {
    let lease = client.lease_grant(seconds, None).await?.id();
    let key = format!("{LOCK}{lease:x}");
    // For a range without keys, etcd compares the create revision 0.
    let nobody = Compare::create_revision(LOCK, CompareOp::Equal, 0).with_prefix();
    let put = TxnOp::put(key.as_str(), holder, Some(PutOptions::new().with_lease(lease)));
    let answer = client.txn(Txn::new().when([nobody]).and_then([put])).await;
    if answer.as_ref().is_ok_and(etcd_client::TxnResponse::succeeded) {
        return Ok(Taken::Yes { key, lease });
    }
    // Without the revocation the lease would stay until it expires.
    let _ = client.lease_revoke(lease).await;
    answer?;
    let (_, found) = members::lock(&mut client).await;
    Ok(Taken::By(found.map_or_else(|| "it has just ended".to_owned(), |found| found.holder)))
}

/// Renews the lease of the member-change lock. Returns `false` if the lease has expired.
pub(super) async fn renew(
    endpoint: &Endpoint,
    credentials: &Credentials,
    lease: i64,
    timeout: Duration,
) -> Result<bool, Error> {
    client::ask(endpoint, credentials, timeout, async move |mut client| {
        let (mut keeper, mut answers) = client.lease_keep_alive(lease).await?;
        keeper.keep_alive().await?;
        Ok(answers.message().await?.is_some_and(|answer| answer.ttl() > 0))
    })
    .await
}

/// Records in etcd that the member `removed` is about to be removed.
pub(super) async fn note_removal(
    endpoint: &Endpoint,
    credentials: &Credentials,
    removed: &str,
    timeout: Duration,
) -> Result<(), Error> {
    client::ask(endpoint, credentials, timeout, async move |mut client| {
        client.put(REMOVED, removed, None).await.map(drop)
    })
    .await
}

/// Returns the member that [`note_removal`] recorded last; `None` if it recorded none.
pub(super) async fn last_removal(
    endpoint: &Endpoint,
    credentials: &Credentials,
    timeout: Duration,
) -> Result<Option<Vec<u8>>, Error> {
    client::ask(endpoint, credentials, timeout, async move |mut client| {
        Ok(client.get(REMOVED, None).await?.kvs().first().map(|key| key.value().to_vec()))
    })
    .await
}
