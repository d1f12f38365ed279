use super::*;

const EVERY: [Question; 12] = [
    Question::OwnEtcd,
    Question::PeerEtcd,
    Question::OwnPeerPort,
    Question::Check,
    Question::Members,
    Question::VoteProxy,
    Question::Proof,
    Question::Pacemaker,
    Question::Podman,
    Question::PodmanChange,
    Question::ImageVersion,
    Question::Launch,
];

fn seconds(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds)
}

/// Creates a `Pace` for an action that has `budget_s` seconds.
fn action(budget_s: f64) -> Pace {
    Pace::until(Deadline::after(seconds(budget_s)))
}

/// Returns the present time limit of `question` in seconds, rounded to tenths, because the limit shrinks a little until the call.
fn limit(pace: &Pace, question: Question) -> f64 {
    (pace.limit(question).as_secs_f64() * 10.0).round() / 10.0
}

#[test]
fn a_quick_machine_has_the_floors_whatever_hangs_there() {
    for pace in [Pace::default(), action(23.0)] {
        pace.answered(Question::Pacemaker, seconds(0.05));
        for question in EVERY {
            pace.answered(question, seconds(0.05));
            let floor = question.floor();
            let at_most = pace.end.map_or(floor, |end| end.at_most(floor));
            assert!(pace.limit(question).abs_diff(at_most) < seconds(0.1), "{question:?}");
        }
        for question in EVERY.into_iter().filter(|question| !question.is_of_a_program()) {
            for _ in 0..10 {
                pace.too_late(question, question.floor());
            }
            assert_eq!(pace.limit(question), question.floor(), "{question:?}");
        }
    }
}

#[test]
fn a_slow_machine_has_what_its_answers_took_and_more() {
    let pace = action(598.0);
    pace.answered(Question::OwnEtcd, seconds(4.0));
    assert!((limit(&pace, Question::OwnEtcd) - 12.0).abs() < 0.1);
    assert!((limit(&pace, Question::PeerEtcd) - 1.5).abs() < 0.1, "another kind");
}

/// Asserts that the limit of a vote proxy grows with the times of Pacemaker's tools. Usually no durations of vote proxies are
/// recorded yet.
#[test]
fn a_vote_proxy_on_a_slow_machine_has_more_by_what_pacemakers_tools_took() {
    for (tool_s, budget_s, expected_s) in [(0.5, 58.0, 3.0), (2.0, 58.0, 12.0), (2.0, 20.0, 8.0)] {
        let pace = action(budget_s);
        pace.answered(Question::Pacemaker, seconds(tool_s));
        assert!((limit(&pace, Question::VoteProxy) - expected_s).abs() < 0.15, "{tool_s} {budget_s}");
        assert!((limit(&pace, Question::Proof) - 2.0).abs() < 0.15, "another kind");
    }
}

/// Asserts that podman may take most of a probe's time, unless the machine is known to be fast. A probe is the first action in a
/// boot, and asks podman only one thing.
#[test]
fn the_podman_of_a_probe_has_most_of_its_time_unless_the_machine_is_known_to_be_quick() {
    let probe = action(23.0).of_a_probe();
    assert!((limit(&probe, Question::Podman) - 17.2).abs() < 0.2, "{}", limit(&probe, Question::Podman));
    assert!((limit(&probe, Question::OwnEtcd) - 2.5).abs() < 0.1, "others follow that");
    probe.answered(Question::Pacemaker, seconds(1.5));
    assert!((limit(&probe, Question::Podman) - 17.2).abs() < 0.2);
    assert!((limit(&action(23.0), Question::Podman) - 8.0).abs() < 0.1, "a monitor comes again");
    let quick = action(23.0).of_a_probe();
    quick.answered(Question::Pacemaker, seconds(0.05));
    assert!((limit(&quick, Question::Podman) - 8.0).abs() < 0.1, "who is silent there hangs");
}

#[test]
fn who_gave_no_answer_in_time_has_more_at_the_next_question() {
    let pace = action(598.0);
    let ask = |limit: Duration| if limit < seconds(30.0) { Err(limit) } else { Ok(limit) };
    let mut asked = Vec::new();
    for _ in 0..4 {
        let limit = pace.limit(Question::Podman);
        asked.push(limit.as_secs());
        pace.too_late(Question::Podman, limit);
        if ask(limit).is_ok() {
            break;
        }
    }
    assert_eq!(asked, [8, 16, 32]);
}

