//! The chain: a number in etcd that only grows by one, each time under a compare on the revision of the number before.
//! The checks find a stale read, and a number put on a stale one. They are pure: they check records, and do no I/O.

mod clients;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::host::node::Node;
use crate::judge::history::{Ack, Header};
pub use clients::{KEY, read, swap};

/// A value of the counter in etcd that a client on each node raises by one, under a compare on its revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    pub number: u64,
    /// The client that put this value, with the number of its try. It identifies the write, because two nodes that
    /// run standalone can put the same number at one revision.
    pub author: String,
    /// The store's revision at which this value was put.
    pub revision: i64,
}

impl Link {
    /// Returns the value 0, which the counter has before the first write.
    pub fn none() -> Self {
        Self { number: 0, author: "nobody".to_owned(), revision: 0 }
    }

    /// Returns the text that etcd stores for a value of the counter.
    fn text(number: u64, author: &str) -> String {
        format!("{number} {author}")
    }

    fn parse(text: &str, revision: i64) -> Option<Self> {
        let (number, author) = text.split_once(' ')?;
        Some(Self { number: number.parse().ok()?, author: author.to_owned(), revision })
    }
}

impl std::fmt::Display for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} by {} at revision {}", self.number, self.author, self.revision)
    }
}

/// The response of etcd to a request that raises or reads the counter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Deed {
    /// A raise of the counter that etcd acknowledged. `onto` is the revision of the value before it, which was
    /// compared.
    Swapped { link: Link, onto: i64, said: Header },
    /// A raise of the counter to which etcd did not respond. The value may exist, or may appear later.
    Tried { number: u64, author: String },
    /// The value that a linearizable read returned, or a raise that failed because the counter had changed.
    Read { link: Link, said: Header },
}

/// A request that raises or reads the counter, with its response. The times count from the beginning of the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainStep {
    pub began: Duration,
    pub ended: Duration,
    pub node: Node,
    pub deed: Deed,
}

impl ChainStep {
    /// Returns the counter's value in the response. `None` if there was no response.
    fn link(&self) -> Option<&Link> {
        match &self.deed {
            Deed::Swapped { link, .. } | Deed::Read { link, .. } => Some(link),
            Deed::Tried { .. } => None,
        }
    }

    fn is_read(&self) -> bool {
        matches!(self.deed, Deed::Read { .. })
    }

    fn answer(&self, key: String, said: Header) -> Ack {
        Ack { key, began: self.began, ended: self.ended, node: self.node, said }
    }
}

/// Returns the acknowledged raises of the counter as writes, for [`crate::judge::history`].
pub fn writes(steps: &[ChainStep]) -> Vec<Ack> {
    let write = |step: &ChainStep| match &step.deed {
        Deed::Swapped { link, said, .. } => Some(step.answer(format!("the chain's {}", link.number), *said)),
        _ => None,
    };
    steps.iter().filter_map(write).collect()
}

/// Returns the reads of the counter, each with the revision that the whole store had then.
pub fn reads(steps: &[ChainStep]) -> Vec<Ack> {
    let read = |step: &ChainStep| match &step.deed {
        Deed::Read { link, said } => Some(step.answer(format!("a read of the chain's {}", link.number), *said)),
        _ => None,
    };
    steps.iter().filter_map(read).collect()
}

/// Returns the contradictions among the requests to the counter, as text. The list is empty if all responses fit one
/// etcd. `end` is the counter's value in the store afterwards, if known.
///
/// Each number is put only once, by a unique author. The checks therefore find every fault that the counter can have.
pub fn faults(steps: &[ChainStep], end: Option<&Link>) -> Vec<String> {
    let mut found = Vec::new();
    let links = by_number(steps, end, &mut found);
    found.extend(falling(&links));
    found.extend(strangers(steps, &links));
    found.extend(holes(steps, &links));
    found.extend(misplaced(steps, &links));
    found.extend(unknown_in_the_end(steps, end));
    found.extend(stale(steps));
    found
}

