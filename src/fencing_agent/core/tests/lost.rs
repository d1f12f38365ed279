//! Tests of the consequences of a lost quorum.

use super::super::feeding::Feeding;
use super::super::quorum::Quorum;
use super::*;

#[test]
fn the_deadline_is_the_contact_that_completes_the_quorum_and_a_window() {
    let mut played = Played::armed(settings(5), &["b", "c", "d", "e"]);
    played.pass(1);
    let cut = played.now;
    played.there = BTreeSet::from(["b"]);
    played.until(|played, _| played.logged("quorum lost"));
    let window = played.agent.snapshot(played.now).window;
    let deadline = played.deadline().unwrap();
    assert!(deadline <= cut + window && deadline + Duration::from_millis(250) >= cut + window, "{deadline:?} {cut:?}");
    assert!(played.logged("quorum lost: 2 of 5 reachable, 3 needed; reset in at most 15 s"), "{:?}", played.logs());
    let why = Output::RememberUnfed(Some("quorum lost: 2 of 5 reachable, 3 needed".to_owned()));
    assert!(played.has(&why));
    let unfed = played.agent.snapshot(played.now);
    assert!(!unfed.fed && unfed.armed && unfed.unfed_because.is_some() && unfed.reachable == 2, "{unfed:?}");
    played.forget();
    played.there.insert("c");
    let back = played.now;
    played.pass(1);
    let fed = played.when(|output| matches!(output, Output::FeedUntil(deadline) if *deadline > back + STEP)).unwrap();
    assert!(fed <= back + Duration::from_millis(500), "contact in time feeds at once");
    assert!(played.has(&Output::RememberUnfed(None)) && !played.has(&Output::Arm));
}

#[test]
fn a_quorum_that_is_lost_while_the_device_opens_is_on_disk() {
    let mut feeding = Feeding::new(OnQuorumLoss::Watchdog, settings(3).watchdog);
    feeding.hold(Vec::new());
    let quorum = Quorum::of(3, None, false);
    let mut outputs = Vec::new();
    for now in [0, 3, 6, 9, 11] {
        feeding.update(seconds(now), quorum, &[Some(seconds(now)), None], seconds(4), &mut outputs);
    }
    feeding.update(seconds(15), quorum, &[Some(seconds(11)), None], seconds(4), &mut outputs);
    let is_unfed = |output: &Output| matches!(output, Output::RememberUnfed(Some(_)));
    assert!(outputs.contains(&Output::Arm) && !outputs.iter().any(is_unfed));
    assert!(feeding.opened("softdog", seconds(15), true).iter().any(is_unfed));
}

#[test]
fn the_score_and_the_words_of_others_move_no_deadline() {
    let mut played = Played::armed(settings(3), &["b", "c"]);
    for incarnation in 0..9 {
        played.hear("b", 1, Message::Challenge { nonce: 1, suspected: Some(incarnation), accused: vec!["c".into()] });
    }
    let gone = |name: &str| foca::Member::new(Id { name: name.into(), number: 1 }, 0, foca::State::Down);
    played.gossip("b", vec![gone("c")]);
    assert_eq!(played.agent.snapshot(played.now).score, 7);
    let cut = played.now;
    played.there.clear();
    played.pass(5);
    let deadline = played.agent.snapshot(played.now).deadline.unwrap();
    assert!(deadline <= cut + seconds(3) && deadline + Duration::from_millis(250) >= cut + seconds(3), "{deadline:?}");
}

#[test]
fn with_all_networks_one_that_is_cut_is_a_member_that_is_cut() {
    for (network_rule, is_fed) in [(NetworkRule::Any, true), (NetworkRule::All, false)] {
        let mut played = Played::new(Settings { networks: 2, network_rule, ..settings(3) }, &[]);
        for _ in 0..200 {
            played.now += STEP;
            played.give(Event::Wake);
            let open: Vec<Output> = played.outputs.drain(..).map(|(_, output)| output).collect();
            played.done = 0;
            for output in open {
                let Output::Send { to, network: 0, payload } = output else { continue };
                if let Message::Challenge { nonce, .. } = Datagram::decode(&payload).unwrap().message {
                    played.hear(&to, 1, Message::Answer { nonce, incarnation: 0 });
                }
            }
        }
        assert_eq!(played.agent.snapshot(played.now).fed, is_fed, "{network_rule:?}");
    }
}

