//! Tests of the race, step by step.

use super::*;

const TARGET: Site = Site::Target;
const OWN: Site = Site::Own;
const UP: [RaceEvent; 2] = [raised(TARGET, Raised::Acknowledged), raised(OWN, Raised::Acknowledged)];
const UNANSWERED: RaceEvent = raised(TARGET, Raised::Unanswered);
const OWN_FAILED: RaceEvent = raised(OWN, Raised::Refused);
const ONLY_TARGET: Open = Open { target: true, own: false };
const ONLY_OWN: Open = Open { target: false, own: true };

const fn raised(site: Site, raised: Raised) -> RaceEvent {
    RaceEvent::Raised(site, raised)
}

const fn listed(site: Site, ours: bool, rivals: bool) -> RaceEvent {
    RaceEvent::Listed(site, Some(Listing { ours, rivals }))
}

const fn alone(site: Site) -> RaceEvent {
    listed(site, true, false)
}

const fn met(site: Site) -> RaceEvent {
    listed(site, true, true)
}

fn after(preferred: bool, events: &[RaceEvent]) -> Race {
    Race::new(preferred).then(events)
}

impl Race {
    fn then(self, events: &[RaceEvent]) -> Self {
        events.iter().fold(self, |race, event| race.after(*event))
    }
}

#[test]
fn both_marks_stand_before_a_list_is_read_in_whichever_order_the_bmcs_answer() {
    for [first, last] in [[TARGET, OWN], [OWN, TARGET]] {
        let mut race = Race::new(false);
        let rest = if first == TARGET { ONLY_OWN } else { ONLY_TARGET };
        let mut steps = vec![race.step()];
        for event in
            [first, last].map(|site| raised(site, Raised::Acknowledged)).into_iter().chain([first, last].map(alone))
        {
            race = race.after(event);
            steps.push(race.step());
        }
        let expected = [
            RaceStep::Raise(Open::BOTH),
            RaceStep::Raise(rest),
            RaceStep::Read(Open::BOTH),
            RaceStep::Read(rest),
            RaceStep::Reset { proven: true },
        ];
        assert_eq!(steps, expected);
    }
}

#[test]
fn the_preferred_node_waits_until_the_other_marks_are_gone() {
    let seen = after(true, &UP).then(&[alone(TARGET), met(OWN)]);
    assert_eq!((seen.step(), seen.sees_rival(OWN)), (RaceStep::Wait(Pause::Poll), true));
    let again = seen.then(&[RaceEvent::Waited, alone(TARGET)]);
    assert_eq!(again.step(), RaceStep::Read(ONLY_OWN));
    assert_eq!(again.after(alone(OWN)).step(), RaceStep::Reset { proven: true });
    for unknown in [RaceEvent::Listed(OWN, None), listed(OWN, false, false)] {
        let unread = again.after(unknown);
        assert_eq!((unread.step(), unread.mark(OWN)), (RaceStep::Wait(Pause::Poll), Mark::Up), "{unknown:?}");
    }
}

#[test]
fn the_other_node_withdraws_waits_and_begins_anew() {
    let seen = after(false, &UP).then(&[alone(OWN), met(TARGET)]);
    assert_eq!(seen.step(), RaceStep::Lower);
    let withdrawn = seen.after(RaceEvent::Lowered);
    assert_eq!((withdrawn.step(), withdrawn.mark(TARGET)), (RaceStep::Wait(Pause::Delay), Mark::Down));
    assert_eq!(withdrawn.after(RaceEvent::Waited), Race::new(false));
}

