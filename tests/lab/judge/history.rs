//! Pure checks of the acknowledged writes: losses, forks and gaps. They check records, and do no I/O.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::host::node::Node;
use crate::load::stalls::{self, Span};

/// The header of an etcd response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// The revision of the store, which numbers the writes of one history.
    pub revision: i64,
    /// The Raft term of the newest entry that the member had applied when it responded.
    pub term: u64,
    pub cluster: u64,
    pub member: u64,
}

/// A response of etcd: an acknowledged write, or a linearizable read. Its times count from the beginning of the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ack {
    /// The written key, or a description of the read. Each try of a write has a key of its own.
    pub key: String,
    pub began: Duration,
    pub ended: Duration,
    /// The node to which the request was sent.
    pub node: Node,
    pub said: Header,
}

/// The contents of a node's key-value store at the end of a run.
#[derive(Clone, Debug, Default)]
pub struct Store {
    /// Each key with the revision of its last change.
    pub keys: BTreeMap<String, i64>,
    pub cluster: u64,
}

impl Store {
    /// Returns whether the store has the write at the revision with which it was acknowledged. If the key has another
    /// revision, another write put it.
    fn has(&self, ack: &Ack) -> bool {
        self.keys.get(&ack.key) == Some(&ack.said.revision)
    }
}

/// Two responses of etcd that cannot belong to one history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fork {
    pub first: Ack,
    pub second: Ack,
    pub why: &'static str,
}

impl Fork {
    fn new(first: &Ack, second: &Ack, why: &'static str) -> Self {
        Self { first: first.clone(), second: second.clone(), why }
    }
}

/// Finds proof that two nodes took writes independently of each other, or that one node returned a stale response.
///
/// In one history, every write has a revision of its own. A write that begins after another write was acknowledged
/// has a higher revision, even if another node took it. Two nodes that take writes independently both continue to
/// count from their last common revision. Each node always has clients that send requests to it only. After two
/// writes at most, the nodes have therefore used one revision twice, or a later write has a lower revision.
///
/// This holds for equal cluster ids, member ids and terms, too, because a forced new cluster may keep them. Two
/// cluster ids, or a term that falls, are proof as well.
///
/// This function does not detect a second history that begins above all revisions that the first one acknowledged.
/// [`beside`] does.
///
/// It detects the loss of an acknowledged write if the write's revision is used again, because a history without that
/// write is a second history.
pub fn forks(writes: &[Ack], reads: &[Ack]) -> Vec<Fork> {
    let mut found = Vec::new();
    let mut by_revision: BTreeMap<i64, &Ack> = BTreeMap::new();
    for ack in writes {
        if let Some(other) = by_revision.insert(ack.said.revision, ack) {
            found.push(Fork::new(other, ack, "both got the same revision"));
        }
    }
    let all: Vec<&Ack> = writes.iter().chain(reads).collect();
    if let Some(first) = all.first()
        && let Some(second) = all.iter().find(|ack| ack.said.cluster != first.said.cluster)
    {
        found.push(Fork::new(first, second, "they are of two clusters"));
    }
    let why = "the second began after the first was answered, but got a lower revision";
    found.extend(falls(&all, |ack| ack.said.revision, why));
    let why = "the second began after the first was answered, but in a lower term";
    found.extend(falls(&all, |ack| ack.said.term, why));
    found
}

/// Finds each response with a lower `height` than another response that had arrived before the request for the first one began.
fn falls<T: Ord + Copy>(answers: &[&Ack], height: impl Fn(&Ack) -> T, why: &'static str) -> Vec<Fork> {
    let mut found = Vec::new();
    let mut by_begin = answers.to_vec();
    by_begin.sort_by_key(|ack| ack.began);
    let mut by_end = answers.to_vec();
    by_end.sort_by_key(|ack| ack.ended);
    let mut ended = by_end.into_iter().peekable();
    let mut highest: Option<&Ack> = None;
    for ack in by_begin {
        while let Some(earlier) = ended.next_if(|earlier| earlier.ended < ack.began) {
            if highest.is_none_or(|highest| height(highest) < height(earlier)) {
                highest = Some(earlier);
            }
        }
        if let Some(earlier) = highest.filter(|earlier| height(earlier) > height(ack)) {
            found.push(Fork::new(earlier, ack, why));
        }
    }
    found
}

/// Finds acknowledged writes that are not in the final history. Either another write has their revision, or another
/// member acknowledged a later write in a history without them.
pub fn beside(writes: &[Ack], store: &Store) -> Vec<Fork> {
    let by_revision: BTreeMap<i64, &str> = store.keys.iter().map(|(key, revision)| (*revision, key.as_str())).collect();
    let newest = writes.iter().filter(|ack| store.has(ack));
    let newest: BTreeMap<u64, &Ack> = newest.fold(BTreeMap::new(), |mut newest, ack| {
        let of_member = newest.entry(ack.said.member).or_insert(ack);
        if of_member.said.revision < ack.said.revision {
            *of_member = ack;
        }
        newest
    });
    let mut found = Vec::new();
    for ack in writes {
        if ack.said.cluster != store.cluster {
            found.push(Fork::new(ack, ack, "there is another cluster now"));
        }
        if store.has(ack) {
            continue;
        }
        if by_revision.get(&ack.said.revision).is_some_and(|key| *key != ack.key) {
            found.push(Fork::new(ack, ack, "another write has that revision now"));
        }
        let later = newest
            .values()
            .find(|later| later.said.member != ack.said.member && later.said.revision > ack.said.revision);
        if let Some(later) = later {
            found.push(Fork::new(ack, later, "the second is there in the end, and the first is not in its history"));
        }
    }
    found
}

/// Returns the acknowledged writes that the store does not have at the revision of the acknowledgement.
pub fn lost<'a>(writes: &'a [Ack], store: &Store) -> Vec<&'a Ack> {
    writes.iter().filter(|ack| !store.has(ack)).collect()
}

/// Returns the longest time between `from` and `to` without an acknowledgement, and when it began.
pub fn longest_gap(acks: &[Ack], from: Duration, to: Duration) -> (Duration, Duration) {
    longest_beside(acks, from, to, &[])
}

/// Returns the longest time without an acknowledgement as [`longest_gap`] does. It subtracts from each gap the time
/// for which the machine itself stalled.
pub fn longest_beside(acks: &[Ack], from: Duration, to: Duration, stalls: &[Span]) -> (Duration, Duration) {
    let mut times: Vec<Duration> = acks.iter().map(|ack| ack.ended).filter(|at| (from..=to).contains(at)).collect();
    times.extend([from, to]);
    times.sort_unstable();
    let gaps = times.windows(2).map(|pair| {
        let gap = (pair[0], pair[1]);
        (gap.1.saturating_sub(gap.0).saturating_sub(stalls::within(gap, stalls)), gap.0)
    });
    gaps.max().unwrap_or_default()
}
