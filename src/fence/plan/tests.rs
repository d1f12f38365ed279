//! Tests of the plan as tables: a goal, a history in short form, the time, and the step that must follow.

mod notation;
mod off_already;
mod standing;

use self::notation::{check, check_with, history, plan, seconds};
use super::*;

#[test]
fn everything_begins_with_a_reading() {
    for goal in [Goal::Know, Goal::Off, Goal::On, Goal::Cycle] {
        check(goal, &[("", "0", "read 0")]);
    }
}

#[test]
fn off_needs_two_readings_a_second_apart() {
    check(
        Goal::Off,
        &[
            ("0:On 0.1:+ 0.4:Off", "0.4", "read 1.4"),
            ("0:On 0.1:+ 0.4:Off 0.9:Off", "0.9", "read 1.4"),
            ("0:On 0.1:+ 0.4:Off 1.4:Off", "1.4", "by us"),
            ("0:On 0.1:+ 0.4:Off 0.9:Off 1.4:Off", "1.4", "by us"),
            // A failed reading in between does not matter, but another state does.
            ("0:On 0:+ 0:Off 0.5:?busy 1:Off", "1", "by us"),
            ("0:On 0:+ 0:Off 0.5:On 1:Off", "1", "read 2"),
            ("0:On 0:+ 0:Off 0.5:PoweringOn 1:Off", "1", "read 2"),
            ("0:On 0:+ 0:Off 0.5:nonsense 1:Off", "1", "read 2"),
            // The proof must be the last event.
            ("0:On 0:+ 0:Off 1:?reset", "1", "read 1.5"),
        ],
    );
}

#[test]
fn no_success_without_an_accepted_reset_passes_a_chassis_that_is_on() {
    for refused in ["!state", "!reset", "!silent"] {
        let off = format!("0:On 0:{refused} 0.3:Off 1.3:Off");
        let again = format!("{off} 1.4:~/c 2:Off");
        let third = format!("0:On 0:!state 2:Off 2:!state 4:Off 4:{refused} 4.3:Off 5.3:Off 5.3:~/c");
        check(
            Goal::Off,
            &[
                (&off, "1.3", "ask chassis"),
                (&format!("{off} 1.3:~"), "1.3", if refused == "!state" { "already" } else { "by us" }),
                // A chassis may be late, so there is another reset. An accepted reset ends all doubt.
                (&format!("{off} 1.3:~/c"), "2", "post ForceOff"),
                (&format!("{off} 2:~/c 2:+ 2.3:Off 3.3:Off"), "3.3", "by us"),
                (&again, "2.1", "ask chassis"),
                (&third, "5.3", &format!("fail {}; the system says Off, but its chassis /c says On", &refused[1..])),
                // A chassis that does not answer contradicts nothing.
                (&format!("{off} 1.3:~!busy"), "1.3", "read 1.8"),
                (&format!("{off} 1.3:~!busy 1.8:Off"), "1.8", "ask chassis"),
                (
                    &format!("{off} 1.3:~!busy 1.8:Off 1.8:~!busy 2.3:Off 2.3:~!busy"),
                    "2.3",
                    if refused == "!state" { "already" } else { "by us" },
                ),
            ],
        );
        let then_silent = format!("{off} 1.3:~/c 2:{refused} 2.3:Off 3.3:Off 3.3:~!busy 4:Off 4:~!busy 5:Off 5:~!busy");
        check(Goal::Off, &[(&then_silent, "5", "read 5.5")]);
        // A cycle leaves the proof to the Off that follows. If its answer was lost, it asks the chassis itself.
        let is_lost = refused != "!state";
        check(
            Goal::Cycle,
            &[
                (&off, "1.3", if is_lost { "ask chassis" } else { "already" }),
                (&format!("{off} 1.3:~"), "1.3", if is_lost { "by us" } else { "already" }),
                (&format!("{off} 1.3:~/c"), "1.3", if is_lost { "read *" } else { "already" }),
            ],
        );
    }
    // A system that refuses a reset for another reason needs the chassis' report.
    let silent = "0:Off 0:!403 0.3:Off 1.3:Off 1.3:~!busy 1.8:Off 1.8:~!busy 2.3:Off 2.3:~!busy";
    check(Goal::Off, &[(silent, "2.3", "read 2.8")]);
}

