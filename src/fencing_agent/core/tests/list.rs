//! Tests of the list: members that join, are suspected, and are lost.

use super::*;

fn about(name: &str, number: u64, incarnation: u16, state: foca::State) -> Vec<foca::Member<Id>> {
    vec![foca::Member::new(Id { name: name.into(), number }, incarnation, state)]
}

fn left(played: &Played) -> Vec<(String, String)> {
    let changes = played.changes().into_iter().filter(|(kind, _, _)| *kind == ChangeKind::Left);
    changes.map(|(_, name, source)| (name, source)).collect()
}

#[test]
fn the_first_answer_joins_and_silence_ends_it() {
    let mut played = Played::new(settings(3), &["b", "c"]);
    played.pass(1);
    assert_eq!(played.changes().len(), 2);
    assert!(played.logged("JOIN b"));
    played.forget();
    played.there.remove("c");
    let gone = played.now;
    played.until(|played, _| !left(played).is_empty());
    assert_eq!(left(&played), [("c".to_owned(), "a".to_owned())]);
    assert!(
        played.now >= gone + seconds(2) && played.now <= gone + seconds(4),
        "{:?}",
        played.now.saturating_sub(gone)
    );
    assert!(
        played
            .logs()
            .iter()
            .any(|line| line.starts_with("LEFT c, ") && line.ends_with(" s after its last answer (by a)"))
    );
    played.pass(42);
    played.there.insert("c");
    played.forget();
    let back = played.now;
    played.until(|played, _| played.logged("JOIN c, away for 42 s"));
    assert!(played.now <= back + seconds(1));
    let announces = |output: &Output| match output {
        Output::Send { to, payload, .. } if &**to == "c" => match Datagram::decode(payload).unwrap().message {
            Message::Swim(body) => Packet::decode(&body).unwrap().header.message == foca::Message::Announce,
            _ => false,
        },
        _ => false,
    };
    assert!(played.when(announces).is_some());
}

#[test]
fn an_answered_challenge_answers_an_open_probe() {
    // The simulated peers answer no SWIM probe at all.
    let mut played = joined(3, &["b", "c"]);
    played.pass(60);
    let snapshot = played.agent.snapshot(played.now);
    assert_eq!((snapshot.score, snapshot.suspicions_total, played.changes().len()), (0, 0, 0));
}

#[test]
fn failed_probes_raise_the_score_and_stretch_the_next_ones() {
    let mut played = joined(3, &["b", "c"]);
    played.there.clear();
    played.pass(3);
    assert!(played.agent.snapshot(played.now).score > 0);
    let mut off = Played::new(Settings { lifeguard: false, ..settings(3) }, &["b", "c"]);
    off.pass(3);
    off.there.clear();
    off.pass(3);
    assert_eq!(off.agent.snapshot(off.now).score, 0);
}

#[test]
fn a_confirmation_shortens_a_suspicion_and_an_echo_does_not() {
    let lasts = |accused: bool, echo: bool| {
        let mut played = joined(4, &["b", "c", "d"]);
        played.there.remove("d");
        played.until(|played, _| played.state("d") == MemberState::Suspect);
        let began = played.now;
        for from in ["b", "c"] {
            if accused {
                played.hear(from, 1, Message::Challenge { nonce: 1, suspected: None, accused: vec!["d".into()] });
            }
            if echo {
                played.gossip(from, about("d", 1, 0, foca::State::Suspect));
            }
        }
        played.until(|played, _| played.state("d") == MemberState::Lost);
        let lines = played.logs();
        (played.now.saturating_sub(began), lines.into_iter().find(|line| line.starts_with("LEFT d")).unwrap())
    };
    let timing = Timing::of(4, &TimingOverrides::default());
    let (alone, _) = lasts(false, false);
    let (echoed, _) = lasts(false, true);
    let (confirmed, line) = lasts(true, false);
    assert_eq!(alone, echoed);
    assert!(alone >= timing.suspicion.1 && confirmed >= timing.suspicion.0, "{alone:?} {confirmed:?}");
    assert!(confirmed < timing.suspicion.0 + seconds(1) / 4, "{confirmed:?}");
    assert!(line.ends_with("(by a, confirmed by b, c)"), "{line}");
}

#[test]
fn a_suspect_that_answers_a_challenge_of_after_the_suspicion_began_is_not_lost() {
    let mut played = joined(4, &["b", "c", "d"]);
    played.gossip("b", about("d", 1, 0, foca::State::Suspect));
    assert_eq!(played.state("d"), MemberState::Suspect);
    for from in ["b", "c"] {
        played.hear(from, 1, Message::Challenge { nonce: 1, suspected: None, accused: vec!["d".into()] });
    }
    // The member answers, and never refutes.
    played.pass(20);
    assert_eq!((played.state("d"), left(&played)), (MemberState::Suspect, Vec::new()));
}

