//! Questions to one etcd over TLS, in the caller's tokio runtime. A caller without a runtime uses [`blocking`](super::blocking).
//! Each answer has a time limit, and nothing here blocks the runtime's other tasks.

use std::future::Future;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::time::Duration;

use etcd_client::{
    AlarmAction, AlarmType, Client, ConnectOptions, GetOptions, Identity, MemberAddOptions, StatusResponse,
};
use tokio::net::TcpStream;
use tokio::task::JoinError;
use tokio::time;

pub use super::error::Error;
pub use super::pem::PEM_LIMIT;
pub(super) use super::pem::read_pem;
use super::pem::unusable;
use super::{channel, common_name, pem};
use crate::adapters::https::wrong::{self, Names, Wrong};
use crate::base::Fact;
use crate::decide::evidence::{Etcd, Member, MemberId, NoPermission};

/// The client certificate, its key and the authority that one etcd is asked with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credentials {
    pub trusted_ca_file: PathBuf,
    pub cert_file: PathBuf,
    pub key_file: PathBuf,
}

/// The address of an etcd's client port.
#[derive(Clone, Debug)]
pub struct Endpoint {
    /// `https://host:port`
    pub url: String,
    /// `host:port`, for a plain TCP connection that checks that a server listens.
    pub address: String,
}

/// The key that etcdctl's own health check reads; it need not exist.
pub(super) const HEALTH_KEY: &str = "health";
/// The standard library's text for a connection that took too long.
const TOO_LATE: &str = "connection timed out";
/// tonic's text for every failure of its own.
const OF_THE_TRANSPORT: &str = "transport error";
/// The lease time in seconds; a lease that is not revoked expires after it.
const CHECK_LEASE_S: i64 = 5;

/// etcd's texts for a request that its auth refuses, whatever the gRPC code. Each follows `etcdserver: ` or `auth: `.
const NO_PERMISSION: [&str; 5] =
    ["permission denied", "user name is empty", "user name not found", "user not found", "invalid auth token"];
/// A learner's answer to every read.
const LEARNER: &str = "rpc not supported for learner";

/// The state that an etcd reported, and whether it refused part of the question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    pub etcd: Fact<Etcd>,
    pub no_permission: Option<Box<NoPermission>>,
    /// The member's raft state, set where it has no leader.
    pub leaderless: Option<Raft>,
    /// Whether etcd accepted the connection and then did not answer in time. Where auth refuses this agent, this is about the
    /// read that shows whether etcd serves: without a leader that read waits, as it does on a slow etcd.
    pub is_too_late: bool,
}

/// The identity of a member, with its cluster, and its term.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Raft {
    pub cluster_id: u64,
    pub member_id: MemberId,
    /// The term of the last entry that the member has applied.
    pub term: u64,
    /// The index of that entry.
    pub applied: u64,
}

impl From<Fact<Etcd>> for Answer {
    fn from(etcd: Fact<Etcd>) -> Self {
        Self { etcd, no_permission: None, leaderless: None, is_too_late: false }
    }
}

/// Asks the etcd at `endpoint` for its state and its member list. A refused connection is `Absent`. Silence is `Unknown`, and so
/// is all that etcd does not disclose to this agent.
pub async fn observe(endpoint: &Endpoint, credentials: &Credentials, timeout: Duration) -> Answer {
    match listens(&endpoint.address, timeout).await {
        Fact::Known(()) => {}
        Fact::Absent => return Fact::Absent.into(),
        Fact::Unknown(why) => return Fact::Unknown(why).into(),
        Fact::NotAsked => return Fact::NotAsked.into(),
    }
    match ask(endpoint, credentials, timeout, state).await {
        Ok((raft, etcd)) => Answer { leaderless: etcd.leader.is_none().then_some(raft), ..Fact::Known(etcd).into() },
        Err(error) => {
            let etcd = Fact::Unknown(error.to_string());
            let is_too_late = error.is_too_late();
            let Error::NoPermission { user, .. } = error else { return Answer { is_too_late, ..etcd.into() } };
            let read = reads(endpoint, credentials, timeout).await;
            let no_permission = Some(Box::new(NoPermission { user, leaderless: read.is_err() }));
            Answer { no_permission, is_too_late: read.is_err_and(|error| error.is_too_late()), ..etcd.into() }
        }
    }
}

