//! The leader publishes since when there are two voters, or are not, and only when it changes.

use super::world::*;
use crate::base::Fact;
use crate::decide::evidence::{Etcd, Evidence, Member, Redundancy};
use crate::decide::plan::{Effect, Request};

const ALONE: Fact<Redundancy> = Fact::Known(Redundancy { is_redundant: false, since: 7 });
const REDUNDANT: Fact<Redundancy> = Fact::Known(Redundancy { is_redundant: true, since: 7 });

/// Returns the effects by which a monitor changes the property about redundancy while the property has the value `said`.
fn told(etcd: Etcd, said: Fact<Redundancy>) -> Vec<Effect> {
    let evidence: Evidence = at_rest().running(Fact::Known(etcd)).seen_voting().cib_with(|cib| cib.redundancy = said);
    let effects = first(Request::Monitor, &evidence).effects;
    effects.into_iter().filter(|effect| matches!(effect, Effect::SetRedundancy(_))).collect()
}

#[test]
fn a_leader_says_it_when_it_changes_and_not_again() {
    let (two, one) = (|| etcd(ME, Some(ME), &[ME, PEER], &[]), || etcd(ME, Some(ME), &[ME], &[PEER]));
    assert_eq!(told(two(), Fact::Absent), [Effect::SetRedundancy(true)]);
    assert_eq!(told(two(), ALONE), [Effect::SetRedundancy(true)]);
    assert_eq!(told(two(), REDUNDANT), []);
    assert_eq!(told(one(), REDUNDANT), [Effect::SetRedundancy(false)]);
    assert_eq!(told(one(), ALONE), []);
    assert_eq!(told(one(), Fact::Unknown("rubbish".to_owned())), [Effect::SetRedundancy(false)]);
}

#[test]
fn a_follower_and_who_did_not_ask_say_nothing() {
    assert_eq!(told(etcd(ME, Some(PEER), &[ME, PEER], &[]), ALONE), []);
    assert_eq!(told(etcd(ME, None, &[ME, PEER], &[]), ALONE), []);
    assert_eq!(told(etcd(ME, Some(ME), &[ME, PEER], &[]), Fact::NotAsked), [], "a decision of an older build");
}

#[test]
fn a_voter_that_never_started_is_no_second_one() {
    let mut listed = etcd(ME, Some(ME), &[ME, PEER], &[]);
    let unstarted = |member: Member| if member.id == PEER { Member { name: String::new(), ..member } } else { member };
    listed.members = listed.members.into_iter().map(unstarted).collect();
    assert_eq!(told(listed, REDUNDANT), [Effect::SetRedundancy(false)]);
}