#[test]
fn what_was_known_before_an_outage_is_not_known_after_it() {
    check(
        Goal::Off,
        &[
            // The reset was accepted, and then the BMC itself restarted.
            ("0:On 0.1:+ 1:?unreachable 20:Off", "20", "post ForceOff"),
            ("0:On 0.1:+ 1:?unreachable 20:Off 20:!state 20.3:Off 21.3:Off", "21.3", "ask chassis"),
            ("0:On 0.1:+ 1:?unreachable 20:Off 20:!state 20.3:Off 21.3:Off 21.3:~", "21.3", "by us"),
            ("0:On 0.1:+ 1:?unreachable 20:Off 20:+ 20.3:Off 21.3:Off", "21.3", "read 25"),
            ("0:On 0.1:+ 1:?unreachable 20:Off 20:+ 20.3:Off 25:Off", "25", "by us"),
            ("0:On 0.1:+ 1:?unreachable 20:On 20.1:Off 21.1:Off", "21.1", "post ForceOff"),
            // A lost request is no outage.
            ("0:On 0.1:+ 1:?reset 1.5:Off 2.5:Off", "2.5", "by us"),
        ],
    );
}

#[test]
fn off_is_posted_to_whatever_is_not_off() {
    for state in ["On", "PoweringOn", "PoweringOff", "Paused", "Reset", "off", "OFF", "Unknown", "null"] {
        check(Goal::Off, &[(&format!("0:{state}"), "0", "post ForceOff")]);
    }
}

#[test]
fn an_accepted_reset_proves_nothing() {
    check(
        Goal::Off,
        &[
            ("0:On 0.1:+", "0.1", "read 0.2"),
            ("0:On 0.1:+ 0.4:On", "0.4", "read 0.5"),
            ("0:On 0.1:+ 0.4:On 0.7:On", "0.7", "read 0.9"),
            ("0:On 0.1:+ 0.4:On 0.7:On 1.2:On 2.2:On", "2.2", "read 3"),
            ("0:On 0.1:+ 12:On", "12", "read 12.1"),
            ("0:On 0.1:+ 12.2:On", "12.2", "post ForceOff"),
            ("0:On 0.1:+ 9:PoweringOff", "9", "read 9.1"),
            ("0:On 0.1:+ 13:PoweringOff", "13", "post ForceOff"),
            ("0:On 0.1:+ 49:On", "50", "fail Timed out waiting to power OFF: the BMC accepted the reset once*"),
            ("0:On 0.1:+ 50:Off", "50", "fail Timed out*"),
        ],
    );
}

#[test]
fn what_a_refusal_means_decides() {
    check(
        Goal::Off,
        &[
            // After any answer, the power state is read first.
            ("0:On 0.1:!403", "0.1", "read 0.2"),
            ("0:On 0.1:!403 0.4:Off", "0.4", "read 1.4"),
            ("0:On 0.1:!403 0.4:On", "0.4", "fail 403"),
            ("0:On 0.1:!401 0.4:On", "0.4", "fail 401"),
            ("0:On 0.1:!404 0.4:On", "0.4", "fail 404"),
            ("0:On 0.1:!405 0.4:On", "0.4", "fail 405"),
            ("0:On 0.1:!tls 0.4:On", "0.4", "fail tls"),
            ("0:On 0.1:!value 0.1:On", "0.1", "fail value"),
            ("0:On 0.1:!state 0.4:On", "0.4", "read 2.1"),
            ("0:On 0.1:!state 2.1:On", "2.1", "post ForceOff"),
            ("0:On 0.1:!400 2.1:On", "2.1", "post ForceOff"),
            ("0:On 0.1:!400 2.1:On 2.2:!400 4.2:On 4.3:!400 6.3:On", "6.3", "fail 400"),
            ("0:On 0.1:!busy 0.6:On", "0.6", "post ForceOff"),
            ("0:On 0.1:!busy3 0.4:On", "0.4", "read 3.1"),
            ("0:On 0:!busy 1:On 1:!busy 1.5:On", "1.5", "read 2"),
            ("0:On 0.1:!reset 0.4:On", "0.4", "read 0.6"),
            ("0:On 0.1:!reset 0.6:On", "0.6", "post ForceOff"),
            ("0:On 0.1:!silent 0.4:Off 1.4:Off", "1.4", "ask chassis"),
            ("0:On 0.1:!silent 0.4:Off 1.4:Off 1.4:~", "1.4", "by us"),
            ("0:On 0.1:!state 0.4:Off 1.4:Off", "1.4", "ask chassis"),
            ("0:On 0.1:!state 0.4:Off 1.4:Off 1.4:~", "1.4", "already"),
        ],
    );
}

