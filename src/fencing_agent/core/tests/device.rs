//! Tests of the times at which the device is opened, closed, and left alone.

use super::super::feeding::Feeding;
use super::super::quorum::Quorum;
use super::*;

fn is_arm(output: &Output) -> bool {
    *output == Output::Arm
}

#[test]
fn it_is_armed_after_ten_seconds_of_contact_and_the_first_look() {
    let mut played = Played::new(settings(3), &["b", "c"]);
    played.pass(11);
    assert!(!played.has(&Output::Arm), "without a look");
    played.give(Event::Maintenance(Vec::new()));
    assert!(played.has(&Output::Arm));
    assert!(played.logged("armed: /dev/watchdog (softdog), time-out 15 s"), "{:?}", played.logs());

    let mut played = Played::new(settings(3), &[]);
    played.give(Event::Maintenance(Vec::new()));
    played.pass(30);
    assert!(!played.has(&Output::Arm), "without contact");
    played.there.insert("b");
    let began = played.now;
    played.pass(11);
    let armed = played.when(is_arm).unwrap();
    assert!(armed >= began + seconds(10) && armed <= began + seconds(11), "{armed:?}");
}

#[test]
fn a_gap_in_the_contact_begins_the_ten_seconds_again() {
    let mut played = Played::new(settings(3), &["b"]);
    played.give(Event::Maintenance(Vec::new()));
    played.pass(5);
    played.there.clear();
    played.pass(5);
    played.there.insert("b");
    played.pass(8);
    assert!(!played.has(&Output::Arm));
    played.pass(3);
    assert!(played.has(&Output::Arm));
}

#[test]
fn a_device_that_was_left_running_is_fed_at_the_first_contact_and_not_before() {
    let mut settings = settings(3);
    settings.watchdog.left_running = true;
    let mut played = Played::new(settings, &[]);
    played.give(Event::Maintenance(Vec::new()));
    played.pass(10);
    let why = "no quorum since the start: 1 of 3 reachable, 2 needed, and /dev/watchdog was left running";
    assert!(
        played.has(&Output::RememberUnfed(Some(why.to_owned())))
            && played.logged(&format!("{why}; reset in at most 15 s"))
    );
    assert!(!played.has(&Output::Arm) && played.deadline().is_none_or(|deadline| deadline.is_zero()));
    let unfed = |played: &Played| played.agent.snapshot(played.now).unfed_because;
    assert_eq!(unfed(&played).as_deref(), Some("no quorum since the start, and /dev/watchdog was left running"));
    played.there.insert("c");
    let began = played.now;
    played.pass(1);
    let at = played.outputs.iter().position(|(_, output)| is_arm(output)).unwrap();
    assert!(played.outputs[at].0 <= began + Duration::from_millis(300));
    let before = &played.outputs[..at];
    assert!(played.has(&Output::RememberUnfed(None)));
    assert!(matches!(before.last(), Some((now, Output::FeedUntil(deadline))) if deadline > now), "{before:?}");
    assert_eq!(unfed(&played), None);
}

#[test]
fn a_device_that_was_left_running_and_cannot_be_opened_is_unfed() {
    let watchdog = Watchdog { left_running: true, ..settings(3).watchdog };
    let mut feeding = Feeding::new(OnQuorumLoss::Watchdog, watchdog.clone());
    feeding.hold(Vec::new());
    let contact = [Some(seconds(1)), Some(seconds(1))];
    feeding.update(seconds(1), Quorum::of(3, None, false), &contact, seconds(3), &mut Vec::new());
    assert_eq!(feeding.unfed_because().as_deref(), Some("/dev/watchdog was left running, and is not open yet"));
    feeding.not_opened(seconds(1), "busy: sbd".to_owned());
    assert_eq!(feeding.unfed_because().as_deref(), Some("busy: sbd"));
    assert_eq!(Feeding::new(OnQuorumLoss::Wait, watchdog).unfed_because(), None);
    assert_eq!(Feeding::new(OnQuorumLoss::Watchdog, settings(3).watchdog).unfed_because(), None);
}

#[test]
fn a_device_that_cannot_be_opened_is_tried_again() {
    let mut feeding = Feeding::new(OnQuorumLoss::Watchdog, settings(3).watchdog);
    feeding.hold(Vec::new());
    let quorum = Quorum::of(3, None, false);
    let arms = |feeding: &mut Feeding, now| {
        let mut outputs = Vec::new();
        feeding.update(now, quorum, &[Some(now), Some(now)], seconds(3), &mut outputs);
        outputs.contains(&Output::Arm)
    };
    assert!(!arms(&mut feeding, seconds(1)));
    assert!(arms(&mut feeding, seconds(11)));
    feeding.not_opened(seconds(11), "busy: sbd".to_owned());
    assert!(!arms(&mut feeding, seconds(20)) && arms(&mut feeding, seconds(21)));
    assert_eq!(feeding.disarmed_because().as_deref(), Some("busy: sbd"));
}