/// Returns each value of the counter that was read or acknowledged. Adds a lost update to `found` if there are two
/// values with one number.
fn by_number<'a>(steps: &'a [ChainStep], end: Option<&'a Link>, found: &mut Vec<String>) -> BTreeMap<u64, &'a Link> {
    let mut links: BTreeMap<u64, &Link> = BTreeMap::new();
    for link in steps.iter().filter_map(ChainStep::link).chain(end) {
        let first = links.entry(link.number).or_insert(link);
        if *first != link {
            found.push(format!("an update was lost: there are two of one number, {first} and {link}"));
        }
    }
    links
}

fn falling(links: &BTreeMap<u64, &Link>) -> Vec<String> {
    let pairs = links.values().zip(links.values().skip(1));
    let wrong = pairs.filter(|(lower, higher)| lower.revision >= higher.revision);
    wrong.map(|(lower, higher)| format!("the chain's revisions fall: {lower}, then {higher}")).collect()
}

/// Returns the numbers that clients tried to put into the counter, each with its author, acknowledged or not.
fn tried(steps: &[ChainStep]) -> BTreeSet<(u64, &str)> {
    let tried = steps.iter().filter_map(|step| match &step.deed {
        Deed::Swapped { link, .. } => Some((link.number, link.author.as_str())),
        Deed::Tried { number, author } => Some((*number, author.as_str())),
        Deed::Read { .. } => None,
    });
    tried.collect()
}

fn strangers(steps: &[ChainStep], links: &BTreeMap<u64, &Link>) -> Vec<String> {
    let tried = tried(steps);
    let unknown = links.values().filter(|link| link.number > 0);
    let unknown = unknown.filter(|link| !tried.contains(&(link.number, link.author.as_str())));
    unknown.map(|link| format!("nobody wrote {link}, which is there")).collect()
}

/// Finds numbers that no client tried to put although the counter has a higher one.
fn holes(steps: &[ChainStep], links: &BTreeMap<u64, &Link>) -> Vec<String> {
    let tried: BTreeSet<u64> = tried(steps).into_iter().map(|(number, _)| number).collect();
    let highest = links.keys().next_back().copied().unwrap_or(0);
    let missing = (1..=highest).filter(|number| !tried.contains(number));
    missing.map(|number| format!("the chain has a hole: nobody put {number}, and it goes on to {highest}")).collect()
}

/// Finds acknowledged raises of the counter that replaced another value than the one that is lower by one.
fn misplaced(steps: &[ChainStep], links: &BTreeMap<u64, &Link>) -> Vec<String> {
    let wrong = steps.iter().filter_map(|step| {
        let Deed::Swapped { link, onto, .. } = &step.deed else { return None };
        let before = links.get(&link.number.saturating_sub(1))?;
        (before.revision != *onto)
            .then(|| format!("{link} was put onto revision {onto}, and the one before is {before}"))
    });
    wrong.collect()
}

fn unknown_in_the_end(steps: &[ChainStep], end: Option<&Link>) -> Option<String> {
    let end = end?;
    let highest = steps.iter().filter_map(ChainStep::link).max_by_key(|link| link.number)?;
    (highest.number > end.number).then(|| format!("an update was lost: {highest}, and the store ends with {end}"))
}

/// Finds stale responses. A read is stale if it returns a lower value than a response that arrived before the read
/// began. A raise is stale if it puts no higher value than such a response.
fn stale(steps: &[ChainStep]) -> Vec<String> {
    let mut found = Vec::new();
    let mut by_begin: Vec<(&ChainStep, &Link)> = steps.iter().filter_map(|step| Some((step, step.link()?))).collect();
    let mut by_end = by_begin.clone();
    by_begin.sort_by_key(|(step, _)| step.began);
    by_end.sort_by_key(|(step, _)| step.ended);
    let mut ended = by_end.into_iter().peekable();
    let mut newest = 0;
    for (step, link) in by_begin {
        while let Some((_, earlier)) = ended.next_if(|(earlier, _)| earlier.ended < step.began) {
            newest = newest.max(earlier.number);
        }
        if step.is_read() && link.number < newest {
            found.push(format!("a stale read on {}: {link}, after {newest} was answered", step.node));
        }
        if !step.is_read() && link.number <= newest {
            found.push(format!("an update on {} from the past: {link}, after {newest} was answered", step.node));
        }
    }
    found
}