#[test]
fn what_is_not_proven_is_waited_for_once_and_never_as_long_on_both() {
    for (preferred, pause) in [(true, Pause::Short), (false, Pause::Delay)] {
        let refused = after(preferred, &[OWN_FAILED, UP[0], alone(TARGET)]);
        let hidden = after(preferred, &UP).then(&[listed(TARGET, false, false), alone(OWN)]);
        for race in [refused, hidden] {
            assert_eq!(race.step(), RaceStep::Wait(pause), "{race:?}");
            let again = race.after(RaceEvent::Waited);
            assert!(matches!(again.step(), RaceStep::Read(open) if open.target), "the marks stand meanwhile");
            let own = again.then(&[RaceEvent::Listed(OWN, None), alone(TARGET)]);
            assert_eq!(own.step(), RaceStep::Reset { proven: false }, "{race:?}");
        }
    }
    // A mark that the target's BMC did not accept is tried again. A mark that appears meanwhile counts.
    let failed = after(false, &[raised(TARGET, Raised::Refused), UP[1], listed(TARGET, false, false), alone(OWN)]);
    let failed = failed.after(RaceEvent::Waited);
    assert_eq!(failed.step(), RaceStep::Raise(ONLY_TARGET));
    let both = failed.then(&[UP[0], alone(TARGET)]);
    assert_eq!(both.after(alone(OWN)).step(), RaceStep::Reset { proven: true });
    assert_eq!(both.after(met(OWN)).step(), RaceStep::Lower);
}

#[test]
fn a_target_that_does_not_answer_costs_this_node_its_own_mark_until_it_is_back() {
    for events in [[UNANSWERED, UP[1]], [UP[1], UNANSWERED]] {
        let away = after(true, &events);
        assert_eq!((away.step(), away.mark(OWN)), (RaceStep::Lower, Mark::Up));
        let lowered = away.after(RaceEvent::Lowered);
        assert_eq!((lowered.step(), lowered.mark(OWN)), (RaceStep::Wait(Pause::Poll), Mark::Down));
        let again = lowered.after(RaceEvent::Waited);
        assert_eq!(again.step(), RaceStep::Raise(ONLY_TARGET));
        assert_eq!(again.after(UNANSWERED).step(), RaceStep::Wait(Pause::Poll), "there is nothing to take down");
        assert_eq!(again.after(UP[0]).step(), RaceStep::Raise(ONLY_OWN));
        assert_eq!(again.then(&UP).step(), RaceStep::Read(Open::BOTH));
    }
}

#[test]
fn a_target_that_does_not_answer_is_never_reset_and_waits_begin_anew() {
    let lost = after(false, &[UP[0], OWN_FAILED, alone(TARGET), RaceEvent::Waited, RaceEvent::Listed(TARGET, None)]);
    let early = after(false, &[OWN_FAILED, UNANSWERED]);
    for race in [lost, early] {
        assert_eq!(race.step(), RaceStep::Wait(Pause::Poll), "{race:?}");
        let back = race.after(RaceEvent::Waited);
        let back = if back.step() == RaceStep::Raise(ONLY_TARGET) { back.after(UP[0]) } else { back };
        // The other BMC may be reachable again as well, so the earlier wait no longer counts.
        assert_eq!(back.step(), RaceStep::Raise(ONLY_OWN));
        let own = back.then(&[raised(OWN, Raised::Unanswered), alone(TARGET)]);
        assert_eq!(own.step(), RaceStep::Wait(Pause::Delay), "{race:?}");
    }
}

#[test]
fn a_mark_that_is_acknowledged_late_counts() {
    let early = after(false, &[UP[0], raised(OWN, Raised::Unanswered), alone(TARGET)]);
    let late = early.after(UP[1]);
    assert_eq!((late.step(), late.mark(OWN)), (RaceStep::Wait(Pause::Delay), Mark::Up));
    let read = late.after(RaceEvent::Waited);
    assert_eq!(read.step(), RaceStep::Read(Open::BOTH));
    assert_eq!(read.then(&[alone(TARGET), alone(OWN)]).step(), RaceStep::Reset { proven: true });
    assert_eq!(read.then(&[alone(TARGET), met(OWN)]).step(), RaceStep::Lower);
    // While the mark is being deleted, a late answer changes nothing.
    let lowers = after(false, &[UNANSWERED, UP[1]]);
    assert_eq!(lowers.after(UP[0]), lowers);
}

#[test]
fn an_event_of_another_step_changes_nothing() {
    let race = Race::new(true);
    for event in [alone(TARGET), RaceEvent::Lowered, RaceEvent::Waited] {
        assert_eq!(race.after(event), race);
    }
    let half = race.after(UP[0]);
    assert_eq!(half.after(UNANSWERED), half, "it has answered");
}