#[test]
fn maintenance_disarms_and_the_node_stays_a_member() {
    let mut played = Played::armed(settings(3), &["b", "c"]);
    played.give(Event::Maintenance(vec!["the file /run/fencing-agent/disable is there".to_owned()]));
    assert!(played.has(&Output::Disarm) && played.logged("disarmed: the file /run/fencing-agent/disable is there"));
    played.forget();
    played.pass(5);
    assert!(!played.has(&Output::Arm));
    assert!(played.when(|output| matches!(output, Output::Send { .. })).is_some());
    assert_eq!(
        played.agent.snapshot(played.now).disarmed_because.as_deref(),
        Some("the file /run/fencing-agent/disable is there")
    );
    played.give(Event::Maintenance(Vec::new()));
    assert!(played.has(&Output::Arm), "the contact has lasted for long enough");
}

#[test]
fn no_v_is_written_without_a_quorum() {
    let mut played = Played::armed(settings(3), &["b", "c"]);
    played.there.clear();
    played.until(|played, _| played.logged("quorum lost"));
    played.give(Event::Maintenance(vec!["the operator".to_owned()]));
    played.give(Event::Terminate);
    played.pass(5);
    assert!(!played.has(&Output::Disarm) && !played.has(&Output::End), "{:?}", played.logs());
    assert!(played.logged("disarming refused: quorum is lost: the operator"), "{:?}", played.logs());
    played.there.insert("b");
    played.pass(1);
    assert!(played.has(&Output::Disarm) && played.has(&Output::End));
}

#[test]
fn without_magic_close_maintenance_feeds_whatever_is_reachable() {
    let mut played = Played::new(settings(3), &["b", "c"]);
    played.has_magic_close = false;
    played.give(Event::Maintenance(Vec::new()));
    played.pass(12);
    played.give(Event::Maintenance(vec!["the Node is being deleted".to_owned()]));
    assert!(!played.has(&Output::Disarm));
    assert_eq!(played.deadline(), Some(Duration::MAX));
    played.there.clear();
    played.pass(30);
    played.give(Event::Maintenance(Vec::new()));
    played.pass(5);
    assert_eq!(played.deadline(), Some(Duration::MAX), "armed after ten seconds of contact alone");
    played.there.insert("b");
    played.pass(12);
    assert!(played.logged("armed again: /dev/watchdog") && played.deadline() < Some(Duration::MAX));
}

#[test]
fn without_magic_close_a_lost_quorum_is_not_fed_through_maintenance() {
    let mut played = Played::new(settings(3), &["b", "c"]);
    played.has_magic_close = false;
    played.give(Event::Maintenance(Vec::new()));
    played.pass(12);
    played.there.clear();
    played.pass(4);
    played.give(Event::Maintenance(vec!["the operator".to_owned()]));
    played.pass(5);
    assert!(played.deadline().is_some_and(|deadline| deadline < played.now));
}

#[test]
fn the_end_is_leave_then_v_then_the_exit() {
    let mut played = Played::armed(settings(3), &["b", "c"]);
    played.give(Event::Terminate);
    let place =
        |wanted: &dyn Fn(&Output) -> bool| played.outputs.iter().position(|(_, output)| wanted(output)).unwrap();
    let leaves = |output: &Output| matches!(output, Output::Send { payload, .. } if Datagram::decode(payload).unwrap().message == Message::Leave);
    let (leave, v, end) =
        (place(&leaves), place(&|output| *output == Output::Disarm), place(&|output| *output == Output::End));
    assert!(leave < v && v < end);
    assert_eq!(played.outputs.iter().filter(|(_, output)| leaves(output)).count(), 2 * 3);
    assert_eq!(played.outputs.len() - 1, end);
    assert_eq!(played.agent.handle(played.now, Event::Wake, &mut || 0), Vec::new());
}

#[test]
fn an_end_without_an_open_device_waits_for_no_quorum() {
    let mut played = Played::new(settings(3), &[]);
    played.give(Event::Terminate);
    assert!(played.has(&Output::End) && !played.has(&Output::Disarm));
}

#[test]
fn a_list_of_two_uses_no_watchdog() {
    let mut played = Played::armed(settings(3), &["b", "c"]);
    played.give(Event::Listed(vec!["a".into(), "b".into()]));
    assert!(played.has(&Output::Disarm) && played.logged("disarmed: fewer than 3 members are listed"));
    played.give(Event::Listed(vec!["b".into(), "c".into(), "d".into()]));
    assert_eq!(played.agent.snapshot(played.now).disarmed_because.as_deref(), Some("a is not listed"));
}
