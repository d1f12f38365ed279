//! Tests that events are appended and read after any foreign lines, and that all of their texts are clean.

use std::fs;

use proptest::prelude::*;

use super::files::{older, path};
use super::read::{self, Follower};
use super::*;
use crate::base::printable;

/// Generates the number of an event in a hostile line: any number, and numbers at the limits of addition.
fn number() -> impl Strategy<Value = u64> {
    prop_oneof![any::<u64>(), 0..3_u64, HIGHEST - 2..HIGHEST + 3, u64::MAX - 2..=u64::MAX]
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![any::<String>(), Just("\u{1b}]0;owned\u{7}\u{1b}[2J\r\n\u{202e}".to_owned()), Just("x".repeat(3000))]
}

prop_compose! {
    /// Generates a line of a file of events, well formed or not.
    fn line()(number in number(), texts in [text(), text(), text(), text()], of_word in any::<bool>()) -> String {
        let [reason, node, message, cause] = texts;
        let reason = if of_word { "Test".to_owned() } else { reason };
        let time = "2026-11-28T12:00:00Z";
        serde_json::json!({
            "number": number, "time": time, "type": "Normal", "reason": reason, "node": node, "message": message, "cause": cause,
        })
        .to_string()
    }
}

fn lines() -> impl Strategy<Value = Vec<String>> {
    proptest::collection::vec(prop_oneof![8 => line(), 1 => any::<String>()], 0..6)
}

fn is_clean(event: &Event) -> bool {
    let texts = [&event.reason, &event.node, &event.message, &event.cause];
    !texts.iter().any(|text| text.contains(printable::is_control) || text.len() > MESSAGE_LIMIT)
}

proptest! {
    #[test]
    fn any_lines_are_appended_to_read_and_followed(old in lines(), new in lines(), from_the_first in any::<bool>()) {
        let dir = tempfile::tempdir().unwrap();
        fs::write(older(dir.path()), old.join("\n")).unwrap();
        fs::write(path(dir.path()), new.join("\n")).unwrap();
        let all = read::all(dir.path()).unwrap();
        prop_assert!(all.iter().all(|event| is_clean(event) && !event.line().contains(char::is_control)));
        let mut follower = Follower::after(if from_the_first { 0 } else { all.last().map_or(0, |last| last.number) });
        follower.next(dir.path()).unwrap();
        for own in ["first own", "second own"] {
            let event = Event::new(1, Type::Normal, reason::TEST, "n", String::new(), own.to_owned());
            prop_assert!(append(dir.path(), event, Repeat::Never).unwrap());
            let all = read::all(dir.path()).unwrap();
            prop_assert_eq!(&all.last().unwrap().cause, own);
        }
        prop_assert!(follower.next(dir.path()).unwrap().iter().any(|event| event.cause == "second own"));
    }
}
