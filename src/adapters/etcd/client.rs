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

/// Paths of the files with which this program connects to etcd: the authority that signed etcd's certificate, and a client
/// certificate with its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credentials {
    pub trusted_ca_file: PathBuf,
    pub cert_file: PathBuf,
    pub key_file: PathBuf,
}

/// The address of an etcd's client port.
#[derive(Clone, Debug)]
pub struct Endpoint {
    /// `https://host:port` of the client port.
    pub url: String,
    /// `host:port` of the client port. A plain TCP connection to it shows whether a server listens.
    pub address: String,
}

/// The key that etcdctl's own health check reads. The key need not exist.
pub(super) const HEALTH_KEY: &str = "health";
/// The standard library's error text for a connection that timed out.
const TOO_LATE: &str = "connection timed out";
/// The text of every error that tonic, the gRPC library, raises itself. Errors from etcd have other texts.
const OF_THE_TRANSPORT: &str = "transport error";
/// The lifetime in seconds of the lease with which [`accepted_write`] tests whether etcd accepts writes. If the revocation fails, the lease
/// ends after this time.
const CHECK_LEASE_S: i64 = 5;

/// etcd's error texts for a request that its auth refuses, without the prefix `etcdserver: ` or `auth: `.
const NO_PERMISSION: [&str; 5] =
    ["permission denied", "user name is empty", "user name not found", "user not found", "invalid auth token"];
/// The error text with which a learner answers every read.
const LEARNER: &str = "rpc not supported for learner";

/// The result of [`observe`]: the state of an etcd, or what kept this program from learning it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    pub etcd: Fact<Etcd>,
    pub no_permission: Option<Box<NoPermission>>,
    /// The member's ids, term and applied index if it has no leader; else `None`.
    pub leaderless: Option<Raft>,
    /// True if etcd accepted the connection and then did not answer in time.
    ///
    /// If etcd's auth refuses the request for the state, the program sends a linearizable read instead. In that case the field is true if
    /// the read timed out. Such a read also times out on an etcd without a leader.
    pub is_too_late: bool,
}

/// The ids of a member and its cluster, and the position up to which the member has applied its log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Raft {
    pub cluster_id: u64,
    pub member_id: MemberId,
    /// The term of the last entry that the member has applied.
    pub term: u64,
    /// The index of the last entry that the member has applied.
    pub applied: u64,
}

impl From<Fact<Etcd>> for Answer {
    fn from(etcd: Fact<Etcd>) -> Self {
        Self { etcd, no_permission: None, leaderless: None, is_too_late: false }
    }
}

/// Asks the etcd at `endpoint` for its state and its member list. The result is `Absent` if the connection is refused. It is
/// `Unknown` if etcd does not answer, or if etcd's auth refuses a request.
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

/// Reads a key through an etcd that has refused to disclose its state. A majority confirms the read before etcd checks
/// permissions, so a permission error counts as success. A learner serves no reads, so its error counts as success, too.
async fn reads(endpoint: &Endpoint, credentials: &Credentials, timeout: Duration) -> Result<(), Error> {
    match confirmed_read(endpoint, credentials, timeout).await {
        Err(Error::NoPermission { .. }) => Ok(()),
        Err(Error::Client { why, .. }) if why.contains(LEARNER) => Ok(()),
        read => read,
    }
}

/// Asks the leader at `endpoint` to hand its leadership over to the member `to`.
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

/// Adds a learner with the peer URL `peer_url` to the cluster.
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

/// Runs a linearizable read. It succeeds only if a majority confirms it.
pub async fn confirmed_read(endpoint: &Endpoint, credentials: &Credentials, timeout: Duration) -> Result<(), Error> {
    ask(endpoint, credentials, timeout, async |mut client| {
        client.get(HEALTH_KEY, Some(GetOptions::new().with_count_only())).await.map(drop)
    })
    .await
}

/// Tests whether etcd accepts writes: grants a lease without keys, and revokes it at once.
pub async fn accepted_write(endpoint: &Endpoint, credentials: &Credentials, timeout: Duration) -> Result<(), Error> {
    ask(endpoint, credentials, timeout, async |mut client| {
        let lease = client.lease_grant(CHECK_LEASE_S, None).await?;
        client.lease_revoke(lease.id()).await.map(drop)
    })
    .await
}

/// Makes etcd commit one more entry to its log. For this, requests the list of alarms, which goes through Raft. A full database refuses
/// every write, even of a lease, but not this request.
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

/// Returns the member list of the etcd that reported `status`; empty for a learner, because a learner refuses to list the
/// members.
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

/// Returns whether a server listens at `address`. The result is `Absent` if the connection is refused.
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

/// Connects to the etcd at `endpoint` and runs the requests of `conversation`, in at most `timeout` together.
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

/// Returns this program's error for an `error` of etcd-client. If etcd's auth refused the request, the error names the user, as far as the
/// client certificate can be read in time.
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

/// Returns the error that explains a failed TLS handshake: the file of `credentials` that is unusable, or what is wrong with
/// etcd's certificate. Returns `None` if `error` has another cause.
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

/// Returns an error for the file of `credentials` that no client could use; `None` if each file is usable.
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

/// Reads files in a separate thread, so that a hanging disk or file server does not block the other tasks of the runtime.
async fn beside_the_runtime<T: Send + 'static>(read: impl FnOnce() -> T + Send + 'static) -> Result<T, JoinError> {
    tokio::task::spawn_blocking(read).await
}

/// Returns whether `error` means that etcd's auth refused the request.
pub(super) fn is_refused(error: &etcd_client::Error) -> bool {
    is_no_permission(&sentence(error))
}

/// Returns whether the error text `words` is etcd's text for a user without permission.
fn is_no_permission(words: &str) -> bool {
    let words = words.strip_prefix("etcdserver: ").or_else(|| words.strip_prefix("auth: "));
    words.is_some_and(|words| NO_PERMISSION.contains(&words))
}

/// Returns the text of `error`: only etcd's message if etcd sent the error, else the text with all its causes.
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
