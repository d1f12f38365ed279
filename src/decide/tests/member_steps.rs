//! Stopping a node next to others, and the steps of a wish, each found by an observation of its own.

use super::members::{
    LEARNER, VOTERS, caught_up, dead, healthy, last_dead, last_silent, learner, newcomer, same, silent, url,
};
use crate::decide::may_stop::{Answer, Doubt, Hindrance, may_stop_among};
use crate::decide::members::*;

#[test]
fn a_node_may_be_stopped_where_a_majority_of_healthy_others_stays() {
    type Row = (&'static str, fn(&mut Membership), [&'static str; VOTERS]);
    let rows: [Row; 8] = [
        ("all healthy", same, ["no", "no", "yes", "yes", "yes"]),
        ("it is dead itself", last_dead, ["no", "no", "yes", "yes", "yes"]),
        ("it is silent itself", last_silent, ["no", "no", "yes", "yes", "yes"]),
        (
            "another one is dead",
            |it| it.members.iter_mut().rev().skip(1).take(1).for_each(|member| member.health = dead()),
            ["no", "no", "no", "no", "no"],
        ),
        (
            "another one is silent",
            |it| it.members.iter_mut().rev().skip(1).take(1).for_each(|member| member.health = silent()),
            ["no", "unknown", "unknown", "unknown", "unknown"],
        ),
        ("a learner joins", caught_up, ["no", "no", "no", "no", "no"]),
        ("a change is under way", |it| it.change = Some("a replacement".to_owned()), ["no", "no", "no", "no", "no"]),
        ("no leader", |it| it.leader = None, ["no", "no", "no", "no", "no"]),
    ];
    for (what, change, expected) in rows {
        for (count, expected) in (1..=VOTERS).zip(expected) {
            let mut membership = healthy(count);
            change(&mut membership);
            let answer = may_stop_among(&membership, u64::try_from(count).unwrap());
            let said = match &answer {
                Answer::Yes => "yes",
                Answer::No(_) => "no",
                Answer::Unknown(_) => "unknown",
            };
            assert_eq!(said, expected, "{what}, {count} voters: {answer:?}");
        }
    }
    let mut joins = healthy(1);
    caught_up(&mut joins);
    assert_eq!(may_stop_among(&joins, LEARNER), Answer::Yes, "a learner is in nobody's majority");
    let unconfirmed = Membership { is_confirmed: false, ..healthy(3) };
    assert_eq!(may_stop_among(&unconfirmed, 3), Answer::Unknown(vec![Doubt::Unconfirmed]));
    let gone = Hindrance::QuorumWouldGo { voters: 2, left: 1 };
    assert_eq!(may_stop_among(&healthy(2), 2), Answer::No(vec![gone]));
}

/// Applies a step to the member list as etcd would. New members start and catch up at once.
fn apply(membership: &mut Membership, step: &MemberStep) {
    match step {
        MemberStep::AddLearner(new) => {
            let joined = Member { name: new.name.clone(), peer_urls: vec![new.peer_url.clone()], ..learner() };
            membership.members.push(joined);
        }
        MemberStep::Promote(id) => {
            membership
                .members
                .iter_mut()
                .filter(|member| member.id == *id)
                .for_each(|member| member.is_learner = false);
        }
        MemberStep::MoveLeader { to } => membership.leader = Some(*to),
        MemberStep::Remove(id) => membership.members.retain(|member| member.id != *id),
    }
}

/// Returns the steps of the change `wish`, each decided from a new observation. If a rule forbids a step, the rule is the last
/// row.
fn steps(mut membership: Membership, wish: &Wish, words: &Words) -> Vec<String> {
    let mut steps = Vec::new();
    loop {
        match next(&membership, wish, words) {
            Next::Done => return steps,
            Next::Forbidden(why) => {
                steps.push(why.rule().to_owned());
                return steps;
            }
            Next::Step(step, _) => {
                apply(&mut membership, &step);
                steps.push(match step {
                    MemberStep::AddLearner(_) => "add".to_owned(),
                    MemberStep::Promote(id) => format!("promote {id}"),
                    MemberStep::MoveLeader { to } => format!("leader {to}"),
                    MemberStep::Remove(id) => format!("remove {id}"),
                });
            }
        }
        assert!(steps.len() < 9, "it does not end: {steps:?}");
    }
}