#[test]
fn a_reset_that_was_accepted_is_waited_for_although_its_repetition_is_refused() {
    let disliked = "12.3:!400 14.3:On 14.4:!400 16.4:On 16.5:!400";
    for refused in ["12.3:!403", "12.3:!404", "12.3:!405", "12.3:!value", disliked] {
        let history = format!("0:On 0.1:+ 12.2:On {refused}");
        check(
            Goal::Off,
            &[
                (&format!("{history} 20:On"), "20", "read 20.1"),
                (&format!("{history} 20:Off 21:Off 21:~"), "21", "by us"),
                (
                    &format!("{history} 49:On"),
                    "50",
                    "fail Timed out waiting to power OFF: the BMC accepted the reset once, the last reset failed (*",
                ),
                // A failed task has no further effect.
                ("0:On 0.1:+ 0.4:On 0.7:-400 2.7:On 2.8:+ 3:On 3.3:-403 3.6:On", "3.6", "fail 403"),
            ],
        );
    }
    check(Goal::On, &[("0:Off 0.1:+ 12.2:Off 12.3:!403 20:Off", "20", "read 20.1")]);
}

#[test]
fn failed_readings_are_repeated_as_long_as_it_makes_sense() {
    check(
        Goal::Off,
        &[
            ("0:?unreachable", "0", "read 0.5"),
            ("0:?unreachable 0.5:?unreachable", "0.5", "read 1.5"),
            ("9:?unreachable 10:?unreachable", "10", "fail unreachable"),
            ("9:?silent 10:?silent", "10", "fail silent"),
            // The service is there and asks for a retry.
            ("9:?busy 20:?busy", "20", "read 21"),
            ("0:?busy3", "0", "read 3"),
            // The BMC has answered before, so it may come back.
            ("0:On 0.1:+ 30:?unreachable", "30", "read 30.5"),
            ("0:On 0.1:+ 30:?404", "30", "read 30.5"),
            ("0:On 0.1:+ 30:?400", "30", "read 30.5"),
            ("0:?400", "0", "fail 400"),
            ("0:?401", "0", "fail 401"),
            ("0:?403", "0", "fail 403"),
            ("0:?404", "0", "fail 404"),
            ("0:?tls", "0", "fail tls"),
            ("0:?system", "0", "fail system"),
            ("0:On 0.1:+ 30:?401", "30", "fail 401"),
            ("0:On 0.1:+ 30:?system", "30", "fail system"),
            ("49:?busy", "50", "fail Timed out waiting to power OFF: its power state could not be read, busy"),
        ],
    );
}

#[test]
fn on_waits_out_transitions_and_never_posts_into_them() {
    check(
        Goal::On,
        &[
            ("0:On", "0", "already"),
            ("0:Off", "0", "post On"),
            ("0:nonsense", "0", "post On"),
            ("0:PoweringOff", "0", "read 0.1"),
            ("0:PoweringOn", "0", "read 0.1"),
            ("0:Off 0.1:+ 0.4:PoweringOn", "0.4", "read 0.5"),
            ("0:Off 0.1:+ 13:PoweringOn", "13", "read 13.1"),
            ("0:Off 0.1:!state 3:PoweringOff", "3", "read 3.1"),
            ("0:Off 0.1:+ 12.2:Off", "12.2", "post On"),
            ("0:Off 0.1:+ 1:On", "1", "by us"),
            ("0:Off 0.1:!value", "0.1", "read 0.1"),
            ("0:Off 0.1:!value 0.1:Off", "0.1", "post ForceOn"),
            ("0:Off 0.1:!value 0.1:Off 0.2:!value 0.2:Off", "0.2", "fail value"),
        ],
    );
}

