//! A short notation for a history and for the step that follows it.
//!
//! A history reads `0:On 0.1:+ 0.4:?reset 0.9:Off`: the seconds, then an event. An event is a power state, `+` for an accepted
//! reset, `?` for a failed reading, or `!` for a failed reset. `On@x` has the time of the last reset, and `Gone` is a missing
//! system, which counts as off. `~` is a chassis that does not report On, `~x` one that does, and `~!x` one that failed to
//! answer. `-` is the failed task of an accepted reset.

use super::super::*;

pub(super) fn failure(name: &str) -> Failure {
    let kind = match name {
        "unreachable" => FailureKind::Unreachable,
        "reset" => FailureKind::Interrupted,
        "silent" => FailureKind::Silent,
        "busy" => FailureKind::Busy { retry_after: None },
        "busy3" => FailureKind::Busy { retry_after: Some(Duration::from_secs(3)) },
        "garbled" => FailureKind::Garbled,
        "401" => FailureKind::Unauthorised,
        "403" => FailureKind::Forbidden,
        "404" => FailureKind::Missing,
        "state" => FailureKind::WrongState,
        "value" => FailureKind::ValueRefused,
        "400" => FailureKind::Disliked,
        "405" => FailureKind::Refused,
        "tls" => FailureKind::Untrusted,
        "system" => FailureKind::WrongSystem,
        other => panic!("unknown failure {other}"),
    };
    Failure::new(kind, name)
}

pub(super) fn seconds(text: &str) -> Duration {
    Duration::from_secs_f64(text.parse().unwrap())
}

pub(super) fn history(text: &str) -> Vec<Moment> {
    let event = |word: &str| match word.chars().next().unwrap() {
        '+' => Event::Posted,
        '?' => Event::Unread(failure(&word[1..])),
        '!' => Event::Refused(failure(&word[1..])),
        '-' => Event::Undone(failure(&word[1..])),
        '~' if word.starts_with("~!") => Event::ChassisUnread(failure(&word[2..])),
        '~' => Event::Chassis { on: Some(word[1..].to_owned()).filter(|path| !path.is_empty()) },
        _ => {
            let (word, last_reset) =
                word.split_once('@').map_or((word, None), |(word, last)| (word, Some(last.to_owned())));
            let is_there = word != "Gone";
            Event::Read { power: Power::read(Some(&if is_there { word } else { "Off" }.into())), last_reset, is_there }
        }
    };
    let moment = |token: &str| {
        let (at, word) = token.split_once(':').unwrap();
        Moment { at: seconds(at), event: event(word) }
    };
    text.split_whitespace().map(moment).collect()
}

pub(super) fn plan(goal: Goal) -> Plan {
    let types: &[&str] = match goal {
        Goal::Know => &[],
        Goal::Off => &["ForceOff"],
        Goal::On => &["On", "ForceOn"],
        Goal::Cycle => &["PowerCycle", "ForceRestart"],
    };
    Plan {
        goal,
        types: types.iter().map(ToString::to_string).collect(),
        limits: Limits {
            end: seconds("50"),
            patience: seconds("10"),
            after_post: None,
            repost: seconds("12"),
            attempts: u32::MAX,
            power_wait: Duration::ZERO,
            poll: seconds("1"),
            grace: Duration::ZERO,
            may_give_way: false,
        },
    }
}

/// Returns the short form of a step: `read 1.25`, `post ForceOff`, `already`, `by us`, `is On`, `fail ...`.
pub(super) fn short(step: &FenceStep) -> String {
    match step {
        FenceStep::Read { not_before } => format!("read {}", not_before.as_secs_f64()),
        FenceStep::Post { reset_type } => format!("post {reset_type}"),
        FenceStep::Done(Reached::Already) => "already".to_owned(),
        FenceStep::Done(Reached::ByUs) => "by us".to_owned(),
        FenceStep::Done(Reached::State(power)) => format!("is {power}"),
        FenceStep::GiveWay => "give way".to_owned(),
        FenceStep::AskChassis => "ask chassis".to_owned(),
        FenceStep::Fail(failure) => format!("fail {failure}"),
    }
}

#[track_caller]
pub(super) fn check_with(plan: &Plan, rows: &[(&str, &str, &str)]) {
    for (past, now, expected) in rows {
        let step = short(&plan.next(&history(past), seconds(now)));
        let fits = step == *expected || (expected.ends_with('*') && step.starts_with(expected.trim_end_matches('*')));
        assert!(fits, "after '{past}' at {now}: expected '{expected}', got '{step}'");
    }
}

#[track_caller]
pub(super) fn check(goal: Goal, rows: &[(&str, &str, &str)]) {
    check_with(&plan(goal), rows);
}