/// Reads a key through an etcd that refused to disclose its state. etcd has a majority confirm the read before it checks
/// permissions, so a permission error counts as success. A learner serves no reads, and counts as success too.
async fn reads(endpoint: &Endpoint, credentials: &Credentials, timeout: Duration) -> Result<(), Error> {
    match confirmed_read(endpoint, credentials, timeout).await {
        Err(Error::NoPermission { .. }) => Ok(()),
        Err(Error::Client { why, .. }) if why.contains(LEARNER) => Ok(()),
        read => read,
    }
}

/// Moves leadership from the etcd at `endpoint` to member `to`.
pub async fn move_leader(
    endpoint: &Endpoint,
    credentials: &Credentials,
    to: MemberId,
    timeout: Duration,
) -> Result<(), Error> {
    ask(endpoint, credentials, timeout, async move |mut client| client.move_leader(to).await.map(drop)).await
}

pub async fn remove_member(
    endpoint: &Endpoint,
    credentials: &Credentials,
    id: MemberId,
    timeout: Duration,
) -> Result<(), Error> {
    ask(endpoint, credentials, timeout, async move |mut client| client.member_remove(id).await.map(drop)).await
}

/// Adds a learner with the peer URL `peer_url`.
pub async fn add_learner(
    endpoint: &Endpoint,
    credentials: &Credentials,
    peer_url: &str,
    timeout: Duration,
) -> Result<(), Error> {
    let urls = [peer_url.to_owned()];
    let options = MemberAddOptions::new().with_is_learner();
    ask(endpoint, credentials, timeout, async move |mut client| client.member_add(urls, Some(options)).await.map(drop))
        .await
}

/// Promotes learner `id` to a voter.
pub async fn promote_member(
    endpoint: &Endpoint,
    credentials: &Credentials,
    id: MemberId,
    timeout: Duration,
) -> Result<(), Error> {
    ask(endpoint, credentials, timeout, async move |mut client| client.member_promote(id).await.map(drop)).await
}

/// Runs a linearizable read, which a majority confirms.
pub async fn confirmed_read(endpoint: &Endpoint, credentials: &Credentials, timeout: Duration) -> Result<(), Error> {
    ask(endpoint, credentials, timeout, async |mut client| {
        client.get(HEALTH_KEY, Some(GetOptions::new().with_count_only())).await.map(drop)
    })
    .await
}

/// Runs a write: grants a lease without keys, and revokes it at once.
pub async fn accepted_write(endpoint: &Endpoint, credentials: &Credentials, timeout: Duration) -> Result<(), Error> {
    ask(endpoint, credentials, timeout, async |mut client| {
        let lease = client.lease_grant(CHECK_LEASE_S, None).await?;
        client.lease_revoke(lease.id()).await.map(drop)
    })
    .await
}

/// Commits one more entry to the log: the question for alarms, which goes through raft as a write does. A full database refuses
/// every write, even a lease, but answers this.
pub async fn committed_entry(endpoint: &Endpoint, credentials: &Credentials, timeout: Duration) -> Result<(), Error> {
    ask(endpoint, credentials, timeout, async |mut client| {
        client.alarm(AlarmAction::Get, AlarmType::None, None).await.map(drop)
    })
    .await
}

async fn state(mut client: Client) -> Result<(Raft, Etcd), etcd_client::Error> {
    let status = client.status().await?;
    let raft = Raft {
        cluster_id: status.header().map(etcd_client::ResponseHeader::cluster_id).unwrap_or_default(),
        member_id: status.header().map(etcd_client::ResponseHeader::member_id).unwrap_or_default(),
        term: status.raft_term(),
        applied: status.raft_applied_index(),
    };
    let members = members(&mut client, &status).await?;
    // A new voter must have all that the leader had committed when it listed it (`upkeep`). So the index is read after the list.
    let leads = status.leader() == raft.member_id;
    let index = if leads { client.status().await?.raft_index() } else { status.raft_index() };
    let etcd = Etcd {
        cluster_id: raft.cluster_id,
        member_id: raft.member_id,
        leader: Some(status.leader()).filter(|leader| *leader != 0),
        term: raft.term,
        index,
        is_learner: status.is_learner(),
        members,
        db_bytes: u64::try_from(status.db_size()).unwrap_or_default(),
        alarms: status.errors().to_vec(),
    };
    Ok((raft, etcd))
}