#[test]
fn attempts_and_their_length_are_bounded() {
    let mut limited = plan(Goal::On);
    limited.limits = Limits { after_post: Some(seconds("6")), repost: seconds("3"), attempts: 2, ..limited.limits };
    check_with(
        &limited,
        &[
            ("0:Off 0:+ 2:Off", "2", "read 2.1"),
            ("0:Off 0:+ 3:Off", "3", "post On"),
            ("0:Off 0:+ 3:+ 5:Off", "5", "read 5.1"),
            ("0:Off 0:+ 3:+ 6:Off", "6", "fail Timed out waiting to power ON*"),
            ("0:Off 0:+ 3:+ 6:On", "6", "by us"),
        ],
    );
    let mut off = plan(Goal::Off);
    off.limits = Limits { after_post: Some(seconds("20")), power_wait: seconds("5"), ..off.limits };
    check_with(
        &off,
        &[
            ("0:On 1:+", "1", "read 6"),
            ("0:On 1:+ 25:On", "25", "post ForceOff"),
            ("0:On 1:+ 26:On", "26", "fail Timed out*"),
        ],
    );
    let mut graceful = plan(Goal::On);
    graceful.limits.grace = seconds("8");
    check_with(&graceful, &[("0:Off", "0", "read 0.1"), ("7:Off 8:Off", "8", "post On")]);
}

#[test]
fn the_pause_between_looks_is_bounded() {
    let mut slow = plan(Goal::Off);
    slow.limits.poll = seconds("5");
    let six = "0:On 0:+ 1:On 2:On 3:On 4:On 5:On 6:On";
    check_with(&slow, &[(six, "6", "read 9.2"), (&format!("{six} 7:On"), "7", "read 12")]);
    let mut fast = plan(Goal::Off);
    fast.limits.poll = Duration::ZERO;
    check_with(&fast, &[("0:On 0:+ 1:On 2:On", "2", "read 2.1")]);
}

#[test]
fn a_cycle_is_sent_once_and_needs_evidence() {
    check(
        Goal::Cycle,
        &[
            ("0:On", "0", "post PowerCycle"),
            ("0:Off", "0", "read 1"),
            ("0:Off 1:Off", "1", "already"),
            ("0:On 0.1:+ 0.4:On", "0.4", "read 0.5"),
            ("0:On 0.1:+ 40:On", "40", "read 40.1"),
            ("0:On 0.1:+ 49:On", "50", "fail Timed out waiting for evidence of the reset*"),
            ("0:On 0.1:+ 0.4:Off 0.7:On", "0.7", "by us"),
            ("0:On 0.1:+ 0.4:PoweringOn", "0.4", "read 0.5"),
            ("0:On 0.1:+ 0.4:PoweringOn 0.7:On", "0.7", "by us"),
            ("0:On@monday 0.1:+ 0.4:On@monday", "0.4", "read 0.5"),
            ("0:On@monday 0.1:+ 0.4:On@tuesday", "0.4", "by us"),
            ("0:On 0.1:+ 0.4:On@tuesday", "0.4", "read 0.5"),
            ("0:PoweringOff 0.1:+ 0.4:On", "0.4", "read 0.5"),
            // A BMC that was unreachable may have restarted, and may report anything until it knows its host.
            ("0:On 0.1:+ 1:?unreachable 14:Off 14.3:On", "14.3", "read *"),
            ("0:On 0.1:+ 1:?unreachable 14:PoweringOn 14.3:On", "14.3", "read *"),
            ("0:On 0.1:+ 1:?unreachable 14:Off 15:Off", "15", "already"),
            ("0:On 0.1:+ 1:?unreachable 13:On 14:Off 15:Off", "15", "by us"),
            ("0:On 0.1:+ 1:?unreachable 13:On 14:Off 14.3:On", "14.3", "by us"),
            ("0:On 0.1:+ 0.4:Off 1:?unreachable 14:On", "14", "by us"),
            ("0:On@monday 0.1:+ 1:?unreachable 14:On@tuesday", "14", "by us"),
            ("0:On 0.1:!reset 5:On", "5", "read 5.1"),
            ("0:On 0.1:!silent 40:On", "40", "read 40.1"),
            ("0:On 0.1:!unreachable 0.7:On", "0.7", "post PowerCycle"),
            ("0:On 0.1:!busy 0.7:On", "0.7", "post PowerCycle"),
            ("0:On 0.1:!value 0.1:On", "0.1", "post ForceRestart"),
            ("0:On 0.1:!403 0.4:On", "0.4", "fail 403"),
        ],
    );
}

