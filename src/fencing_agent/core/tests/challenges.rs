//! Tests of the times at which members are challenged.

use std::collections::BTreeMap;

use super::*;

#[test]
fn an_absent_member_is_challenged_as_often_as_a_suspect() {
    let timing = TimingOverrides { probe: Some(Duration::from_millis(200)), ..TimingOverrides::default() };
    let mut played = Played::new(Settings { timing, ..settings(3) }, &["b"]);
    played.pass(2);
    let to = |name: &str| {
        let sent = played.outputs.iter().filter(|(_, output)| match output {
            Output::Send { to, payload, .. } if **to == *name => {
                matches!(Datagram::decode(payload).unwrap().message, Message::Challenge { .. })
            }
            _ => false,
        });
        sent.count()
    };
    // A member that is challenged because of an open probe is still challenged with the others.
    assert!(to("c") >= 18 && to("b") <= 14, "{} {}", to("c"), to("b"));
}

#[test]
fn a_challenge_of_an_absent_member_is_returned_at_once() {
    let mut played = Played::new(settings(3), &["b"]);
    let is_challenge = |output: &Output| match output {
        Output::Send { to, payload, .. } if &**to == "c" => {
            matches!(Datagram::decode(payload).unwrap().message, Message::Challenge { .. })
        }
        _ => false,
    };
    played.pass(2);
    played.forget();
    played.until(|played, _| played.when(is_challenge).is_some());
    for (later, is_returned) in [(20, false), (100, true), (20, false)] {
        played.forget();
        played.now += Duration::from_millis(later);
        played.hear("c", 1, Message::Challenge { nonce: 1, suspected: None, accused: Vec::new() });
        assert_eq!(played.when(is_challenge).is_some(), is_returned, "{later} ms later");
    }
}

#[test]
fn a_challenge_that_is_due_soon_goes_with_an_answer_and_not_once_more_in_its_round() {
    let mut played = joined(3, &["b", "c"]);
    let sent_to_b = |played: &Played| -> Vec<Message> {
        let messages = played.outputs.iter().filter_map(|(_, output)| match output {
            Output::Send { to, payload, .. } if &**to == "b" => Some(Datagram::decode(payload).unwrap().message),
            _ => None,
        });
        messages.filter(|message| !matches!(message, Message::Swim(_))).collect()
    };
    let challenge = || Message::Challenge { nonce: 77, suspected: None, accused: Vec::new() };
    let is_round = |output: &Output| match output {
        Output::Send { to, payload, .. } if &**to == "c" => {
            matches!(Datagram::decode(payload).unwrap().message, Message::Challenge { .. })
        }
        _ => false,
    };
    let next_round = |played: &mut Played| {
        played.forget();
        played.until(|played, _| played.when(is_round).is_some());
    };
    next_round(&mut played);
    for (later, rides) in [(50, false), (110, true)] {
        played.forget();
        played.now += Duration::from_millis(later);
        played.hear("b", 1, challenge());
        let own = match &sent_to_b(&played)[..] {
            [Message::Answer { nonce: 77, .. }] => false,
            [Message::AnswerAndChallenge { answered: 77, .. }] => true,
            other => panic!("{other:?}"),
        };
        assert_eq!(own, rides, "{later} ms later");
    }
    next_round(&mut played);
    assert_eq!(sent_to_b(&played), [], "it was challenged with the answer");
    next_round(&mut played);
    assert!(matches!(sent_to_b(&played)[..], [Message::Challenge { .. }, ..]), "it challenges no more by itself");
}

/// Asserts that few members are challenged at the same moment, because a host wakes up for each moment and not for each datagram.
#[test]
fn few_members_are_challenged_at_the_same_moment() {
    let peers = ["b", "c", "d", "e", "f", "g", "h"];
    let mut played = joined(8, &peers);
    let moments = |played: &mut Played| {
        played.forget();
        for _ in 0..10_000 {
            played.now += Duration::from_millis(1);
            played.give(Event::Wake);
        }
        let mut moments: BTreeMap<Duration, usize> = BTreeMap::new();
        for (at, output) in &played.outputs {
            if let Output::Send { payload, .. } = output
                && matches!(Datagram::decode(payload).unwrap().message, Message::Challenge { .. })
            {
                *moments.entry(*at).or_default() += 1;
            }
        }
        moments.into_values().collect::<Vec<usize>>()
    };
    // The simulated peers answer no probe, so a probed member is challenged separately.
    let rounds = |found: &[usize]| {
        assert!(found.iter().all(|count| [1, peers.len()].contains(count)), "{found:?}");
        found.iter().filter(|count| **count == peers.len()).count()
    };
    let found = moments(&mut played);
    assert!((32..=36).contains(&rounds(&found)), "each 279 to 310 ms: {found:?}");
    // A member that was absent is in step with the others again.
    played.there.remove("b");
    played.pass(1);
    played.there.insert("b");
    played.pass(1);
    let found = moments(&mut played);
    assert!((32..=36).contains(&rounds(&found)), "{found:?}");
}
