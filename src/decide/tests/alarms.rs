//! etcd's alarms are shown, and are no failure of the member.

use super::world::*;
use crate::base::Fact;
use crate::decide::evidence::{Etcd, Evidence};
use crate::decide::plan::{Effect, Exit, Request};

fn voter(errors: &[&str]) -> Evidence {
    let alarms = errors.iter().map(|error| (*error).to_owned()).collect();
    at_rest().running(Fact::Known(Etcd { alarms, ..etcd(ME, Some(ME), &[ME, PEER], &[]) })).seen_voting()
}

#[test]
fn an_alarm_is_shown_with_who_raised_it_and_the_member_does_not_fail() {
    let plan = first(Request::Monitor, &voter(&["memberID:2 alarm:NOSPACE ", "memberID:9 alarm:CORRUPT "]));
    assert_eq!(plan.effects, [Effect::SetAlarm(Some("CORRUPT of member 9, NOSPACE of node2".to_owned()))]);
    assert_eq!(exit(&plan), Some(Exit::Success));
    let told = plan.because.to_string();
    assert!(told.contains("NOSPACE of node2") && told.contains("'tandem space --reclaim'"), "{told}");
}

#[test]
fn an_alarm_that_is_shown_is_not_shown_again_and_is_taken_back_when_it_is_over() {
    let shown = |errors: &[&str]| voter(errors).cib_with(|cib| cib.own_alarm = Some("NOSPACE of node2".to_owned()));
    assert!(first(Request::Monitor, &shown(&["memberID:2 alarm:NOSPACE "])).effects.is_empty());
    assert_eq!(first(Request::Monitor, &shown(&[])).effects, [Effect::SetAlarm(None)]);
    let stopped = at_rest().cib_with(|cib| cib.own_alarm = Some("NOSPACE of node2".to_owned()));
    assert!(first(Request::Stop, &stopped).effects.contains(&Effect::SetAlarm(None)));
}

#[test]
fn what_is_no_alarm_is_none() {
    assert!(first(Request::Monitor, &voter(&["etcdserver: no leader", "", "memberID:2"])).effects.is_empty());
    let odd = first(Request::Monitor, &voter(&["alarm:NEW"])).effects;
    assert_eq!(odd, [Effect::SetAlarm(Some("NEW".to_owned()))]);
}