#[test]
fn a_question_is_answered_or_given_up() {
    check(
        Goal::Know,
        &[
            ("0:On", "0", "is On"),
            ("0:Off", "0", "is Off"),
            ("0:PoweringOff", "0", "is PoweringOff"),
            ("0:nonsense", "0", "fail the system does not say whether it is on: its PowerState is \"nonsense\""),
            ("0:?busy 0.5:On", "0.5", "is On"),
            ("0:?garbled", "0", "read 0.5"),
            ("10:?garbled", "10", "fail garbled"),
        ],
    );
}

#[test]
fn coming_back_is_noticed() {
    assert!(came_back(&history("0:On 0.1:+ 0.4:Off 1.4:On")));
    assert!(came_back(&history("0:Off 1:PoweringOn")));
    assert!(!came_back(&history("0:On 0.1:+ 0.4:Off 1.4:Off")));
    assert!(!came_back(&history("0:Off 0.5:nonsense")));
}

#[test]
fn every_history_leads_somewhere_in_time() {
    // Every plan that is followed ends, whatever the system reports. Here each reading is the next of a repeated sequence of
    // words.
    let words = ["On", "Off", "PoweringOff", "PoweringOn", "nonsense", "?busy", "?reset", "!state", "+"];
    for goal in [Goal::Know, Goal::Off, Goal::On, Goal::Cycle] {
        for first in 0..words.len() {
            for second in 0..words.len() {
                let plan = plan(goal);
                let mut past: Vec<Moment> = Vec::new();
                let mut now = Duration::ZERO;
                let mut steps = 0;
                loop {
                    steps += 1;
                    assert!(steps < 1000, "{goal:?} {first} {second} does not end: {past:?}");
                    let word = words[if steps % 2 == 0 { first } else { second }];
                    match plan.next(&past, now) {
                        FenceStep::Read { not_before } => {
                            now = now.max(not_before.min(plan.limits.end)) + Duration::from_millis(10);
                            let reading = word.trim_start_matches(['!', '+']);
                            let reading = if reading == "state" || reading.is_empty() { "On" } else { reading };
                            past.extend(history(&format!("{}:{reading}", now.as_secs_f64())));
                        }
                        FenceStep::Post { .. } => {
                            now += Duration::from_millis(10);
                            let answer = if word.starts_with('!') { word } else { "+" };
                            past.extend(history(&format!("{}:{answer}", now.as_secs_f64())));
                        }
                        FenceStep::AskChassis => past.extend(history(&format!("{}:~", now.as_secs_f64()))),
                        FenceStep::Done(_) | FenceStep::Fail(_) | FenceStep::GiveWay => break,
                    }
                }
            }
        }
    }
}

#[test]
fn what_was_out_of_reach_is_not_reset_in_the_same_try_where_another_one_comes() {
    for (goal, reset) in [(Goal::Off, "post ForceOff"), (Goal::Cycle, "post PowerCycle")] {
        let mut asked_again = plan(goal);
        asked_again.limits.may_give_way = true;
        check_with(
            &asked_again,
            &[
                ("0:On", "0", reset),
                ("0:?unreachable 3:On", "3", "give way"),
                ("0:?unreachable 3:?busy 4:On", "4", "give way"),
                // A BMC that was reachable and refused to answer is no sign of an outage.
                ("0:?busy 3:On", "3", reset),
                ("0:?silent 3:On", "3", reset),
                // An outage after the reset does not undo it.
                ("0:On 0.1:+ 1:?unreachable 14:On", "14", if goal == Goal::Off { reset } else { "read *" }),
            ],
        );
        // A system that reports Off may not know its host yet, and a reset of it counts.
        let after_off = if goal == Goal::Off { "give way" } else { "read 4" };
        check_with(&asked_again, &[("0:?unreachable 3:Off", "3", after_off), ("0:?unreachable 3:Gone", "3", "read 4")]);
        // In a run by hand, no fencer tries again.
        check(goal, &[("0:?unreachable 3:On", "3", reset)]);
    }
    let mut on = plan(Goal::On);
    on.limits.may_give_way = true;
    check_with(&on, &[("0:?unreachable 3:Off", "3", "post On")]);
}
