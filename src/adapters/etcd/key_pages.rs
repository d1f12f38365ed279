//! All keys of an etcd, read page by page as of one revision.

use std::time::Duration;

use etcd_client::{Client, GetOptions, KvClient};

use super::client::{self, Credentials, Endpoint, Error};
use super::space::COMPACTED;

/// The number of keys that are requested first. Each later page has about as many keys as fit into [`PAGE`] bytes, because etcd
/// builds a whole page in memory.
const FIRST_KEYS: i64 = 64;
const MOST_KEYS: i64 = 8_000;
const PAGE: usize = 8 << 20;
/// The largest answer of etcd that is accepted, in bytes. A larger page is requested again with fewer keys.
const LARGEST_ANSWER: usize = 64 << 20;
/// The first key in etcd's order of keys.
const FIRST: &[u8] = &[0];

/// A key of etcd, with its value, revisions and lease. All are as of the revision at which the keys are read.
#[derive(Clone, Copy, Debug)]
pub struct Pair<'a> {
    pub key: &'a [u8],
    pub value: &'a [u8],
    pub created: u64,
    pub modified: u64,
    pub version: u64,
    pub lease: i64,
}

/// The selection of the keys to read.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wanted {
    /// The revision as of which keys are read; `None` for the newest one.
    pub at: Option<u64>,
    /// The least modification revision of the keys to read; 0 for all keys.
    pub since: u64,
    /// True if only the first key is wanted.
    pub only_one: bool,
}

/// Calls `visit` for each selected key. Returns the revision as of which the keys were read; `None` if etcd has compacted that
/// revision.
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

/// Requests at most `limit` keys from `from` on; `None` where etcd's answer is larger than [`LARGEST_ANSWER`].
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
