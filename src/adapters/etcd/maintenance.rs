//! Maintenance questions: revisions and hashes, which show that two etcds hold the same data, and a copy of the database.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use super::client::{self, Credentials, Endpoint, Error};

/// The hash that etcd computes of all keys up to one revision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hash {
    pub hash: u32,
    /// The revision at which the key-value store had last been compacted when etcd computed the hash. Two hashes can only be compared if
    /// this revision is equal, because a compaction deletes old values, which the hash would include.
    pub compact_revision: i64,
}

/// Returns the revision of the cluster, by a linearizable read through the etcd at `endpoint`.
pub(super) async fn revision(endpoint: &Endpoint, credentials: &Credentials, patience: Duration) -> Result<i64, Error> {
    client::ask(endpoint, credentials, patience, async |mut client| {
        let answer = client.get(client::HEALTH_KEY, None).await?;
        Ok(answer.header().map(etcd_client::ResponseHeader::revision).unwrap_or_default())
    })
    .await
}

/// Returns the revision that the etcd at `endpoint` has applied. The request succeeds without a leader, too.
pub(super) async fn own_revision(
    endpoint: &Endpoint,
    credentials: &Credentials,
    patience: Duration,
) -> Result<u64, Error> {
    client::ask(endpoint, credentials, patience, async |mut client| {
        let status = client.status().await?;
        let revision = status.header().map(etcd_client::ResponseHeader::revision).unwrap_or_default();
        Ok(u64::try_from(revision).unwrap_or_default())
    })
    .await
}

/// Returns the hash of all keys of the etcd at `endpoint` up to `revision`.
pub(super) async fn hash(
    endpoint: &Endpoint,
    credentials: &Credentials,
    revision: i64,
    patience: Duration,
) -> Result<Hash, Error> {
    client::ask(endpoint, credentials, patience, async |mut client| {
        let answer = client.hash_kv(revision).await?;
        Ok(Hash { hash: answer.hash(), compact_revision: answer.compact_version() })
    })
    .await
}

/// Writes a copy of the database of the etcd at `endpoint` to `path`, readable only by root. Returns the copy's size in bytes.
/// After an error there is no new file at `path`.
pub(super) async fn snapshot(
    endpoint: &Endpoint,
    credentials: &Credentials,
    path: &Path,
    patience: Duration,
) -> Result<u64, Error> {
    let aside = path.with_extension("part");
    let why = |error: std::io::Error| Error::Client {
        url: endpoint.url.clone(),
        why: format!("its copy {} cannot be written: {error}", aside.display()),
    };
    let _ = fs::remove_file(&aside);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&aside).map_err(why)?;
    let copied = client::ask(endpoint, credentials, patience, async |mut client| {
        let mut stream = client.snapshot().await?;
        let mut bytes = 0_u64;
        let mut written = Ok(());
        while let Some(part) = stream.message().await? {
            bytes += u64::try_from(part.blob().len()).unwrap_or_default();
            written = file.write_all(part.blob());
            if written.is_err() {
                break;
            }
        }
        Ok((bytes, written))
    })
    .await;
    let done = copied.and_then(|(bytes, written)| {
        written.and_then(|()| file.sync_all()).and_then(|()| fs::rename(&aside, path)).map_err(why)?;
        Ok(bytes)
    });
    if done.is_err() {
        let _ = fs::remove_file(&aside);
    }
    done
}
