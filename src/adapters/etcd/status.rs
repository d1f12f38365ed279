//! The full status of one etcd, for operators. It holds more than decisions need. Only the read needs a majority.

use std::time::Duration;

use etcd_client::{Client, GetOptions};
use tokio::time;

use super::client::{Credentials, Endpoint, HEALTH_KEY, ask as converse, is_refused, members, sentence};
use crate::base::Fact;
use crate::decide::evidence::{Member, MemberId};

/// The time limits of [`ask`].
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// The limit of all requests together.
    pub state: Duration,
    /// The limit of the linearizable read alone, which is one of the requests.
    pub read: Duration,
}

/// The full status of one etcd, for operators.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    pub version: String,
    pub cluster_id: u64,
    pub member_id: MemberId,
    /// The id of the leader that this member knows; `None` where it knows none.
    pub leader: Option<MemberId>,
    pub term: u64,
    /// The index of the last entry in the member's log.
    pub index: u64,
    /// The index of the last entry that the member has applied.
    pub applied: u64,
    pub is_learner: bool,
    pub db_bytes: u64,
    pub db_in_use_bytes: u64,
    /// The limit of the database in bytes; `None` from etcd before 3.6, which does not report it.
    pub quota_bytes: Option<u64>,
    /// Alarms and errors, in the words of etcd.
    pub errors: Vec<String>,
    /// The members as of the last entry that this member has applied; empty from a learner, which refuses to list them.
    pub members: Vec<Member>,
    /// The result of a linearizable read, which a majority must confirm. `NotAsked` from a learner, which serves no reads.
    pub reads: Fact<()>,
    /// The time that the member took to report its state.
    pub took: Duration,
}

/// Asks the etcd at `endpoint` for its full status. The caller has checked that a server listens there.
pub async fn ask(endpoint: &Endpoint, credentials: &Credentials, patience: Patience) -> Fact<Status> {
    let began = time::Instant::now();
    let talk = |client| conversation(client, began, patience.read);
    match Box::pin(converse(endpoint, credentials, patience.state, talk)).await {
        Ok(status) => Fact::Known(status),
        Err(error) => Fact::Unknown(error.to_string()),
    }
}

async fn conversation(mut client: Client, began: time::Instant, read: Duration) -> Result<Status, etcd_client::Error> {
    let said = client.status().await?;
    let took = began.elapsed();
    let members = members(&mut client, &said).await?;
    let header = said.header();
    let bytes = |count: i64| u64::try_from(count).unwrap_or_default();
    Ok(Status {
        version: said.version().to_owned(),
        cluster_id: header.map(etcd_client::ResponseHeader::cluster_id).unwrap_or_default(),
        member_id: header.map(etcd_client::ResponseHeader::member_id).unwrap_or_default(),
        leader: Some(said.leader()).filter(|leader| *leader != 0),
        term: said.raft_term(),
        index: said.raft_index(),
        applied: said.raft_applied_index(),
        is_learner: said.is_learner(),
        db_bytes: bytes(said.db_size()),
        db_in_use_bytes: bytes(said.raft_used_db_size()),
        quota_bytes: Some(bytes(said.db_size_quota())).filter(|quota| *quota > 0),
        errors: said.errors().to_vec(),
        members,
        reads: if said.is_learner() { Fact::NotAsked } else { reads(client, read).await },
        took,
    })
}

/// Runs a linearizable read, which a majority must confirm. A majority confirms a read before etcd checks permissions, so a
/// permission error counts as success.
async fn reads(mut client: Client, patience: Duration) -> Fact<()> {
    let options = GetOptions::new().with_count_only();
    match time::timeout(patience, client.get(HEALTH_KEY, Some(options))).await {
        Ok(Ok(_)) => Fact::Known(()),
        Ok(Err(error)) if is_refused(&error) => Fact::Known(()),
        Ok(Err(error)) => Fact::Unknown(sentence(&error)),
        Err(_) => Fact::Unknown(format!("no majority confirmed a read within {:.1} s", patience.as_secs_f64())),
    }
}
