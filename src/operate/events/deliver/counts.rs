//! How many events of each reason there were: for metrics, which count on over files that go.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::{Places, directory};
use crate::base::Fact;
use crate::records::events::read;
use crate::records::state_file;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct Counted {
    /// The number of the last event that was counted.
    until: u64,
    by_reason: BTreeMap<String, u64>,
}

/// How many of each reason this node has told so far.
pub fn counts(places: &Places) -> io::Result<BTreeMap<String, u64>> {
    Ok(counted(places)?.1.by_reason)
}

/// The same, and keeps what is new. For the collector alone: two at once would count twice.
pub fn count(places: &Places) -> io::Result<BTreeMap<String, u64>> {
    let (before, now) = counted(places)?;
    if now != before {
        directory(&places.state)?;
        state_file::write(&path(places), &now)?;
    }
    Ok(now.by_reason)
}

fn path(places: &Places) -> PathBuf {
    places.state.join("counts.json")
}

/// What is kept, and the same with the events that came since.
fn counted(places: &Places) -> io::Result<(Counted, Counted)> {
    let before: Counted = match state_file::read(&path(places)) {
        Fact::Known(counted) => counted,
        _ => Counted::default(),
    };
    let mut now = before.clone();
    let events = read::all(&places.events)?;
    let last = events.last().map_or(0, |last| last.number);
    if last < now.until {
        // The file was removed, and numbers began anew.
        now.until = 0;
    }
    for event in events.into_iter().filter(|event| event.number > now.until) {
        let count = now.by_reason.entry(event.reason).or_default();
        *count = count.saturating_add(1);
    }
    now.until = last;
    Ok((before, now))
}
