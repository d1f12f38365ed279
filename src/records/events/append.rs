//! The append of an event. There are many parallel writers: an alert agent for each recipient, the resource agent, the collector.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Duration;

use super::files::{older, path};
use super::place::{FILE_MODE, LOCK_MODE, Place};
use super::read;
use super::{Event, HIGHEST, KEPT};
use crate::os::clock::Deadline;
use crate::os::ofd_lock;

/// The time for which a writer of an event waits for other writers. Each writer holds the lock for less than a millisecond, but Pacemaker
/// may start many alert agents at once. It waits 30 s for each agent.
const PATIENCE: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(2);
/// The number of bytes at the end of the file in which the agent searches for an event with the same cause.
const TAIL: u64 = 128 * 1024;
/// The size in bytes above which a file of events is renamed to `.1`, even if it has fewer than [`KEPT`] events.
const SIZE_LIMIT: u64 = 32 * 1024 * 1024;

/// The reason why an event could not be written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("no event can be kept: 'install -d -o hacluster -g haclient -m 0750 {directory}' failed here: {source}")]
    NoDirectory { directory: String, source: io::Error },
    #[error("{path}: {source}")]
    File { path: String, source: io::Error },
}

/// The rule by which an event is appended or dropped if the file has an event with the same cause.
#[derive(Clone, Copy, Debug)]
pub enum Repeat<'a> {
    /// An event is never appended if the file has one with the same cause, because the cause happens only once.
    Never,
    /// The event is about a lasting state. It is dropped if the node's file already has an event with the same cause from the last `within`
    /// milliseconds. It is appended nevertheless if, after that event, the node had one with one of the reasons in `ends`.
    Until { ends: &'a [&'a str], within: u64 },
    /// The event reports that a state has ended. The field is the reason of the event that reported the beginning of the state. The
    /// end is appended only if the node has reported such a beginning since it last reported an end.
    After(&'a str),
}

/// Appends `event` to the file in `directory`, if `repeat` permits it. Returns whether it was appended.
pub fn append(directory: &Path, event: Event, repeat: Repeat<'_>) -> Result<bool, Error> {
    append_within(directory, event, repeat, PATIENCE)
}

/// Appends an event as [`append`] does. Waits for other writers for at most `patience`.
pub(super) fn append_within(
    directory: &Path,
    event: Event,
    repeat: Repeat<'_>,
    patience: Duration,
) -> Result<bool, Error> {
    let place = Place::made(directory)
        .map_err(|source| Error::NoDirectory { directory: directory.display().to_string(), source })?;
    let _lock = locked(directory, &place, patience)?;
    let failed = |source| Error::File { path: path(directory).display().to_string(), source };
    let (path, older) = (place.at(&path(directory)), place.at(&older(directory)));
    let last = read::tail(&path, TAIL).map_err(failed)?;
    // The file may be new, so the older one has the earlier events.
    let before = if last.is_empty() { read::tail(&older, TAIL).map_err(failed)? } else { Vec::new() };
    let known: Vec<&Event> = before.iter().chain(&last).collect();
    if is_known(&known, &event, repeat) {
        return Ok(false);
    }
    let number = known.last().map_or(1, |last| next(last.number));
    let begins_anew = last.last().is_some_and(|last| last.number >= HIGHEST);
    let is_full = read::first_number(&path).is_some_and(|first| number.saturating_sub(first) >= KEPT);
    let is_long = || fs::metadata(&path).is_ok_and(|metadata| metadata.len() > SIZE_LIMIT);
    if begins_anew || is_full || is_long() {
        fs::rename(&path, &older).map_err(failed)?;
    }
    write(&path, &place, &Event { number, ..event }).map_err(failed)?;
    Ok(true)
}

/// Returns the number after `number`. After [`HIGHEST`], which only another program can have written, returns 1.
fn next(number: u64) -> u64 {
    if number < HIGHEST { number + 1 } else { 1 }
}

/// Creates the directory of the events if it is missing. The agent and the collector call this as root, because they may write an event
/// before an alert agent does.
pub fn make_directory(directory: &Path) -> Result<(), Error> {
    let failed = |source| Error::NoDirectory { directory: directory.display().to_string(), source };
    Place::made(directory).map(drop).map_err(failed)
}

fn is_known(told: &[&Event], event: &Event, repeat: Repeat<'_>) -> bool {
    let mut of_node = told.iter().rev().filter(|known| known.node == event.node).copied();
    let is_same = |known: &Event| known.cause == event.cause;
    match repeat {
        Repeat::Never => told.iter().any(|known| is_same(known)),
        Repeat::Until { ends, within } => {
            let mut recent = of_node.take_while(|known| event.time.abs_diff(known.time) <= within);
            recent.find(|known| is_same(known) || ends.contains(&known.reason.as_str())).is_some_and(is_same)
        }
        Repeat::After(begin) => of_node.find(|known| is_same(known) || known.reason == begin).is_none_or(is_same),
    }
}

