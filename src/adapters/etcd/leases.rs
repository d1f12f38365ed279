//! Leases, found by the node that their keys name. Each lease of a node is found with all of its keys, and can be revoked.

use std::collections::BTreeMap;
use std::time::Duration;

use etcd_client::{Client, GetOptions, LeaseTimeToLiveOptions};

use super::client::{self, Credentials, Endpoint, Error};

/// The number of keys that one request asks for. The requests ask for no values, and keys are short.
const PAGE: i64 = 1000;
/// The text that is shown in place of keys that etcd's auth does not let this program read.
const HIDDEN: &str = "(not to be read)";
/// etcd's error text for a lease that has expired or was revoked.
const NO_LEASE: &str = "etcdserver: requested lease not found";

/// The place in a key-value pair where the name of the owning node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// The value is the name of the node.
    Value,
    /// The part after the last slash of the key is the name of the node.
    Name,
    /// The value, or the part after the last slash of the key, is the name of the node.
    Either,
}

/// The rule by which a key belongs to `node`. A name must be equal to `node`, byte by byte.
#[derive(Clone, Debug)]
pub struct Own {
    /// The prefix of all keys that can belong to the node.
    pub prefix: String,
    pub node: String,
    pub mark: Mark,
}

/// A lease to which at least one key of the selected node is attached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    pub id: i64,
    /// The keys of the selected node that are attached to the lease.
    pub own: Vec<String>,
    /// The other keys that are attached to the lease: those of other nodes, and those without a known owner.
    pub others: Vec<String>,
}

impl Own {
    /// Returns whether the last part of `key` makes it a key of `node`. A key without the prefix is never a key of `node`.
    fn is_by_name(&self, key: &[u8]) -> bool {
        let last = key.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
        self.is_below(key) && self.mark != Mark::Value && last == self.node.as_bytes()
    }

    fn is_by_value(&self, key: &[u8], value: &[u8]) -> bool {
        self.is_below(key) && self.mark != Mark::Name && value == self.node.as_bytes()
    }

    fn is_below(&self, key: &[u8]) -> bool {
        key.starts_with(self.prefix.as_bytes())
    }

    /// Returns the end of the range of keys with the prefix: the first key after them.
    fn end(&self) -> Vec<u8> {
        let mut end = self.prefix.clone().into_bytes();
        while let Some(last) = end.pop() {
            if let Some(next) = last.checked_add(1) {
                end.push(next);
                break;
            }
        }
        end
    }
}

/// Finds the leases to which a key of the node in `own` is attached, each with all of its keys. All reads are linearizable.
pub async fn find(
    endpoint: &Endpoint,
    credentials: &Credentials,
    own: &Own,
    timeout: Duration,
) -> Result<Vec<Lease>, Error> {
    client::ask(endpoint, credentials, timeout, async |client| of_node(client, own).await).await
}

/// Revokes the lease `id`, which deletes all of its keys. A lease that no longer exists is no error.
pub async fn revoke(endpoint: &Endpoint, credentials: &Credentials, id: i64, timeout: Duration) -> Result<(), Error> {
    let done = client::ask(endpoint, credentials, timeout, async |mut client| client.lease_revoke(id).await).await;
    match done {
        Err(Error::Client { why, .. }) if why == NO_LEASE => Ok(()),
        other => other.map(drop),
    }
}

async fn of_node(mut client: Client, own: &Own) -> Result<Vec<Lease>, etcd_client::Error> {
    let mut leases = BTreeMap::new();
    for (key, id) in leased(&mut client, own).await? {
        // The mark `Name` decides by the name. The others need the value.
        let may_be_own = own.mark != Mark::Name || own.is_by_name(&key);
        if may_be_own && !leases.contains_key(&id) && whose(&mut client, own, &key, id).await? == Whose::Own {
            leases.insert(id, key);
        }
    }
    let mut found = Vec::new();
    for (id, key) in leases {
        let lease = whole(&mut client, own, id, &key).await?;
        found.extend(Some(lease).filter(|lease| !lease.own.is_empty()));
    }
    Ok(found)
}

