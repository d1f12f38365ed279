//! What was acknowledged, and what follows from it: pure checks on records, no I/O.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::node::Node;

/// One write that etcd acknowledged. Times count from the beginning of the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ack {
    pub key: String,
    pub began: Duration,
    pub ended: Duration,
    /// Which node was asked, and no other.
    pub node: Node,
    /// The store's revision that the answer names: the number of this write in the history.
    pub revision: i64,
    pub term: u64,
}

/// Two acknowledged writes that cannot both be in one history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fork {
    pub first: Ack,
    pub second: Ack,
    pub why: &'static str,
}

/// Looks for proof that two nodes took writes which the other did not know of.
///
/// The writers and the watch ask each node on its own, both all the time. In one history every write has a revision
/// of its own, and a write that begins after another one was acknowledged has a higher revision, whichever node took
/// either. So two nodes that both take writes without knowing of each other must, with the second write at the
/// latest, hand out a revision twice or go back behind one that was acknowledged before: both continue counting from
/// where they parted. That holds whatever cluster ids, member ids and terms say, which a forced new cluster may keep.
///
/// An acknowledged write that was lost shows here as well if the revision is handed out again: a history that forgot
/// something is a fork too, in time instead of space.
pub fn forks(acks: &[Ack]) -> Vec<Fork> {
    let mut found = Vec::new();
    let mut by_revision: BTreeMap<i64, &Ack> = BTreeMap::new();
    for ack in acks {
        if let Some(other) = by_revision.insert(ack.revision, ack) {
            found.push(Fork { first: other.clone(), second: ack.clone(), why: "both got the same revision" });
        }
    }
    let mut by_begin: Vec<&Ack> = acks.iter().collect();
    by_begin.sort_by_key(|ack| ack.began);
    let mut by_end: Vec<&Ack> = acks.iter().collect();
    by_end.sort_by_key(|ack| ack.ended);
    let mut ended = by_end.into_iter().peekable();
    let mut newest: Option<&Ack> = None;
    for ack in by_begin {
        while let Some(earlier) = ended.next_if(|earlier| earlier.ended < ack.began) {
            if newest.is_none_or(|newest| newest.revision < earlier.revision) {
                newest = Some(earlier);
            }
        }
        if let Some(earlier) = newest.filter(|earlier| earlier.revision > ack.revision) {
            let why = "the second began after the first was acknowledged, but got a lower revision";
            found.push(Fork { first: earlier.clone(), second: ack.clone(), why });
        }
    }
    found
}

/// The acknowledged writes whose keys are not there any more.
pub fn lost<'a>(acks: &'a [Ack], present: &BTreeSet<String>) -> Vec<&'a Ack> {
    acks.iter().filter(|ack| !present.contains(&ack.key)).collect()
}

/// The longest time without an acknowledgement from `from` to `to`, and when it began.
pub fn longest_gap(acks: &[Ack], from: Duration, to: Duration) -> (Duration, Duration) {
    let mut times: Vec<Duration> = acks.iter().map(|ack| ack.ended).filter(|at| (from..=to).contains(at)).collect();
    times.extend([from, to]);
    times.sort_unstable();
    let gaps = times.windows(2).map(|pair| (pair[1].saturating_sub(pair[0]), pair[0]));
    gaps.max().unwrap_or_default()
}
