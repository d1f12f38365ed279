//! What was acknowledged, and what follows from it: pure checks on records, no I/O.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::node::Node;
use crate::stalls::{self, Span};

/// What the head of each of etcd's answers says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// The store's revision: for a write, its own number in the history.
    pub revision: i64,
    /// The term of the newest entry that the member had applied when it answered.
    pub term: u64,
    pub cluster: u64,
    pub member: u64,
}

/// One answer of etcd: a write that it acknowledged, or a linearizable read. Times count from the beginning of the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ack {
    /// What was written, a key of its own for each try; what was read.
    pub key: String,
    pub began: Duration,
    pub ended: Duration,
    /// Which node was asked, and no other.
    pub node: Node,
    pub said: Header,
}

/// What a node's store holds at the end.
#[derive(Clone, Debug, Default)]
pub struct Store {
    /// The revision of each key's last change.
    pub keys: BTreeMap<String, i64>,
    pub cluster: u64,
}

impl Store {
    /// Whether the write is there, by its own revision: a key alone may be another write's.
    fn has(&self, ack: &Ack) -> bool {
        self.keys.get(&ack.key) == Some(&ack.said.revision)
    }
}

/// Two answers that cannot both be of one history.
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

/// Looks for proof that two nodes took writes which the other did not know of, or that one answered from the past.
///
/// The writers and the watch ask each node on its own, both all the time. In one history every write has a revision
/// of its own, and a write that begins after another one was acknowledged has a higher revision, whichever node took
/// either. So two nodes that both take writes without knowing of each other must, with the second write at the
/// latest, hand out a revision twice or go back behind one that was acknowledged before: both continue counting from
/// where they parted. That holds whatever cluster ids, member ids and terms say, which a forced new cluster may keep.
/// Where they differ they prove it as well: there is one cluster, and its term never falls. The one thing that all
/// this cannot see is a second history that begins above everything that the first one acknowledged: see [`beside`].
///
/// An acknowledged write that was lost shows here as well if the revision is handed out again: a history that forgot
/// something is a fork too, in time instead of space.
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

/// What may not fall from one answer to a question that is asked later, and did.
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

/// Looks for writes that lie beside the history which there is at the end: another write has their revision, or one
/// that another member acknowledged came after them in a history that does not know them.
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

/// The acknowledged writes that are not there any more, or at another revision than they were acknowledged with.
pub fn lost<'a>(writes: &'a [Ack], store: &Store) -> Vec<&'a Ack> {
    writes.iter().filter(|ack| !store.has(ack)).collect()
}

/// The longest time without an acknowledgement from `from` to `to`, and when it began.
pub fn longest_gap(acks: &[Ack], from: Duration, to: Duration) -> (Duration, Duration) {
    longest_beside(acks, from, to, &[])
}

/// As [`longest_gap`], less what the machine itself stood still in each gap.
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
