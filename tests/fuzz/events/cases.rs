//! Properties that every file of events must satisfy, with any contents. proptest and cargo-fuzz both use them.

use std::path::Path;

use tandem::records::events::read::{Follower, all};
use tandem::records::events::{Event, FILES, Repeat, Type, append, reason};

/// Asserts that the files of events can be read, printed and appended to if both contain `input`.
pub(crate) fn file(directory: &Path, input: &[u8]) {
    for name in FILES {
        std::fs::write(directory.join(name), input).unwrap();
    }
    let events = all(directory).unwrap();
    for event in &events {
        let line = event.line();
        assert!(!line.chars().any(char::is_control), "{line:?}");
    }
    let mut follower = Follower::after(events.last().map_or(0, |last| last.number));
    assert!(follower.next(directory).unwrap().len() <= events.len());
    let event = Event::new(1, Type::Normal, reason::TEST, "n", String::new(), "a cause of its own".to_owned());
    append(directory, event, Repeat::Never).unwrap();
    assert!(all(directory).unwrap().iter().any(|event| event.cause == "a cause of its own"));
}