/// Returns the member list of the etcd that reported `status`. A learner refuses this question ("rpc not supported for learner"),
/// so its list is empty.
pub(super) async fn members(client: &mut Client, status: &StatusResponse) -> Result<Vec<Member>, etcd_client::Error> {
    if status.is_learner() {
        return Ok(Vec::new());
    }
    let member = |member: &etcd_client::Member| Member {
        id: member.id(),
        name: member.name().to_owned(),
        peer_urls: member.peer_urls().to_vec(),
        is_learner: member.is_learner(),
    };
    Ok(client.member_list().await?.members().iter().map(member).collect())
}

/// Tries a TCP connection to `address`.
async fn listens(address: &str, timeout: Duration) -> Fact<()> {
    let too_late = || std::io::Error::new(ErrorKind::TimedOut, TOO_LATE);
    let looked_up = time::timeout(timeout, tokio::net::lookup_host(address)).await;
    let resolved = match looked_up.unwrap_or_else(|_| Err(too_late())) {
        Ok(mut addresses) => addresses.next(),
        Err(error) => return Fact::Unknown(format!("{address} is no address: {error}")),
    };
    let Some(resolved) = resolved else { return Fact::Unknown(format!("{address} is no address")) };
    let unknown = |error: std::io::Error| Fact::Unknown(format!("cannot connect to {address}: {error}"));
    if timeout.is_zero() {
        return unknown(too_late());
    }
    match time::timeout(timeout, TcpStream::connect(resolved)).await.unwrap_or_else(|_| Err(too_late())) {
        Ok(_) => Fact::Known(()),
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => Fact::Absent,
        Err(error) => unknown(error),
    }
}

/// Runs one conversation with the etcd at `endpoint`, for at most `timeout`.
pub(super) async fn ask<T, F>(
    endpoint: &Endpoint,
    credentials: &Credentials,
    timeout: Duration,
    conversation: impl FnOnce(Client) -> F,
) -> Result<T, Error>
where
    F: Future<Output = Result<T, etcd_client::Error>>,
{
    let began = time::Instant::now();
    let mut options = ConnectOptions::new().with_connect_timeout(timeout).with_timeout(timeout);
    let mut channel = channel::Builder(None);
    // The agent's own addresses all begin with https://, but an operator may type another scheme.
    if !endpoint.url.starts_with("http://") {
        let Ok(tls) = time::timeout(timeout, tls(endpoint, credentials)).await else {
            let path = credentials.cert_file.display().to_string();
            let source = std::io::Error::new(ErrorKind::TimedOut, TOO_LATE);
            return Err(Error::Certificate { path, source });
        };
        let tls = tls?;
        // This makes an address without a scheme one of TLS, and reports an unusable key at once.
        options = options.with_tls(tls.options.clone());
        channel = channel::Builder(Some(tls));
    }
    let whole = async {
        let client = Client::connect_with_balanced_channel([endpoint.url.as_str()], Some(options), channel).await?;
        conversation(client).await
    };
    match time::timeout(timeout.saturating_sub(began.elapsed()), whole).await {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(failure(endpoint, credentials, &error, (began, timeout)).await),
        Err(_) => Err(too_late(endpoint, timeout)),
    }
}

pub(super) fn too_late(endpoint: &Endpoint, timeout: Duration) -> Error {
    Error::TimedOut { url: endpoint.url.clone(), seconds: timeout.as_secs_f64() }
}

/// Translates `error`. A refusal stays a refusal without the user's name if the certificate cannot be read in time.
async fn failure(
    endpoint: &Endpoint,
    credentials: &Credentials,
    error: &etcd_client::Error,
    (began, timeout): (time::Instant, Duration),
) -> Error {
    let is_over = began.elapsed() >= timeout;
    let (url, why) = (endpoint.url.clone(), sentence(error));
    if !is_no_permission(&why) {
        // The transport has the same limit, and on a busy machine its error may arrive before the limit fires.
        if is_over {
            return too_late(endpoint, timeout);
        }
        let left = timeout.saturating_sub(began.elapsed());
        return mistrust(endpoint, credentials, error, left).await.unwrap_or(Error::Client { url, why });
    }
    let cert_file = credentials.cert_file.clone();
    let read = beside_the_runtime(move || common_name::of_file(&cert_file));
    let user = time::timeout(timeout, read).await.ok().and_then(Result::ok).flatten();
    Error::NoPermission { url, user, why }
}