#[test]
fn a_suspect_is_told_so_in_its_challenge() {
    let mut played = joined(3, &["b", "c"]);
    played.gossip("b", about("c", 1, 0, foca::State::Suspect));
    played.forget();
    played.pass(1);
    let challenges = played.outputs.iter().filter_map(|(_, output)| match output {
        Output::Send { to, payload, .. } => match Datagram::decode(payload).unwrap().message {
            Message::Challenge { suspected, .. } => Some((to.to_string(), suspected)),
            _ => None,
        },
        _ => None,
    });
    let challenges: BTreeSet<_> = challenges.collect();
    assert_eq!(challenges, BTreeSet::from([("b".to_owned(), None), ("c".to_owned(), Some(0))]));
}

/// Asserts that a challenge names accused members only to a member that answers. After a network split, half of the members do not answer,
/// and the names would be sent to them in vain.
#[test]
fn the_accused_are_named_to_members_that_answer_alone() {
    let mut played = joined(4, &["b", "c"]);
    played.there.remove("c");
    played.until(|played, _| played.state("c") == MemberState::Lost);
    let challenges = played.outputs.iter().filter_map(|(_, output)| match output {
        Output::Send { to, payload, .. } => match Datagram::decode(payload).unwrap().message {
            Message::Challenge { accused, .. } if !accused.is_empty() => Some((to.to_string(), accused)),
            _ => None,
        },
        _ => None,
    });
    let challenges: BTreeSet<_> = challenges.collect();
    assert_eq!(challenges, BTreeSet::from([("b".to_owned(), vec![Name::from("c")])]));
}

#[test]
fn a_suspicion_of_this_node_is_refuted_once() {
    let mut played = joined(3, &["b", "c"]);
    for _ in 0..3 {
        played.hear("b", 1, Message::Challenge { nonce: 9, suspected: Some(0), accused: Vec::new() });
    }
    assert_eq!(played.agent.snapshot(played.now).score, 1);
    played.gossip("c", about("a", 5, 1, foca::State::Down));
    let answers = played.outputs.iter().filter_map(|(_, output)| match output {
        Output::Send { payload, .. } => match Datagram::decode(payload).unwrap().message {
            Message::Answer { nonce: 9, incarnation }
            | Message::AnswerAndChallenge { answered: 9, incarnation, .. } => Some(incarnation),
            _ => None,
        },
        _ => None,
    });
    assert_eq!(answers.collect::<Vec<_>>(), [1, 1, 1]);
    played.hear("b", 1, Message::Challenge { nonce: 9, suspected: None, accused: Vec::new() });
    let last = played.outputs.iter().rev().find_map(|(_, output)| match output {
        Output::Send { payload, .. } => Datagram::decode(payload),
        _ => None,
    });
    assert_eq!(last.unwrap().message, Message::Answer { nonce: 9, incarnation: 2 });
}

#[test]
fn another_members_word_loses_none_that_answers_here() {
    let mut played = joined(5, &["b", "c", "d", "e"]);
    played.gossip("b", about("c", 1, 0, foca::State::Down));
    assert_eq!((played.state("c"), left(&played)), (MemberState::Alive, Vec::new()));
    assert_eq!(played.agent.snapshot(played.now).dropped_total.get("contradicted"), Some(&1));
    played.there.remove("c");
    played.pass(2);
    played.forget();
    played.gossip("b", about("c", 1, 0, foca::State::Down));
    assert_eq!(left(&played), [("c".to_owned(), "b".to_owned())]);
}

/// Asserts that gossip cannot remove members that answer this node. Another node's gossip first suspects them and immediately reports them
/// as lost, like the gossip of the other half after a network split.
#[test]
fn a_suspicion_of_now_makes_no_older_answer_void() {
    let mut played = joined(8, &["b", "c", "d", "e", "f", "g", "h"]);
    for name in ["d", "e", "f", "g", "h"] {
        // This is between two challenges of some of them.
        played.now += Duration::from_millis(20);
        played.gossip("b", about(name, 1, 0, foca::State::Suspect));
        played.gossip("b", about(name, 1, 0, foca::State::Down));
    }
    assert_eq!(left(&played), Vec::new());
}

#[test]
fn leaving_in_order_is_left_at_once_and_only_a_higher_number_returns() {
    let mut played = joined(3, &["b", "c"]);
    played.hear("c", 1, Message::Leave);
    assert_eq!(left(&played), [("c".to_owned(), "c".to_owned())]);
    assert!(played.logged("LEFT c, in order"));
    // The member still answers, in the life that it has left.
    played.pass(5);
    assert_eq!(played.state("c"), MemberState::Left);
    played.number = 2;
    played.pass(1);
    assert_eq!(played.state("c"), MemberState::Alive);
    played.hear("c", 1, Message::Leave);
    assert_eq!(played.state("c"), MemberState::Alive, "an old word");
}