/// Reads all keys that are attached to the lease `id`. `key` is one of these keys. It is returned even if auth hides the others.
async fn whole(client: &mut Client, own: &Own, id: i64, key: &[u8]) -> Result<Lease, etcd_client::Error> {
    let mut lease = Lease { id, own: Vec::new(), others: Vec::new() };
    let keys = match client.lease_time_to_live(id, Some(LeaseTimeToLiveOptions::new().with_keys())).await {
        Ok(answer) => answer.keys().to_vec(),
        // The lease has a key that this user may not read.
        Err(error) if client::is_refused(&error) => {
            lease.own.push(text(key));
            lease.others.push(HIDDEN.to_owned());
            return Ok(lease);
        }
        Err(error) => return Err(error),
    };
    for key in keys {
        match whose(client, own, &key, id).await? {
            Whose::Own => lease.own.push(text(&key)),
            Whose::Others => lease.others.push(text(&key)),
            Whose::Gone => {}
        }
    }
    Ok(lease)
}

/// Returns a key as text for a log, with its control characters replaced.
fn text(key: &[u8]) -> String {
    let plain = |letter: char| if letter.is_control() { char::REPLACEMENT_CHARACTER } else { letter };
    String::from_utf8_lossy(key).chars().map(plain).collect()
}

/// Returns each key with the prefix that is attached to a lease, and the lease's id.
async fn leased(client: &mut Client, own: &Own) -> Result<BTreeMap<Vec<u8>, i64>, etcd_client::Error> {
    let mut found = BTreeMap::new();
    let mut from = own.prefix.clone().into_bytes();
    loop {
        let options = GetOptions::new().with_range(own.end()).with_keys_only().with_limit(PAGE);
        let answer = client.get(from, Some(options)).await?;
        let leased = answer.kvs().iter().filter(|kv| kv.lease() != 0);
        found.extend(leased.map(|kv| (kv.key().to_vec(), kv.lease())));
        match answer.kvs().last().filter(|_| answer.more()) {
            // The next possible name.
            Some(last) => from = [last.key(), &[0]].concat(),
            None => return Ok(found),
        }
    }
}

/// The owner of a key that was attached to a lease.
#[derive(PartialEq, Eq)]
enum Whose {
    Own,
    Others,
    /// The key no longer exists, or is attached to another lease.
    Gone,
}

/// Returns the owner of a key that was attached to `lease` when it was listed.
async fn whose(client: &mut Client, own: &Own, key: &[u8], lease: i64) -> Result<Whose, etcd_client::Error> {
    if !own.is_below(key) {
        // The value of a key outside of the prefix is not read.
        return Ok(Whose::Others);
    }
    let answer = client.get(key, None).await?;
    let Some(kv) = answer.kvs().first().filter(|kv| kv.lease() == lease) else { return Ok(Whose::Gone) };
    let is_own = own.is_by_name(key) || own.is_by_value(key, kv.value());
    Ok(if is_own { Whose::Own } else { Whose::Others })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own(mark: Mark) -> Own {
        Own { prefix: "/service/".to_owned(), node: "node1".to_owned(), mark }
    }

    #[test]
    fn only_the_whole_name_fits_and_only_below_the_prefix() {
        let by_name = |mark, key: &str| own(mark).is_by_name(key.as_bytes());
        assert!(by_name(Mark::Name, "/service/db/members/node1") && by_name(Mark::Either, "/service/node1"));
        for key in ["/service/node10", "/service/a-node1", "/service/Node1", "/service/node1/", "/other/node1", "node1"]
        {
            assert!(!by_name(Mark::Name, key) && !by_name(Mark::Either, key), "{key}");
        }
        assert!(!by_name(Mark::Value, "/service/node1"));

        let by_value = |mark, value: &str| own(mark).is_by_value(b"/service/db/leader", value.as_bytes());
        assert!(by_value(Mark::Value, "node1") && by_value(Mark::Either, "node1"));
        for value in ["node10", "node", "", "node1\n", " node1", "{\"node\":\"node1\"}"] {
            assert!(!by_value(Mark::Value, value) && !by_value(Mark::Either, value), "{value}");
        }
        assert!(!by_value(Mark::Name, "node1"));
        assert!(!own(Mark::Value).is_by_value(b"/services/db/leader", b"node1"));
    }

    #[test]
    fn a_key_is_shown_in_one_line() {
        assert_eq!(text(b"/service/a\nERROR: b\x1b[31m\xff"), "/service/a\u{fffd}ERROR: b\u{fffd}[31m\u{fffd}");
    }

    #[test]
    fn a_prefix_ends_where_the_next_name_begins() {
        assert_eq!(own(Mark::Value).end(), b"/service0");
        let end = Own { prefix: "a\u{7f}".to_owned(), ..own(Mark::Value) }.end();
        assert_eq!(end, [b'a', 0x80]);
    }
}