/// Returns the file that makes this client or etcd reject the other's certificate, or what etcd shows, where `error` is about
/// trust.
async fn mistrust(
    endpoint: &Endpoint,
    credentials: &Credentials,
    error: &etcd_client::Error,
    left: Duration,
) -> Option<Error> {
    // The client's own error has no source, but the errors inside it have one.
    let of_tls = match error {
        etcd_client::Error::GRpcStatus(status) => wrong::of_tls(status),
        etcd_client::Error::TransportError(error) => wrong::of_tls(error),
        _ => None,
    };
    if of_tls.is_none() && !error.to_string().contains(OF_THE_TRANSPORT) {
        return None;
    }
    let own = credentials.clone();
    let unusable = time::timeout(left, beside_the_runtime(move || unusable_file(&own))).await;
    if let Ok(Ok(Some(file))) = unusable {
        return Some(file);
    }
    let (authorities, certificate) = (&credentials.trusted_ca_file, &credentials.cert_file);
    let (authorities, certificate) = (authorities.display().to_string(), certificate.display().to_string());
    let why = wrong::handshake(of_tls?, Names { authorities: &authorities, certificate: Some(&certificate) })?;
    Some(Error::Client { url: endpoint.url.clone(), why })
}

/// Returns the file of `credentials` that no client could use, with the reason.
fn unusable_file(credentials: &Credentials) -> Option<Error> {
    let Credentials { trusted_ca_file, cert_file, key_file } = credentials;
    if let Some(why) = wrong::authorities(&read_pem(trusted_ca_file).ok()?) {
        return Some(unusable(trusted_ca_file, &why));
    }
    let (certificate, key) = (read_pem(cert_file).ok()?, read_pem(key_file).ok()?);
    Some(match wrong::identity(&certificate, &key, &cert_file.display().to_string())? {
        Wrong::Certificate(why) => unusable(cert_file, &why),
        Wrong::Key(why) => unusable(key_file, &why),
    })
}

/// Reads files in a separate thread, so that a disk or a file server that hangs blocks no other task of the runtime.
async fn beside_the_runtime<T: Send + 'static>(read: impl FnOnce() -> T + Send + 'static) -> Result<T, JoinError> {
    tokio::task::spawn_blocking(read).await
}

/// Returns whether etcd's auth refused this one question.
pub(super) fn is_refused(error: &etcd_client::Error) -> bool {
    is_no_permission(&sentence(error))
}

/// Returns whether `words` are etcd's text for a user without permission.
fn is_no_permission(words: &str) -> bool {
    let words = words.strip_prefix("etcdserver: ").or_else(|| words.strip_prefix("auth: "));
    words.is_some_and(|words| NO_PERMISSION.contains(&words))
}

/// Returns the error's own text, without the prefixes of the transport.
pub(super) fn sentence(error: &etcd_client::Error) -> String {
    if let etcd_client::Error::GRpcStatus(status) = error {
        return status.message().to_owned();
    }
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    text
}

async fn tls(endpoint: &Endpoint, credentials: &Credentials) -> Result<channel::Tls, Error> {
    let credentials = credentials.clone();
    let read = beside_the_runtime(move || read_tls(&credentials)).await;
    read.unwrap_or_else(|error| Err(Error::Client { url: endpoint.url.clone(), why: error.to_string() }))
}

fn read_tls(credentials: &Credentials) -> Result<channel::Tls, Error> {
    let authorities = pem::certificates(&credentials.trusted_ca_file)?;
    let identity = Identity::from_pem(read_pem(&credentials.cert_file)?, read_pem(&credentials.key_file)?);
    Ok(channel::Tls::new(authorities, identity))
}

#[cfg(test)]
mod tests;
