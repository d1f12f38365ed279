//! Compares two histories: the changes of one that the other lacks. Both are only read.

mod changed;
mod fork;
mod hashes;
mod live;
mod logged;

use std::fs::File;

use self::changed::Changed;
use self::fork::{Group, Side};
use self::hashes::Hashes;
use self::live::State;
use crate::adapters::data_dir::{self, Change, Changes, Keys};
use crate::operate::failure::Failure;

pub use self::changed::{InOther, Key, Kind};
pub use self::fork::Fork;
pub use self::live::Live;

/// Largest number of earlier revisions at which the keys of a running etcd are read. Each reading is at the highest revision that the two
/// histories may share according to the previous readings.
const EARLIER_STATES: usize = 8;

/// The etcd history with which another one is compared: that of a stored data dir or of a running etcd.
#[derive(Debug)]
pub enum Other {
    Stored(Box<Keys>),
    Live(Box<Live>),
}

/// The result of the comparison of two etcd histories.
#[derive(Debug)]
pub struct Difference {
    pub fork: Fork,
    /// The last revision of the first of the two compared histories.
    pub revision: u64,
    /// The last revision of the other compared history.
    pub other_revision: u64,
    /// The revision to which the other history was compacted; `None` if it is a running etcd.
    pub other_compacted: Option<u64>,
    /// True if both histories have every change since the fork, so that no changed key is missing in the result.
    pub is_complete: bool,
    /// True if the other history certainly has the final value of each key that the first one changed since the fork.
    pub is_proven: bool,
    changed: Changed,
}

impl Difference {
    /// Returns the keys that the first history changed since the fork, in their order.
    pub fn keys(&self) -> impl Iterator<Item = Key<'_>> {
        self.changed.keys()
    }
}

/// Compares the etcd history `history` with `other`, for the keys that begin with `prefix`.
pub fn compare(history: &Keys, other: &Other, prefix: &[u8]) -> Result<Difference, Failure> {
    let hashes = Hashes::default();
    let found = match other {
        Other::Stored(other) => of_stored(history, other, &hashes)?,
        Other::Live(live) => of_live(history, live, &hashes)?,
    };
    let Found { fork, revision, other_revision, is_other_whole, state } = found;
    let noted = noted(history, other).unwrap_or_default().min(fork.most);
    let fork = Fork { least: fork.least.max(noted), ..fork };
    let mut changed = Changed::of(history, fork.least, prefix, &hashes)?;
    match (other, state) {
        (Other::Stored(other), _) => changed.find_in(other, fork.least, &hashes)?,
        (Other::Live(_), Some(state)) => changed.find_live(state, fork.least, &hashes),
        (Other::Live(_), None) => {}
    }
    let other_compacted = match other {
        Other::Stored(other) => Some(other.compacted()),
        Other::Live(_) => None,
    };
    let is_other_whole = other_compacted.map_or(is_other_whole, |compacted| compacted <= fork.least);
    let is_whole = history.compacted() <= fork.least;
    let is_complete = is_whole && is_other_whole;
    // The noted revision is certainly shared. If the fork is there, the list has every later change of this history, no
    // matter how far the other was compacted.
    let is_certain = is_whole && (is_other_whole || noted == fork.least);
    let is_proven = is_certain && changed.keys().all(|key| key.in_other == InOther::Same);
    Ok(Difference { fork, revision, other_revision, other_compacted, is_complete, is_proven, changed })
}

/// Returns the newest revision that both histories certainly share, from the file `tandem-history.json` in given-up
/// data. Returns `None` if neither history has that revision.
fn noted(history: &Keys, other: &Other) -> Option<u64> {
    let of = |keys: &Keys| keys.noted()?.alone_revision;
    let other = match other {
        Other::Stored(other) => of(other),
        Other::Live(_) => None,
    };
    of(history).max(other)
}

struct Found {
    fork: Fork,
    revision: u64,
    other_revision: u64,
    is_other_whole: bool,
    state: Option<State>,
}

fn of_stored(history: &Keys, other: &Keys, hashes: &Hashes) -> Result<Found, Failure> {
    let (mut one, mut two) = (groups(history, hashes)?, groups(other, hashes)?);
    let fork = fork::find(side(history, &mut one), side(other, &mut two))?;
    let (revision, other_revision) = (last(history)?, last(other)?);
    Ok(Found { fork, revision, other_revision, is_other_whole: true, state: None })
}

/// Finds the fork of a stored history and a running etcd. etcd has only the last change of each key, but its keys can
/// also be read at earlier revisions that are not compacted.
fn of_live(history: &Keys, live: &Live, hashes: &Hashes) -> Result<Found, Failure> {
    let compacted = || Failure("etcd compacts faster than its keys can be read: try again".to_owned());
    let newest = live.state(None, hashes)?.ok_or_else(compacted)?;
    let find = |state: &State| {
        let (mut one, mut two) = (groups(history, hashes)?, state.groups());
        let two = Side { groups: &mut two, whole_after: u64::MAX, end: state.revision };
        fork::find(side(history, &mut one), two)
    };
    let mut fork = find(&newest)?;
    let mut is_other_whole = fork.most >= newest.revision;
    for _ in 0..EARLIER_STATES {
        if is_other_whole {
            break;
        }
        let Some(earlier) = live.state(Some(fork.most), hashes)? else { break };
        let found = find(&earlier)?;
        is_other_whole = found.most >= fork.most;
        fork = found;
    }
    let (revision, other_revision) = (last(history)?, newest.revision);
    Ok(Found { fork, revision, other_revision, is_other_whole, state: Some(newest) })
}

fn side<'a>(keys: &Keys, groups: &'a mut dyn FnMut() -> Result<Option<Group>, Failure>) -> Side<'a> {
    Side { groups, whole_after: keys.compacted(), end: keys.compacted().max(fork::FIRST) }
}

/// Returns a reader of a stored history. Each call of the reader returns all changes of the next revision.
fn groups<'a>(
    keys: &Keys,
    hashes: &'a Hashes,
) -> Result<impl FnMut() -> Result<Option<Group>, Failure> + use<'a>, Failure> {
    let mut changes: Changes<File> = keys.changes(0)?;
    let mut ahead: Option<Change> = changes.next_change()?;
    Ok(move || {
        let Some(first) = ahead.take() else { return Ok(None) };
        let mut group = Group { revision: first.revision, marks: vec![hashes.of_change(&first)] };
        while let Some(change) = changes.next_change()? {
            if change.revision != group.revision {
                ahead = Some(change);
                break;
            }
            group.marks.push(hashes.of_change(&change));
        }
        Ok(Some(group))
    })
}

/// Returns the last revision in the database of a stored history.
fn last(keys: &Keys) -> Result<u64, data_dir::Error> {
    Ok(keys.last_revision()?.max(keys.compacted()).max(fork::FIRST))
}