#[test]
fn silence_of_an_etcd_is_slowness_only_where_the_machine_is_slow() {
    let pace = action(598.0);
    pace.too_late(Question::OwnEtcd, seconds(2.5));
    assert!((limit(&pace, Question::OwnEtcd) - 5.0).abs() < 0.1, "nothing is known of this machine");
    pace.answered(Question::Pacemaker, seconds(0.05));
    assert!((limit(&pace, Question::OwnEtcd) - 2.5).abs() < 0.1, "it is quick");
    pace.answered(Question::Pacemaker, seconds(1.5));
    assert!((limit(&pace, Question::OwnEtcd) - 5.0).abs() < 0.1, "it is slow");
}

/// Asserts that one request gets at most its share of the action's time. So even if etcd hangs, the last observation ends 14.5 s after the
/// monitor began, as with fixed limits.
#[test]
fn one_question_has_a_share_of_the_actions_time_and_no_more() {
    let pace = action(20.0);
    for question in EVERY.into_iter().filter(|question| *question != Question::Launch) {
        pace.answered(question, seconds(600.0));
        let share = if question == Question::OwnEtcd { 12.0 } else { 8.0 };
        let least = question.floor().as_secs_f64().clamp(share, 20.0);
        assert!((limit(&pace, question) - least).abs() < 0.1, "{question:?}: {}", limit(&pace, question));
    }
    pace.answered(Question::Launch, seconds(600.0));
    assert!((limit(&pace, Question::Launch) - 20.0).abs() < 0.1, "nothing follows it");
    assert!(action(0.0).limit(Question::OwnEtcd).is_zero(), "nothing outlasts the action");
    assert!(limit(&action(1.0), Question::Podman) <= 1.0);
}

#[test]
fn what_is_asked_is_measured() {
    let pace = action(598.0);
    let asked = |limit: Limit, takes: f64, answer: Result<(), bool>| {
        let _ = pace.within(
            limit,
            |_| {
                crate::os::clock::sleep(seconds(takes));
                answer
            },
            |error| *error,
        );
        pace.kept()
            .questions
            .values()
            .map(|outcomes| (outcomes.slowest().as_millis(), outcomes.guessed(seconds(8.0)).as_millis()))
            .collect::<Vec<_>>()
    };
    assert_eq!(asked(seconds(1.0).into(), 0.0, Ok(())), [], "a fixed time");
    assert_eq!(asked(Question::Podman.into(), 0.0, Err(false)), [], "it failed at once");
    let beyond = |grace| Limit::Beyond(seconds(grace), Question::Podman);
    assert_eq!(asked(beyond(5.0), 0.05, Ok(())), [], "etcd ended before its grace was over");
    let [(slowest, 0)] = asked(beyond(0.05), 0.35, Ok(()))[..] else { panic!("{:?}", pace.kept()) };
    assert!((300..350).contains(&slowest), "{slowest}");
    let [(_, guessed)] = asked(Question::Podman.into(), 0.2, Err(true))[..] else { panic!("{:?}", pace.kept()) };
    assert!((400..500).contains(&guessed), "{guessed}");
}

#[test]
fn a_launch_is_to_have_half_as_much_again_as_the_slowest_took_and_twice_what_was_too_little() {
    let pace = action(598.0);
    assert_eq!(pace.launch_needs(), Duration::ZERO);
    pace.answered(Question::Launch, seconds(20.0));
    assert_eq!(pace.launch_needs(), seconds(30.0));
    pace.answered(Question::Podman, seconds(6.0));
    assert_eq!(pace.launch_needs(), seconds(36.0), "what is there is asked before");
    pace.too_late(Question::Launch, seconds(25.0));
    assert_eq!(pace.launch_needs(), seconds(56.0));
}

fn kept_at(path: &Path) -> Pace {
    Pace::read(path).ending(Deadline::after(seconds(598.0))).kept_at(path)
}

