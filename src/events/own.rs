//! What the resource agent decided and did, as events: alone, redundant again, refused, an alarm, two histories. Taken from a
//! plan that was carried out, and told when that changes something; what lasts is told once, however often it is found again.

use std::path::Path;
use std::time::Duration;

use super::append::append_within;
use super::{Event, Repeat, Type, reason};
use crate::clock;
use crate::decide::reason::{Refusal, Wait};
use crate::decide::{Effect, Reason};

/// How long an action waits for others who write an event: it has better things to do.
const PATIENCE: Duration = Duration::from_millis(100);
/// A state that was announced and is seen again within so many milliseconds is the same.
const ONE_CHANGE: u64 = 10 * 60 * 1000;
/// A refusal that lasts is told again after a day.
const A_DAY: u64 = 24 * 60 * 60 * 1000;

/// An event, and when it is told again.
type Told = (Event, Repeat<'static>);

/// What an effect that was performed on `node` tells.
pub fn of_effect(node: &str, effect: &Effect, because: &Reason) -> Option<Told> {
    let told = |kind, reason, message: String, ends| {
        let event = Event::new(clock::wall_millis(), kind, reason, node, message, format!("{reason} {node}"));
        (event, Repeat::Until { ends, within: ONE_CHANGE })
    };
    match effect {
        Effect::SetStandalone(Some(name)) => {
            let message = format!("the etcd of {name} is the only voter: {because}");
            Some(told(Type::Error, reason::ALONE, message, &[reason::REDUNDANT]))
        }
        Effect::SetStandalone(None) => {
            Some(told(Type::Normal, reason::REDUNDANT, "etcd has two voters again".to_owned(), &[reason::ALONE]))
        }
        Effect::SetAlarm(Some(alarms)) => {
            let (mut event, repeat) = told(Type::Error, reason::ALARM, alarms.clone(), &[reason::ALARM_GONE]);
            event.cause = format!("{} {alarms}", event.cause);
            Some((event, repeat))
        }
        Effect::SetAlarm(None) => {
            Some(told(Type::Normal, reason::ALARM_GONE, "etcd raises no alarm any more".to_owned(), &[reason::ALARM]))
        }
        _ => None,
    }
}

/// What an action that failed on `node` tells, if it was refused.
pub fn of_refusal(node: &str, resource: &str, because: &Reason) -> Option<Told> {
    /// After these it is told anew.
    const OVER: &[&str] = &[reason::ALONE, reason::REDUNDANT, reason::RESOURCE_STARTED];
    let (Reason::Refused { refusal, .. } | Reason::Waiting(Wait::BeforeFailing { refusal, .. })) = because else {
        return None;
    };
    let reason = if *refusal == Refusal::HistoriesSplit { reason::HISTORIES_SPLIT } else { reason::REFUSED };
    let short = because.short();
    let cause = format!("{reason} {node} {resource} {short}");
    let event = Event::new(clock::wall_millis(), Type::Error, reason, node, short, cause);
    Some((event, Repeat::Until { ends: OVER, within: A_DAY }))
}

/// Writes it down. An event that cannot be kept must not keep etcd from being kept.
pub fn tell(directory: &Path, told: Option<Told>) {
    let Some((event, repeat)) = told else { return };
    if let Err(error) = append_within(directory, event, repeat, PATIENCE) {
        log::debug!("this event is not kept: {error}");
    }
}

#[cfg(test)]
mod tests {
    use super::super::read;
    use super::*;
    use crate::decide::reason::Rule;

    const NODE: &str = "node1";

    fn because() -> Reason {
        Reason::Rule { rule: Rule::SurvivorGoesOnAlone, peer: "node2".to_owned() }
    }

    fn refused(refusal: Refusal) -> Reason {
        Reason::Refused { refusal, peer: "node2".to_owned() }
    }

    fn reasons(directory: &Path) -> Vec<String> {
        read::all(directory).unwrap().into_iter().map(|event| event.reason).collect()
    }

    #[test]
    fn what_changes_is_told_once_and_again_after_it_was_over() {
        let dir = tempfile::tempdir().unwrap();
        let alone = Effect::SetStandalone(Some(NODE.to_owned()));
        let alarm = Effect::SetAlarm(Some("NOSPACE of node1".to_owned()));
        for effect in [
            &alone,
            &alone,
            &Effect::SetStandalone(None),
            &alone,
            &alarm,
            &alarm,
            &Effect::SetAlarm(None),
            &alarm,
            &Effect::ForgetPrimary,
        ] {
            tell(dir.path(), of_effect(NODE, effect, &because()));
        }
        let expected =
            [reason::ALONE, reason::REDUNDANT, reason::ALONE, reason::ALARM, reason::ALARM_GONE, reason::ALARM];
        assert_eq!(reasons(dir.path()), expected);
    }

    #[test]
    fn a_refusal_that_lasts_is_told_once_and_another_one_too() {
        let dir = tempfile::tempdir().unwrap();
        let blank = || of_refusal(NODE, "etcd", &refused(Refusal::BlankAlone));
        tell(dir.path(), blank());
        tell(dir.path(), blank());
        tell(dir.path(), of_refusal(NODE, "etcd", &refused(Refusal::HistoriesSplit)));
        tell(dir.path(), blank());
        tell(dir.path(), of_effect(NODE, &Effect::SetStandalone(None), &because()));
        tell(dir.path(), blank());
        tell(dir.path(), of_refusal(NODE, "etcd", &because()));
        let expected = [reason::REFUSED, reason::HISTORIES_SPLIT, reason::REDUNDANT, reason::REFUSED];
        assert_eq!(reasons(dir.path()), expected);
    }

    #[test]
    fn without_a_directory_nothing_fails() {
        tell(Path::new("/nowhere/events"), of_refusal(NODE, "etcd", &refused(Refusal::BlankAlone)));
    }
}