/// Takes the lock for writers of events. The lock is a separate file, because the file with the events is replaced. Returns without the
/// lock after `patience`, so that two events may have the same number.
fn locked(directory: &Path, place: &Place, patience: Duration) -> Result<File, Error> {
    let path = directory.join("events.lock");
    let failed = |source| Error::File { path: path.display().to_string(), source };
    let file = place.open(&path, LOCK_MODE).map_err(failed)?;
    let deadline = Deadline::after(patience);
    while !ofd_lock::try_take(&file).map_err(failed)? && !deadline.has_passed() {
        deadline.sleep(PAUSE);
    }
    Ok(file)
}

fn write(path: &Path, place: &Place, event: &Event) -> io::Result<()> {
    let mut file = place.open(path, FILE_MODE)?;
    let metadata = file.metadata()?;
    // A line that a loss of power cut short must not join this one.
    let mut last = [b'\n'];
    if let Some(end) = metadata.len().checked_sub(1) {
        file.read_exact_at(&mut last, end)?;
    }
    let mut line = if last == *b"\n" { Vec::new() } else { vec![b'\n'] };
    serde_json::to_writer(&mut line, event)?;
    line.push(b'\n');
    file.write_all(&line)
}

#[cfg(test)]
mod tests {
    use super::super::{Type, reason};
    use super::*;

    fn event(node: &str, reason: &str, cause: &str) -> Event {
        Event::new(1_700_000_000_000, Type::Warning, reason, node, "words".to_owned(), cause.to_owned())
    }

    #[test]
    fn a_cause_is_told_once_and_numbers_go_on_over_what_was_cut_short() {
        let dir = tempfile::tempdir().unwrap();
        for (cause, is_new) in [("a", true), ("a", false), ("b", true), ("a", false)] {
            assert_eq!(append(dir.path(), event("node1", reason::FENCING, cause), Repeat::Never).unwrap(), is_new);
        }
        let file = path(dir.path());
        let text = fs::read_to_string(&file).unwrap();
        fs::write(&file, format!("{text}{}", &text[..40])).unwrap();
        assert!(append(dir.path(), event("node1", reason::FENCING, "c"), Repeat::Never).unwrap());
        let numbers: Vec<u64> = read::all(dir.path()).unwrap().iter().map(|event| event.number).collect();
        assert_eq!(numbers, [1, 2, 3]);
    }

    #[test]
    fn what_lasts_is_told_again_after_it_was_over() {
        let dir = tempfile::tempdir().unwrap();
        let refused = |node| event(node, reason::REFUSED, "etcd refused");
        let repeat = Repeat::Until { ends: &[reason::REDUNDANT], within: 1000 };
        let tell = |event| append(dir.path(), event, repeat).unwrap();
        assert!(tell(refused("node1")));
        assert!(!tell(refused("node1")));
        assert!(tell(refused("node2")), "another node's");
        assert!(tell(event("node1", reason::REDUNDANT, "two")));
        assert!(tell(refused("node1")));
        assert!(!tell(refused("node1")));
        assert!(tell(Event { time: 1_700_000_001_001, ..refused("node1") }), "after its time");
    }

    #[test]
    fn what_is_over_is_told_where_it_began_and_once() {
        let dir = tempfile::tempdir().unwrap();
        let tell = |node, reason, repeat| append(dir.path(), event(node, reason, reason), repeat).unwrap();
        let is_over = |node| tell(node, reason::REDUNDANT, Repeat::After(reason::ALONE));
        assert!(!is_over("node1"), "it never began");
        assert!(tell("node1", reason::ALONE, Repeat::Never));
        assert!(!is_over("node2"), "it began on another node");
        assert!(is_over("node1"));
        assert!(!is_over("node1"));
    }

    #[test]
    fn the_directory_is_made_below_pacemakers_own_and_nowhere_else() {
        let dir = tempfile::tempdir().unwrap();
        assert!(append(&dir.path().join("tandem"), event("n", "R", "c"), Repeat::Never).unwrap());
        let nowhere = dir.path().join("none/tandem");
        let error = append(&nowhere, event("n", "R", "c"), Repeat::Never).unwrap_err().to_string();
        assert!(error.starts_with("no event can be kept: 'install -d -o hacluster "), "{error}");
    }

    #[test]
    fn the_file_becomes_the_older_of_two_and_numbers_go_on() {
        let dir = tempfile::tempdir().unwrap();
        let line = |number| serde_json::to_string(&Event { number, ..event("n", "R", &number.to_string()) }).unwrap();
        fs::write(path(dir.path()), format!("{}\n{}\n", line(1), line(KEPT))).unwrap();
        assert!(append(dir.path(), event("n", "R", "next"), Repeat::Never).unwrap());
        assert!(append(dir.path(), event("n", "R", "after"), Repeat::Never).unwrap());
        let numbers: Vec<u64> = read::all(dir.path()).unwrap().iter().map(|event| event.number).collect();
        assert_eq!(numbers, [1, KEPT, KEPT + 1, KEPT + 2]);
        assert!(older(dir.path()).exists());
    }
}
