//! An etcd of any size, asked one member at a time: each member's state, its own member list, and the holder of the member-change
//! lock.

use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use etcd_client::{Client, GetOptions, SortTarget};
use tokio::time;

use super::client::{self, Credentials, Endpoint, Error};
use crate::decide::evidence::MemberId;
use crate::os::clock::Deadline;

/// The prefix of the member-change lock's keys. The lock keeps two commands from changing the members at once. A key's value
/// describes the command that holds it.
pub const LOCK: &str = "tandem/member-change/";
/// The part of the time limit for asking one member that is reserved for requests that need no majority.
const FOR_THE_LIST: Duration = Duration::from_millis(500);
/// tonic's error text for a request that timed out. tonic's timer may end a moment before this program's.
const EXPIRED: &str = "Timeout expired";
/// etcd's text for the alarm that a member's data differs from that of other members.
const CORRUPT: &str = "alarm:CORRUPT";
const NO_SPACE: &str = "alarm:NOSPACE";

/// A member, as one etcd's member list describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listed {
    pub id: MemberId,
    /// The member's name; empty if the member has never started.
    pub name: String,
    pub peer_urls: Vec<String>,
    /// The member's client URLs; empty if the member has never started.
    pub client_urls: Vec<String>,
    pub is_learner: bool,
}

/// The state that one member reports about itself and its cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    pub cluster_id: u64,
    pub member_id: MemberId,
    /// The id of the leader, as far as the member knows; `None` where it knows none.
    pub leader: Option<MemberId>,
    pub is_learner: bool,
    pub index: u64,
    pub applied: u64,
    pub db_bytes: u64,
    /// True if the member reports the alarm that data differs between members.
    pub is_corrupt: bool,
    /// True if any member has raised the alarm that its database is full. No member then accepts writes.
    pub has_no_space: bool,
    /// The result of a linearizable read through the member, just before `list` was read. The error text is the reason of a
    /// failure.
    pub confirmed: Result<(), String>,
    /// The member list as of the last entry that this member has applied; `None` from a learner, which refuses to list the
    /// members.
    pub list: Option<Vec<Listed>>,
    /// The member-change lock; `None` while no command holds it.
    pub change: Option<Lock>,
}

/// The member-change lock, which a command holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lock {
    pub key: String,
    /// The description of the command that holds the lock.
    pub holder: String,
}

/// The outcome of asking a member for its state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Heard {
    Said(Box<Said>),
    /// The member did not answer. The text is the reason.
    Nothing(String),
    /// The member could not be asked, because of an error on this side. The text is the error.
    Unknown(String),
}

/// Asks the member at `endpoint` for its state, in at most `patience`.
pub(super) async fn ask(endpoint: &Endpoint, credentials: &Credentials, patience: Duration) -> Result<Said, Error> {
    // Without a majority the read uses all of its time, and the rest of the state is still wanted.
    let read = patience.saturating_sub(FOR_THE_LIST);
    client::ask(endpoint, credentials, patience, async move |client| conversation(client, read).await).await
}

/// Tries a TCP connection to `endpoint` within `patience`. The error is the outcome to report for the member.
pub(super) fn listens(endpoint: &Endpoint, patience: Duration) -> Result<(), Heard> {
    let deadline = Deadline::after(patience);
    let addresses = endpoint.address.to_socket_addrs();
    let address = match addresses.map(|mut addresses| addresses.next()) {
        Ok(Some(address)) => address,
        Ok(None) => return Err(Heard::Unknown(format!("{} is no address", endpoint.address))),
        Err(error) => return Err(Heard::Unknown(format!("{} is no address: {error}", endpoint.address))),
    };
    // A time-out of zero is refused with another kind of error.
    let left = deadline.left().max(Duration::from_millis(1));
    let refused = |error| Heard::Nothing(format!("cannot connect to {}: {error}", endpoint.address));
    TcpStream::connect_timeout(&address, left).map(drop).map_err(refused)
}

/// Converts the result of asking a member. A server that accepts connections and does not answer counts as not healthy. An error on this
/// side, such as a bad certificate, shows nothing about the member.
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
    // The list is read after the read, so that it is at least as new as what the majority has confirmed.
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

/// Reads the oldest key of the member-change lock by a linearizable read. Returns whether a majority confirmed the read, and the lock. If
/// etcd's auth refuses the read, it counts as confirmed, because the majority's confirmation comes first.
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

/// Returns the member-change lock of a key and its value. The value is empty if etcd's own lock service took the lock.
fn of_key(key: &[u8], value: &[u8]) -> Lock {
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    let key = text(key);
    let holder = if value.is_empty() { format!("another program has the lock {key}") } else { text(value) };
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