#[test]
fn half_of_the_members_are_fed_by_the_api_alone() {
    let mut played = Played::armed(Settings { tie_breaker: TieBreaker::Api, ..settings(4) }, &["b", "c", "d"]);
    (played.there, played.api) = (BTreeSet::from(["b"]), true);
    played.pass(20);
    assert!(played.logged("equal halves: 2 of 4; the API server answers: fed"), "{:?}", played.logs());
    assert!(played.agent.snapshot(played.now).fed && !played.logged("quorum lost"));
    let asked: Vec<Duration> = played
        .outputs
        .iter()
        .filter(|(_, output)| matches!(output, Output::AskApi { .. }))
        .map(|(at, _)| *at)
        .collect();
    assert!(
        asked.len() >= 8 && asked.windows(2).all(|pair| pair[1].saturating_sub(pair[0]) >= seconds(2)),
        "{asked:?}"
    );
    played.api = false;
    played.until(|played, _| {
        played.logged("equal halves: 2 of 4; the API server does not answer; reset in at most 15 s")
    });
    assert_eq!(played.agent.snapshot(played.now).api_up, Some(false));

    let mut played = Played::armed(settings(4), &["b", "c", "d"]);
    (played.there, played.api) = (BTreeSet::from(["b"]), true);
    played.until(|played, _| played.logged("quorum lost: 2 of 4 reachable, 3 needed"));
    assert_eq!(played.when(|output| matches!(output, Output::AskApi { .. })), None);
}

#[test]
fn an_answer_that_was_never_asked_for_is_none() {
    let mut played = Played::armed(Settings { tie_breaker: TieBreaker::Api, ..settings(4) }, &["b", "c", "d"]);
    played.there = BTreeSet::from(["b"]);
    let ahead = played.now + seconds(60);
    played.give(Event::ApiAnswered { asked: ahead });
    played.pass(6);
    assert!(!played.agent.snapshot(played.now).fed);
}

fn notified(members: usize, on_quorum_loss: OnQuorumLoss) -> Vec<(ChangeKind, String)> {
    let there = ["b", "c", "d", "e"];
    let mut played = Played::new(Settings { on_quorum_loss, ..settings(members) }, &there[..members - 1]);
    played.give(Event::Maintenance(Vec::new()));
    played.pass(12);
    assert!(!played.has(&Output::Arm) && played.deadline().is_none(), "no watchdog");
    played.forget();
    played.there.retain(|name| members > 2 && *name == "b");
    // The list would declare each member lost sooner.
    played.until(|played, _| played.logged("quorum lost"));
    played.pass(1);
    played.changes().into_iter().map(|(kind, name, _)| (kind, name)).collect()
}

#[test]
fn notify_drops_this_node_and_all_that_it_does_not_reach() {
    let mut found = notified(5, OnQuorumLoss::Notify);
    found.sort_by(|one, other| one.1.cmp(&other.1));
    let left = ["a", "c", "d", "e"].map(|name| (ChangeKind::Left, name.to_owned()));
    assert_eq!(found, left);
}

#[test]
fn with_notify_a_node_of_two_drops_its_peer_and_not_itself() {
    assert_eq!(notified(2, OnQuorumLoss::Notify), [(ChangeKind::Left, "b".to_owned())]);
}

#[test]
fn wait_drops_only_what_the_list_loses() {
    assert!(!notified(5, OnQuorumLoss::Wait).contains(&(ChangeKind::Left, "a".to_owned())));
}

#[test]
fn with_notify_this_node_joins_again() {
    let mut played = Played::new(Settings { on_quorum_loss: OnQuorumLoss::Notify, ..settings(3) }, &["b", "c"]);
    played.pass(2);
    played.there.clear();
    played.until(|played, _| played.state("a") == MemberState::Lost);
    played.there.insert("b");
    played.forget();
    played.pass(1);
    let found: Vec<_> = played.changes().into_iter().map(|(kind, name, _)| (kind, name)).collect();
    assert!(found.contains(&(ChangeKind::Join, "a".to_owned())) && found.contains(&(ChangeKind::Join, "b".to_owned())));
}

#[test]
fn quorum_and_timings_follow_the_list() {
    let mut played = Played::armed(settings(3), &["b", "c"]);
    played.give(Event::Listed(["a", "b", "c", "d", "e", "f", "g"].map(Name::from).into()));
    let snapshot = played.agent.snapshot(played.now);
    let timing = Timing::of(7, &TimingOverrides::default());
    assert_eq!((snapshot.quorum, snapshot.window), (4, timing.window));
    assert!(!played.agent.snapshot(played.now).fed, "three of seven");
    played.there.insert("d");
    played.pass(1);
    assert!(played.agent.snapshot(played.now).fed);
}