#[test]
fn a_replacement_votes_before_a_healthy_one_goes_and_a_dead_one_goes_before_it_is_listed() {
    let replace = |old| Wish::Replace { old: Some(old), new: newcomer() };
    for count in 1..=VOTERS {
        let last = u64::try_from(count).unwrap();
        let heir = if count == 1 { LEARNER } else { 2 };
        let leader = steps(healthy(count), &replace(1), &Words::default());
        assert_eq!(leader, ["add", "promote 9", &format!("leader {heir}"), "remove 1"], "{count} voters");
        if count > 1 {
            let follower = steps(healthy(count), &replace(last), &Words::default());
            assert_eq!(follower, ["add", "promote 9", &format!("remove {last}")], "{count} voters");
        }
        let mut lost = healthy(count);
        last_dead(&mut lost);
        let sick = steps(lost, &replace(last), &Words::default());
        let ends = [format!("remove {last}"), "add".to_owned(), "promote 9".to_owned()];
        assert_eq!(sick, if count < 3 { vec!["M11".to_owned()] } else { ends.to_vec() }, "{count} voters");
    }
}

/// Asserts that two dead members are replaced one after the other. While one of them is still listed, no replacement for the
/// other is listed.
#[test]
fn two_dead_ones_are_replaced_one_after_the_other() {
    let mut lost = healthy(5);
    lost.members.iter_mut().skip(3).for_each(|member| member.health = dead());
    let replace = |old| Wish::Replace { old: Some(old), new: newcomer() };
    assert_eq!(steps(lost.clone(), &replace(5), &Words::default()), ["remove 5", "M3"]);
    lost.members.pop();
    assert_eq!(steps(lost, &replace(4), &Words::default()), ["remove 4", "add", "promote 9"]);
}

#[test]
fn who_dies_while_its_replacement_learns_stays_until_that_could_vote() {
    let mut membership = healthy(3);
    last_dead(&mut membership);
    membership.members.push(Member { peer_urls: vec![newcomer().peer_url], lag_before: None, ..learner() });
    let replace = Wish::Replace { old: Some(3), new: newcomer() };
    assert_eq!(steps(membership.clone(), &replace, &Words::default()), ["M7"]);
    membership.members[3].lag_before = Some(0);
    assert_eq!(steps(membership, &replace, &Words::default()), ["remove 3", "promote 9"]);
}

/// Asserts that a voter of unknown health is removed last, because it may be needed for the majority.
#[test]
fn a_silent_one_stays_until_its_replacement_votes() {
    let mut membership = healthy(3);
    last_silent(&mut membership);
    let replace = Wish::Replace { old: Some(3), new: newcomer() };
    assert_eq!(steps(membership, &replace, &Words::default()), ["add", "promote 9", "M12"]);
}

/// Asserts that a replacement may not use a dead member's address while the dead member is listed.
#[test]
fn a_replacement_has_an_address_of_its_own() {
    let mut membership = healthy(3);
    last_dead(&mut membership);
    let new = Newcomer { name: "node8".to_owned(), peer_url: url(3) };
    assert_eq!(steps(membership, &Wish::Replace { old: Some(3), new }, &Words::default()), ["M9"]);
}

#[test]
fn a_wish_that_is_fulfilled_has_no_step() {
    let gone = Wish::Replace { old: Some(7), new: Newcomer { name: "node3".to_owned(), peer_url: url(3) } };
    assert_eq!(next(&healthy(3), &gone, &Words::default()), Next::Done);
    assert_eq!(next(&healthy(3), &Wish::Remove(7), &Words::default()), Next::Done);
    assert_eq!(next(&healthy(3), &Wish::Promote(3), &Words::default()), Next::Done);
}

#[test]
fn leadership_is_not_moved_for_a_removal_that_is_refused() {
    assert_eq!(steps(healthy(3), &Wish::Remove(1), &Words::default()), ["M4"]);
    let words = Words { fewer_voters: Some(1) };
    assert_eq!(steps(healthy(3), &Wish::Remove(1), &words), ["leader 2", "remove 1"]);
    let mut one_dead = healthy(5);
    last_dead(&mut one_dead);
    assert_eq!(steps(one_dead, &Wish::Remove(1), &words), ["M6"]);
    assert_eq!(steps(healthy(1), &Wish::Remove(1), &words), ["M10"]);
}

#[test]
fn leave_for_fewer_voters_is_used_up_by_one_removal() {
    let (mut membership, words) = (healthy(5), Words { fewer_voters: Some(5) });
    let Next::Step(step, passed) = next(&membership, &Wish::Remove(5), &words) else { panic!("refused") };
    assert!(passed.uses_word);
    apply(&mut membership, &step);
    assert_eq!(steps(membership, &Wish::Remove(4), &words), ["M13"]);
}

#[test]
fn what_passes_by_itself_is_told_from_what_does_not() {
    let lag = Forbidden::Lags { member: String::new(), lag: 2, most: 1 };
    assert!(lag.passes() && Forbidden::Unconfirmed.passes());
    assert!(!Forbidden::LastVoter { member: String::new() }.passes());
}
