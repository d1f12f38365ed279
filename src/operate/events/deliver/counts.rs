//! Counts events by reason for metrics, which must continue after files of events were removed.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::{Places, directory};
use crate::base::Fact;
use crate::records::events::{read, reason};
use crate::records::state_file;

/// The reason under which events with an unknown reason are counted.
const OTHER: &str = "Other";

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct Counted {
    /// The sequence number of the last event that is included in the counts.
    until: u64,
    by_reason: BTreeMap<String, u64>,
}

/// Returns the number of events by reason that this node has recorded so far.
pub fn counts(places: &Places) -> io::Result<BTreeMap<String, u64>> {
    Ok(counted(places)?.1.by_reason)
}

/// Counts events by reason as [`counts`] does, and stores the result. Only the collector calls this function, because two callers would
/// count twice.
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

/// Adds `more` events of a reason to `counts`. An unknown reason counts as [`OTHER`], because each reason becomes a permanent series of
/// metrics.
fn add(counts: &mut BTreeMap<String, u64>, reason: String, more: u64) {
    let reason = if reason::ALL.contains(&reason.as_str()) { reason } else { OTHER.to_owned() };
    let count = counts.entry(reason).or_default();
    *count = count.saturating_add(more);
}

/// Returns the stored counts, and the counts that also include the events after the stored ones.
fn counted(places: &Places) -> io::Result<(Counted, Counted)> {
    let before: Counted = match state_file::read(&path(places)) {
        Fact::Known(counted) => counted,
        _ => Counted::default(),
    };
    let mut now = Counted { until: before.until, ..Counted::default() };
    before.by_reason.iter().for_each(|(reason, count)| add(&mut now.by_reason, reason.clone(), *count));
    let events = read::all(&places.events)?;
    let last = events.last().map_or(0, |last| last.number);
    if last < now.until {
        // The file was removed, and the numbers began again.
        now.until = 0;
    }
    for event in events.into_iter().filter(|event| event.number > now.until) {
        add(&mut now.by_reason, event.reason, 1);
    }
    now.until = last;
    Ok((before, now))
}
