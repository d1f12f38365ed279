//! All keys of an etcd, read page by page as of one revision.

use std::time::Duration;

use etcd_client::{Client, GetOptions, KvClient};

use super::client::{self, Credentials, Endpoint, Error};
use super::space::COMPACTED;

/// The number of keys in the first page. Later pages have as many as `PAGE` bytes hold, because etcd builds a whole page before
/// it sends it.
const FIRST_KEYS: i64 = 64;
const MOST_KEYS: i64 = 8_000;
const PAGE: usize = 8 << 20;
/// The largest answer that is accepted, in bytes. A larger one is requested in parts.
const LARGEST_ANSWER: usize = 64 << 20;
/// The smallest possible key.
const FIRST: &[u8] = &[0];

/// A key and its value, as of the revision.
#[derive(Clone, Copy, Debug)]
pub struct Pair<'a> {
    pub key: &'a [u8],
    pub value: &'a [u8],
    pub created: u64,
    pub modified: u64,
    pub version: u64,
    pub lease: i64,
}

/// The selection of keys.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wanted {
    /// The revision to read at; the newest one if `None`.
    pub at: Option<u64>,
    /// The least revision that a key may have been modified at.
    pub since: u64,
    /// Whether one key is enough.
    pub only_one: bool,
}

/// Calls `visit` for each key. Returns the revision that was read; `None` where etcd has compacted it.
pub(super) async fn read(
    endpoint: &Endpoint,
    credentials: &Credentials,
    wanted: Wanted,
    patience: Duration,
    visit: &mut (dyn FnMut(Pair<'_>) + Send),
) -> Result<Option<u64>, Error> {
    client::ask(endpoint, credentials, patience, async move |client| match pages(&client, wanted, visit).await {
        Err(error) if client::sentence(&error).contains(COMPACTED) => Ok(None),
        read => read.map(Some),
    })
    .await
}

async fn pages(
    client: &Client,
    wanted: Wanted,
    visit: &mut (dyn FnMut(Pair<'_>) + Send),
) -> Result<u64, etcd_client::Error> {
    let mut kv = client.kv_client().max_decoding_message_size(LARGEST_ANSWER);
    let (mut from, mut at, mut keys) = (FIRST.to_vec(), wanted.at, FIRST_KEYS);
    loop {
        let limit = if wanted.only_one { 1 } else { keys };
        let Some(page) = page(&mut kv, &from, at, wanted.since, limit).await? else {
            keys = (keys / 4).max(1);
            continue;
        };
        let revision = page.header().map(etcd_client::ResponseHeader::revision).map_or(0, unsigned);
        let at_revision = *at.get_or_insert(revision);
        let mut bytes = 0;
        for pair in page.kvs() {
            bytes += pair.key().len() + pair.value().len();
            visit(Pair {
                key: pair.key(),
                value: pair.value(),
                created: unsigned(pair.create_revision()),
                modified: unsigned(pair.mod_revision()),
                version: unsigned(pair.version()),
                lease: pair.lease(),
            });
        }
        match page.kvs().last().filter(|_| page.more() && !wanted.only_one) {
            // The next possible key.
            Some(last) => from = [last.key(), FIRST].concat(),
            None => return Ok(at_revision),
        }
        keys = if bytes > PAGE { (keys / 2).max(1) } else { keys.saturating_mul(2).min(MOST_KEYS) };
    }
}

/// Reads the keys after `from`; `None` where the answer is too large.
async fn page(
    kv: &mut KvClient,
    from: &[u8],
    at: Option<u64>,
    since: u64,
    limit: i64,
) -> Result<Option<etcd_client::GetResponse>, etcd_client::Error> {
    let mut options = GetOptions::new().with_from_key().with_limit(limit);
    if let Some(at) = at {
        options = options.with_revision(i64::try_from(at).unwrap_or(i64::MAX));
    }
    if since > 0 {
        options = options.with_min_mod_revision(i64::try_from(since).unwrap_or(i64::MAX));
    }
    match kv.get(from, Some(options)).await {
        Err(etcd_client::Error::GRpcStatus(status)) if limit > 1 && status.code() == tonic::Code::OutOfRange => {
            if status.message().contains(COMPACTED) {
                Err(status.into())
            } else {
                Ok(None)
            }
        }
        answer => answer.map(Some),
    }
}

fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or_default()
}
