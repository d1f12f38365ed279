//! Reading events: all that are kept, those since a time, and the next ones as they come.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Seek, SeekFrom};
use std::path::Path;

use super::Event;
use super::files::{older, path};
use crate::os::regular_file;

/// How much of a file is read: more than it ever holds.
const LIMIT: u64 = 64 * 1024 * 1024;

/// Every event that is kept, the oldest first. Lines that a loss of power cut short are left out.
pub fn all(directory: &Path) -> io::Result<Vec<Event>> {
    // Around the older one once more: the newer one may just have become it.
    let mut events = whole(&older(directory))?;
    let newer = whole(&path(directory))?;
    if newer.first().is_some_and(|first| events.last().is_some_and(|last| first.number.saturating_sub(last.number) > 1))
    {
        events = whole(&older(directory))?;
    }
    let last = events.last().map_or(0, |last| last.number);
    if newer.first().is_some_and(|first| first.number <= last) {
        // The newer one became the older one in between, or its numbers began anew.
        let known: HashSet<(u64, String)> = events.iter().map(|event| (event.number, event.cause.clone())).collect();
        events.extend(newer.into_iter().filter(|event| !known.contains(&(event.number, event.cause.clone()))));
    } else {
        events.extend(newer);
    }
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

/// The events in the last `bytes` of a file; none where there is none.
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
    // A line whose beginning is not read is no event.
    Ok(parse(&text))
}

/// The number of a file's first event.
pub(super) fn first_number(path: &Path) -> Option<u64> {
    let mut line = Vec::new();
    let file: File = regular_file::open(path).ok()?;
    BufReader::new(file.take(8192)).read_until(b'\n', &mut line).ok()?;
    serde_json::from_slice::<Event>(&line).ok().map(|event| event.number)
}

/// What has not been seen yet, each time it is asked: over a file that becomes the older one, and one that begins anew.
#[derive(Clone, Copy, Debug)]
pub struct Follower {
    seen: u64,
}

impl Follower {
    /// Goes on behind the event with this number.
    pub fn after(number: u64) -> Self {
        Self { seen: number }
    }

    /// What came since.
    pub fn next(&mut self, directory: &Path) -> io::Result<Vec<Event>> {
        // Most of the time nothing came, and the end of the file says so.
        let newest = tail(&path(directory), 16 * 1024)?.last().map_or(0, |last| last.number);
        if newest == self.seen || newest == 0 {
            return Ok(Vec::new());
        }
        if newest < self.seen {
            self.seen = 0;
        }
        let mut events = all(directory)?;
        events.retain(|event| event.number > self.seen);
        self.seen = events.last().map_or(self.seen, |last| last.number);
        Ok(events)
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
}