#[test]
fn what_was_measured_is_known_to_the_next_action_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("podman-etcd-etcd-pace.json");
    let killed = kept_at(&path);
    killed.too_late(Question::Podman, seconds(8.0));
    killed.answered(Question::OwnEtcd, seconds(4.0));
    let next = kept_at(&path);
    assert!((limit(&next, Question::Podman) - 16.0).abs() < 0.1);
    assert!((limit(&next, Question::OwnEtcd) - 12.0).abs() < 0.1);
    let looks = Pace::read(&path).ending(Deadline::after(seconds(598.0)));
    looks.too_late(Question::Podman, seconds(16.0));
    assert!((limit(&kept_at(&path), Question::Podman) - 16.0).abs() < 0.1, "a look changes nothing");
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1, "nothing is left beside it");
}

#[test]
fn a_healthy_machine_writes_its_file_once() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("pace.json");
    kept_at(&path).answered(Question::OwnEtcd, seconds(0.01));
    std::fs::remove_file(&path).unwrap();
    let pace = kept_at(&path);
    pace.answered(Question::OwnEtcd, seconds(0.01));
    std::fs::remove_file(&path).unwrap();
    pace.answered(Question::OwnEtcd, seconds(0.02));
    pace.note_postponed(false);
    assert!(!path.exists());
}

#[test]
fn rubbish_counts_as_nothing_and_is_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("pace.json");
    for rubbish in [
        "",
        "{",
        "[]",
        r#"{"questions":{"no_question":[]}}"#,
        r#"{"questions":{"podman":[{"answered":-1}]}}"#,
        "\0\0\0",
    ] {
        std::fs::write(&path, rubbish).unwrap();
        let pace = kept_at(&path);
        assert!((limit(&pace, Question::Podman) - 8.0).abs() < 0.1, "{rubbish}");
        pace.too_late(Question::Podman, seconds(8.0));
        assert!((limit(&kept_at(&path), Question::Podman) - 16.0).abs() < 0.1, "{rubbish}");
    }
    let nowhere = kept_at(Path::new("/dev/null/pace.json"));
    nowhere.too_late(Question::Podman, seconds(8.0));
    assert!((limit(&nowhere, Question::Podman) - 16.0).abs() < 0.1, "it is known to this action all the same");
}

#[test]
fn postponed_actions_are_counted_until_one_is_not() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("pace.json");
    let after = |is_postponed: &[bool]| {
        for is_postponed in is_postponed {
            kept_at(&path).note_postponed(*is_postponed);
        }
        kept_at(&path).postponed()
    };
    assert_eq!([after(&[]), after(&[true, true]), after(&[true]), after(&[false])], [0, 2, 3, 0]);
}

#[test]
fn the_file_keeps_its_form() {
    let text = include_str!("../../../tests/data/fixtures/formats/0.1.0/pace.json");
    let outcomes = |all: &[Outcome]| {
        let mut outcomes = Outcomes::default();
        for outcome in all {
            outcomes.add(*outcome, seconds(8.0));
        }
        outcomes
    };
    let kept = Kept {
        questions: BTreeMap::from([
            (Question::OwnEtcd, outcomes(&[Outcome::TooLate(2_500), Outcome::Answered(4_200)])),
            (Question::Podman, outcomes(&[Outcome::Answered(6_300)])),
            (Question::Launch, outcomes(&[Outcome::Answered(21_000)])),
        ]),
        postponed: 1,
    };
    assert_eq!(serde_json::from_str::<Kept>(text).unwrap(), kept);
    assert_eq!(serde_json::to_string(&kept).unwrap(), text.trim_end());
    let least = include_str!("../../../tests/data/fixtures/formats/0.1.0/pace-least.json");
    assert_eq!(serde_json::from_str::<Kept>(least).unwrap(), Kept::default());
}

#[test]
fn what_was_not_answered_in_time_is_counted_up_to_the_next_answer() {
    let pace = Pace::default();
    for count in 1..=3 {
        pace.too_late(Question::OwnEtcd, seconds(2.5));
        assert_eq!(pace.unanswered(Question::OwnEtcd), count);
    }
    assert_eq!(pace.unanswered(Question::PeerEtcd), 0, "another kind");
    pace.answered(Question::OwnEtcd, seconds(0.01));
    assert_eq!(pace.unanswered(Question::OwnEtcd), 0);
}
