//! All that one etcd tells of itself, for people: more than a decision rests on. Nothing of it needs a majority but the read.

use std::time::Duration;

use etcd_client::{Client, GetOptions};
use tokio::time;

use super::client::{Credentials, Endpoint, HEALTH_KEY, ask as converse, is_refused, members, sentence};
use crate::base::Fact;
use crate::decide::evidence::{Member, MemberId};

/// How long each part may take.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// All of it.
    pub state: Duration,
    /// The read, within that.
    pub read: Duration,
}

/// What an etcd tells of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    pub version: String,
    pub cluster_id: u64,
    pub member_id: MemberId,
    /// `None` where it has none.
    pub leader: Option<MemberId>,
    pub term: u64,
    /// The index of the last entry that it has, and of the last that it applied.
    pub index: u64,
    pub applied: u64,
    pub is_learner: bool,
    pub db_bytes: u64,
    pub db_in_use_bytes: u64,
    /// From etcd 3.6 on.
    pub quota_bytes: Option<u64>,
    /// Alarms and errors, in its words.
    pub errors: Vec<String>,
    /// As it has applied them. A learner answers nobody's question for the list, and has none here.
    pub members: Vec<Member>,
    /// Whether a majority confirmed a read; not asked of a learner, which reads for nobody.
    pub reads: Fact<()>,
    /// How long it took to tell how it stands.
    pub took: Duration,
}

/// Asks the etcd at `endpoint`, which takes connections.
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

/// Whether a majority confirms a read. etcd has that confirmed before it looks who may read, so a refusal is one, too.
async fn reads(mut client: Client, patience: Duration) -> Fact<()> {
    let options = GetOptions::new().with_count_only();
    match time::timeout(patience, client.get(HEALTH_KEY, Some(options))).await {
        Ok(Ok(_)) => Fact::Known(()),
        Ok(Err(error)) if is_refused(&error) => Fact::Known(()),
        Ok(Err(error)) => Fact::Unknown(sentence(&error)),
        Err(_) => Fact::Unknown(format!("no majority confirmed a read within {:.1} s", patience.as_secs_f64())),
    }
}
