//! An etcd of any size, asked one member at a time: what each says of itself, its own member list, and who holds the lock of a change.

use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use etcd_client::{Client, GetOptions, SortTarget};
use tokio::time;

use super::client::{self, Credentials, Endpoint, Error};
use crate::decide::evidence::MemberId;
use crate::os::clock::Deadline;

/// What the keys of the lock begin with that keeps two changes of the members apart; the value names its holder.
pub const LOCK: &str = "tandem/member-change/";
/// How much of a member's time is kept for what needs no majority.
const FOR_THE_LIST: Duration = Duration::from_millis(500);
/// What the transport says of an answer that took too long, as it may a moment before we do.
const EXPIRED: &str = "Timeout expired";
/// What etcd calls an alarm that the data of members differ, and one that a database is full.
const CORRUPT: &str = "alarm:CORRUPT";
const NO_SPACE: &str = "alarm:NOSPACE";

/// A member in a member list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listed {
    pub id: MemberId,
    /// Empty where it never started.
    pub name: String,
    pub peer_urls: Vec<String>,
    /// Empty where it never started, too.
    pub client_urls: Vec<String>,
    pub is_learner: bool,
}

/// What a member says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    pub cluster_id: u64,
    pub member_id: MemberId,
    /// `None` where it has none.
    pub leader: Option<MemberId>,
    pub is_learner: bool,
    pub index: u64,
    pub applied: u64,
    pub db_bytes: u64,
    /// Whether it raises an alarm that its data are not those of the others.
    pub is_corrupt: bool,
    /// Whether a member has no space for another write, so that none takes any.
    pub has_no_space: bool,
    /// Whether a majority confirmed a read, just before the list was read; why not.
    pub confirmed: Result<(), String>,
    /// Its member list, as it has applied it; a learner tells none.
    pub list: Option<Vec<Listed>>,
    /// Who holds the lock of a change.
    pub change: Option<Lock>,
}

/// The lock of a change, while somebody has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lock {
    pub key: String,
    /// Who has it, in his words.
    pub holder: String,
}

/// What came of a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Heard {
    Said(Box<Said>),
    /// It was asked, and there was no answer: why.
    Nothing(String),
    /// It could not be asked: why.
    Unknown(String),
}

/// Asks the member at `endpoint`, for at most `patience`.
pub(super) async fn ask(endpoint: &Endpoint, credentials: &Credentials, patience: Duration) -> Result<Said, Error> {
    // Without a majority the read is what takes all of its time, and the rest is to be told all the same.
    let read = patience.saturating_sub(FOR_THE_LIST);
    client::ask(endpoint, credentials, patience, async move |client| conversation(client, read).await).await
}

/// Whether anybody listens there, within `patience`; else what is heard instead.
pub(super) fn listens(endpoint: &Endpoint, patience: Duration) -> Result<(), Heard> {
    let deadline = Deadline::after(patience);
    let addresses = endpoint.address.to_socket_addrs();
    let address = match addresses.map(|mut addresses| addresses.next()) {
        Ok(Some(address)) => address,
        Ok(None) => return Err(Heard::Unknown(format!("{} is no address", endpoint.address))),
        Err(error) => return Err(Heard::Unknown(format!("{} is no address: {error}", endpoint.address))),
    };
    // Zero is no time to wait, and an error of another kind.
    let left = deadline.left().max(Duration::from_millis(1));
    let refused = |error| Heard::Nothing(format!("cannot connect to {}: {error}", endpoint.address));
    TcpStream::connect_timeout(&address, left).map(drop).map_err(refused)
}

/// The answer, or what is heard instead: who takes connections and does not answer is no member that is well, and what keeps us
/// from being understood says nothing of it.
pub(super) fn heard(answer: Result<Said, Error>) -> Heard {
    match answer {
        Ok(said) => Heard::Said(Box::new(said)),
        Err(error @ Error::TimedOut { .. }) => Heard::Nothing(error.to_string()),
        Err(Error::Client { url, why }) if why.contains(EXPIRED) => {
            Heard::Nothing(format!("{url} gave no answer within its time"))
        }
        Err(error) => Heard::Unknown(error.to_string()),
    }
}

async fn conversation(mut client: Client, read: Duration) -> Result<Said, etcd_client::Error> {
    let status = client.status().await?;
    let (confirmed, change) = if status.is_learner() {
        (Err("a learner reads for nobody".to_owned()), None)
    } else {
        let too_late = (Err(format!("no answer within {:.1} s", read.as_secs_f64())), None);
        time::timeout(read, lock(&mut client)).await.unwrap_or(too_late)
    };
    // Behind the read, so that the list is not older than what a majority has.
    let list = if status.is_learner() { None } else { Some(list(&mut client).await?) };
    let header = status.header();
    Ok(Said {
        cluster_id: header.map(etcd_client::ResponseHeader::cluster_id).unwrap_or_default(),
        member_id: header.map(etcd_client::ResponseHeader::member_id).unwrap_or_default(),
        leader: Some(status.leader()).filter(|leader| *leader != 0),
        is_learner: status.is_learner(),
        index: status.raft_index(),
        applied: status.raft_applied_index(),
        db_bytes: u64::try_from(status.db_size()).unwrap_or_default(),
        is_corrupt: status.errors().iter().any(|error| error.contains(CORRUPT)),
        has_no_space: status.errors().iter().any(|error| error.contains(NO_SPACE)),
        confirmed,
        list,
        change,
    })
}

/// The lock's first key, which has it, by a read that a majority confirms. A read that etcd's auth refuses was confirmed before; then
/// nobody knows of the lock.
pub(super) async fn lock(client: &mut Client) -> (Result<(), String>, Option<Lock>) {
    let first =
        GetOptions::new().with_prefix().with_limit(1).with_sort(SortTarget::Create, etcd_client::SortOrder::Ascend);
    match client.get(LOCK, Some(first)).await {
        Ok(answer) => (Ok(()), answer.kvs().first().map(|key| of_key(key.key(), key.value()))),
        Err(error) if client::is_refused(&error) => {
            let holder = format!("its lock is not shown: {}", client::sentence(&error));
            (Ok(()), Some(Lock { key: String::new(), holder }))
        }
        Err(error) => (Err(client::sentence(&error)), None),
    }
}

/// etcd's own lock service writes no value.
fn of_key(key: &[u8], value: &[u8]) -> Lock {
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    let key = text(key);
    let holder = if value.is_empty() { format!("somebody has the lock {key}") } else { text(value) };
    Lock { key, holder }
}

async fn list(client: &mut Client) -> Result<Vec<Listed>, etcd_client::Error> {
    let listed = |member: &etcd_client::Member| Listed {
        id: member.id(),
        name: member.name().to_owned(),
        peer_urls: member.peer_urls().to_vec(),
        client_urls: member.client_urls().to_vec(),
        is_learner: member.is_learner(),
    };
    Ok(client.member_list().await?.members().iter().map(listed).collect())
}
