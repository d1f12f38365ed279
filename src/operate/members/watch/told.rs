//! The events of one turn: hooks that are put on no more, and replacements that are due.

use super::due::Due;
use super::turn::Kept;
use crate::records::events::{Event, Repeat, Type, reason};

/// Time after which a replacement that stays due is reported again, in milliseconds.
const AGAIN: u64 = 24 * 60 * 60 * 1000;

/// Returns the events to record after a turn at the wall-clock time `at` in seconds, each with the condition under which the event may
/// repeat.
pub fn events(at: u64, kept: &Kept) -> Vec<(Event, Repeat<'static>)> {
    let told = |reason: &str, node: &str, message: String, cause: String| {
        Event::new(at * 1000, Type::Warning, reason, node, message, cause)
    };
    let given_up = kept.given_up.iter().map(|node| {
        let cause = format!("{} {node} {at}", reason::HOOK_GIVEN_UP);
        (told(reason::HOOK_GIVEN_UP, node, Kept::gave_up(node), cause), Repeat::Never)
    });
    let due = kept.due.iter().map(|due| {
        let Due { old, new, command } = due;
        let event =
            told(reason::REPLACEMENT_DUE, old, due.sentence(), format!("{} {old} {new}", reason::REPLACEMENT_DUE));
        let details = [("old", old.clone()), ("new", new.clone()), ("command", command.clone())];
        (event.with_details(details), Repeat::Until { ends: &[], within: AGAIN })
    });
    given_up.chain(due).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::events::append;

    #[test]
    fn a_replacement_that_stays_due_is_told_once_a_day() {
        let command = "tandem member replace node2 --new node4=192.0.2.4".to_owned();
        let due = vec![Due { old: "node2".to_owned(), new: "node4".to_owned(), command: command.clone() }];
        let kept = Kept { due, given_up: vec!["node1".to_owned()], ..Kept::default() };
        let dir = tempfile::tempdir().unwrap();
        let told = |at: u64| -> Vec<(String, bool)> {
            let append =
                |(event, repeat): (Event, Repeat<'_>)| (event.reason.clone(), append(dir.path(), event, repeat));
            events(at, &kept).into_iter().map(append).map(|(reason, told)| (reason, told.unwrap())).collect()
        };
        let (gave_up, due) =
            (|told| ("MachineHookGivenUp".to_owned(), told), |told| ("MemberReplacementDue".to_owned(), told));
        let day = 24 * 60 * 60;
        assert_eq!(told(1_000_000), [gave_up(true), due(true)]);
        assert_eq!(told(1_000_030), [gave_up(true), due(false)]);
        assert_eq!(told(1_000_030 + day), [gave_up(true), due(true)]);
        let event = &events(1_000_000, &kept)[1].0;
        assert!(event.message.ends_with(&format!("type '{command}'")), "{}", event.message);
        assert_eq!((event.node.as_str(), &event.details["command"]), ("node2", &command));
    }
}
