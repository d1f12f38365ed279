//! Reads events: all that are kept, those since a time, and new ones as they arrive.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Seek, SeekFrom};
use std::path::Path;

use super::Event;
use super::files::{older, path};
use crate::os::regular_file;

/// The greatest size of a file of events that is read, in bytes. A file never grows so large.
const LIMIT: u64 = 64 * 1024 * 1024;

/// Returns every stored event, oldest first. Skips lines that a loss of power has cut short.
pub fn all(directory: &Path) -> io::Result<Vec<Event>> {
    // The older file is read again if there is a gap, because the newer one may just have replaced it.
    let mut events = whole(&older(directory))?;
    let newer = whole(&path(directory))?;
    if newer.first().is_some_and(|first| events.last().is_some_and(|last| first.number.saturating_sub(last.number) > 1))
    {
        events = whole(&older(directory))?;
    }
    let last = events.last().map_or(0, |last| last.number);
    if newer.first().is_some_and(|first| first.number <= last) {
        // The newer file replaced the older one meanwhile, or its numbers restarted. The last line of the newer file stays the
        // last.
        let known: HashSet<(u64, &str)> = newer.iter().map(|event| (event.number, event.cause.as_str())).collect();
        events.retain(|event| !known.contains(&(event.number, event.cause.as_str())));
    }
    events.extend(newer);
    Ok(events)
}

fn whole(path: &Path) -> io::Result<Vec<Event>> {
    match regular_file::read_at_most(path, LIMIT) {
        Ok(bytes) => Ok(parse(&bytes)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(io::Error::new(error.kind(), format!("{}: {error}", path.display()))),
    }
}

fn parse(bytes: &[u8]) -> Vec<Event> {
    bytes.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect()
}

/// Returns the events in the last `bytes` of a file. Returns none if there is no file.
pub(super) fn tail(path: &Path, bytes: u64) -> io::Result<Vec<Event>> {
    let mut file = match regular_file::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let end = file.metadata()?.len();
    file.seek(SeekFrom::Start(end.saturating_sub(bytes)))?;
    let mut text = Vec::new();
    file.take(bytes).read_to_end(&mut text)?;
    // A line that is not read from its beginning is no event.
    Ok(parse(&text))
}

/// Returns the number of a file's first event; `None` if it cannot be read.
pub(super) fn first_number(path: &Path) -> Option<u64> {
    let mut line = Vec::new();
    let file: File = regular_file::open(path).ok()?;
    BufReader::new(file.take(8192)).read_until(b'\n', &mut line).ok()?;
    serde_json::from_slice::<Event>(&line).ok().map(|event| event.number)
}

/// A reader that returns at each call the events that are new since the last call. Between two calls, the file may be replaced, and the
/// numbers of events may restart.
#[derive(Clone, Debug)]
pub struct Follower {
    seen: Option<Seen>,
}

/// The event that a [`Follower`] has read last. Its cause is compared in addition to its number, because a line of another program may have
/// the number of a later event. The cause is `None` if only the number is known.
#[derive(Clone, Debug)]
struct Seen {
    number: u64,
    cause: Option<String>,
}

impl Seen {
    fn is(&self, event: &Event) -> bool {
        event.number == self.number && self.cause.as_ref().is_none_or(|cause| *cause == event.cause)
    }
}

impl Follower {
    /// Creates a reader of the events after the one with `number`. With 0 it reads all events.
    pub fn after(number: u64) -> Self {
        Self { seen: (number > 0).then_some(Seen { number, cause: None }) }
    }

    /// Returns the events since the last call.
    pub fn next(&mut self, directory: &Path) -> io::Result<Vec<Event>> {
        // Usually there is none, and the end of the file shows that.
        let Some(newest) = tail(&path(directory), 16 * 1024)?.pop() else { return Ok(Vec::new()) };
        if self.seen.as_ref().is_some_and(|seen| seen.is(&newest)) {
            return Ok(Vec::new());
        }
        let events = self.unseen(all(directory)?, newest.number);
        if let Some(last) = events.last() {
            self.seen = Some(Seen { number: last.number, cause: Some(last.cause.clone()) });
        }
        Ok(events)
    }

    /// Returns the events in `events` that come after the event that was read last. If that event is no longer stored, returns the events
    /// with a greater number than that event's. If the numbers have restarted, returns all events.
    fn unseen(&self, mut events: Vec<Event>, newest: u64) -> Vec<Event> {
        let Some(seen) = &self.seen else { return events };
        match events.iter().rposition(|event| seen.is(event)) {
            Some(at) => events.split_off(at + 1),
            None if newest <= seen.number => events,
            None => {
                events.retain(|event| event.number > seen.number);
                events
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Repeat, Type, append, reason};
    use super::*;

    fn tell(directory: &Path, cause: &str) {
        let event = Event::new(1, Type::Normal, reason::TEST, "n", String::new(), cause.to_owned());
        assert!(append(directory, event, Repeat::Never).unwrap());
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let dir = tempfile::tempdir().unwrap();
        assert!(all(dir.path()).unwrap().is_empty());
        std::fs::create_dir(path(dir.path())).unwrap();
        let why = all(dir.path()).unwrap_err().to_string();
        assert!(why.starts_with(&path(dir.path()).display().to_string()), "{why}");
    }

    #[test]
    fn a_follower_sees_each_event_once_also_over_a_file_that_is_replaced_or_lost() {
        let dir = tempfile::tempdir().unwrap();
        let mut follower = Follower::after(0);
        let mut seen = |expected: &[&str]| {
            let causes: Vec<String> = follower.next(dir.path()).unwrap().into_iter().map(|event| event.cause).collect();
            assert_eq!(causes, expected);
        };
        seen(&[]);
        tell(dir.path(), "a");
        tell(dir.path(), "b");
        seen(&["a", "b"]);
        tell(dir.path(), "c");
        std::fs::rename(path(dir.path()), older(dir.path())).unwrap();
        tell(dir.path(), "d");
        seen(&["c", "d"]);
        seen(&[]);
        std::fs::remove_file(path(dir.path())).unwrap();
        std::fs::remove_file(older(dir.path())).unwrap();
        tell(dir.path(), "e");
        seen(&["e"]);
    }

    #[test]
    fn a_number_of_others_hides_no_event_from_a_follower() {
        let dir = tempfile::tempdir().unwrap();
        let mut follower = Follower::after(0);
        let mut seen =
            || -> Vec<String> { follower.next(dir.path()).unwrap().into_iter().map(|event| event.cause).collect() };
        tell(dir.path(), "a");
        tell(dir.path(), "b");
        assert_eq!(seen(), ["a", "b"]);
        // The number precedes the next one, so that the next event has the number of the event that was read last.
        let hostile =
            Event { number: 1, ..Event::new(1, Type::Normal, reason::TEST, "n", String::new(), "x".to_owned()) };
        let mut text = std::fs::read_to_string(path(dir.path())).unwrap();
        text.push_str(&serde_json::to_string(&hostile).unwrap());
        std::fs::write(path(dir.path()), text).unwrap();
        tell(dir.path(), "c");
        assert_eq!(seen(), ["x", "c"]);
        assert!(seen().is_empty());
    }
}