#[test]
fn what_is_foreign_old_or_made_up_is_dropped_and_counted() {
    let mut played = joined(3, &["b", "c"]);
    played.number = 3;
    played.pass(1);
    played.hear("x", 1, Message::Leave);
    played.hear("b", 1, Message::Leave);
    played.hear("b", 3, Message::Answer { nonce: u64::MAX, incarnation: 0 });
    played.give(Event::Received { from: "b".into(), network: 0, payload: vec![0xff; 40] });
    played.give(Event::Received { from: "b".into(), network: 7, payload: vec![0xff; 40] });
    played.gossip("b", about("x", 1, 0, foca::State::Alive));
    let header = foca::Header {
        src: Id { name: "c".into(), number: 3 },
        src_incarnation: 0,
        dst: Id { name: "a".into(), number: 5 },
        message: foca::Message::TurnUndead,
    };
    played.hear("b", 3, Message::Swim(Packet { header, updates: Vec::new() }.encode()));
    let dropped = played.agent.snapshot(played.now).dropped_total;
    let counted =
        ["unlisted", "old number", "unknown answer", "malformed", "forged"].map(|why| dropped.get(why).copied());
    assert_eq!(counted, [Some(3), Some(1), Some(1), Some(1), Some(1)], "{dropped:?}");
    assert!(left(&played).is_empty() && played.agent.snapshot(played.now).members.len() == 3);
}

/// Asserts that damaged datagrams cause no panic and let no invented member join. Every byte of the peers' datagrams is damaged in turn.
#[test]
fn damaged_datagrams_do_nothing() {
    let mut played = joined(3, &["b", "c"]);
    let mut sent: Vec<Vec<u8>> = Vec::new();
    played.pass(5);
    played.gossip("b", about("c", 1, 0, foca::State::Suspect));
    played.pass(5);
    for (_, output) in &played.outputs {
        if let Output::Send { payload, .. } = output {
            sent.push(payload.clone());
        }
    }
    let header = foca::Header {
        src: Id { name: "b".into(), number: 1 },
        src_incarnation: 0,
        dst: Id { name: "a".into(), number: 5 },
        message: foca::Message::PingReq { target: Id { name: "c".into(), number: 1 }, probe_number: 1 },
    };
    let updates = about("c", 1, 0, foca::State::Alive);
    sent.push(Datagram { number: 1, message: Message::Swim(Packet { header, updates }.encode()) }.encode());
    sent.sort_by_key(Vec::len);
    sent.dedup_by_key(|payload| payload.len());
    for payload in sent {
        for (at, bit) in (0..payload.len()).flat_map(|at| [0, 1, 4, 7].map(|bit| (at, bit))) {
            let mut damaged = payload.clone();
            damaged[at] ^= 1 << bit;
            played.give(Event::Received { from: "b".into(), network: 0, payload: damaged });
            played.give(Event::Received { from: "b".into(), network: 0, payload: payload[..at].to_vec() });
        }
    }
    let names: Vec<String> =
        played.agent.snapshot(played.now).members.iter().map(|member| member.name.to_string()).collect();
    assert_eq!(names, ["a", "b", "c"]);
}

#[test]
fn a_member_that_is_listed_no_more_is_gone_at_once() {
    let mut played = joined(4, &["b", "c", "d"]);
    played.give(Event::Listed(["a", "b", "c"].map(Name::from).into()));
    assert_eq!(left(&played), [("d".to_owned(), "a".to_owned())]);
    assert!(played.logged("LEFT d: it is listed no more"));
    played.forget();
    played.give(Event::Listed(["a", "b", "c", "d"].map(Name::from).into()));
    played.pass(1);
    assert_eq!(played.state("d"), MemberState::Alive);
}

#[test]
fn a_node_that_was_held_up_loses_none_for_that() {
    let mut played = joined(3, &["b", "c"]);
    played.there.remove("c");
    played.until(|played, _| played.state("c") == MemberState::Suspect);
    played.there.insert("c");
    played.now += seconds(30);
    played.give(Event::Wake);
    played.pass(2);
    assert_eq!(left(&played), Vec::new());
}

#[test]
fn a_cut_that_takes_many_is_seen_at_once() {
    let mut played = joined(8, &["b", "c", "d", "e", "f", "g", "h"]);
    played.there = BTreeSet::from(["b", "c", "d"]);
    // Probes fail as well, and a bad score doubles the 1.2 s.
    played.pass(3);
    for name in ["e", "f", "g", "h"] {
        assert_eq!(played.state(name), MemberState::Suspect, "{name}");
    }
}

#[test]
fn a_bad_score_stretches_the_time_between_probes() {
    let longest = |suspicions: u16| {
        let mut played = joined(3, &["b", "c"]);
        for incarnation in 0..suspicions {
            played.hear("b", 1, Message::Challenge { nonce: 1, suspected: Some(incarnation), accused: Vec::new() });
        }
        played.forget();
        played.pass(12);
        let is_ping = |output: &Output| match output {
            Output::Send { payload, .. } => match Datagram::decode(payload).unwrap().message {
                Message::Swim(body) => matches!(Packet::decode(&body).unwrap().header.message, foca::Message::Ping(_)),
                _ => false,
            },
            _ => false,
        };
        let pings: Vec<Duration> =
            played.outputs.iter().filter(|(_, output)| is_ping(output)).map(|(at, _)| *at).collect();
        pings.windows(2).map(|pair| pair[1].saturating_sub(pair[0])).max().unwrap()
    };
    assert!(longest(0) < seconds(1) && longest(9) >= seconds(3), "{:?} {:?}", longest(0), longest(9));
}
