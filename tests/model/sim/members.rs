//! The rules of members: no order of two tools violates an invariant, and each broken rule is caught.

use tandem::sim::members::mutant::{ALL, Mutant};
use tandem::sim::members::{Outcome, check};

fn told(outcome: &Outcome) -> String {
    format!("{:?} {:?}", outcome.wrong, outcome.endless)
}

#[test]
fn no_order_of_two_tools_and_two_faults_breaks_anything() {
    let outcome = check(1..=5, 2, Mutant::None);
    println!("{} states, {} transitions, {:?}", outcome.states, outcome.transitions, outcome.elapsed);
    assert_eq!(outcome.fault(), None, "{}", told(&outcome));
}

#[test]
fn each_broken_rule_is_caught() {
    let expected = [
        ("room-for-two-more", "members, and"),
        ("second-learner", "learners"),
        ("fewer-without-a-word", "whole copies are left"),
        ("sick-counts-as-healthy", "the quorum is lost"),
        ("healthy-before-sick", "whole copies are left"),
        ("behind-is-promoted", "has not caught up"),
        ("one-look-is-enough", "has not caught up"),
        ("deleted-is-promoted", "whose Machine is being deleted"),
        ("unstarted-promoted", "has not caught up"),
        ("lock-ignored", ""),
        ("stale-list-believed", ""),
        ("last-voter-goes", ""),
        ("leader-goes", "has not handed over"),
        ("unknown-counts-as-healthy", "the quorum is lost"),
        ("unknown-counts-as-gone", "whole copies are left"),
        ("stop-during-change", "the quorum is lost"),
        ("stop-without-majority", "the quorum is lost"),
        ("lease-never-ends", "does not end"),
        ("never-promoted", "does not end"),
        ("old-never-goes", "does not end"),
        ("dead-goes-last", "does not end"),
    ];
    let mut wrong = Vec::new();
    for (name, mutant) in ALL {
        let Some((_, words)) = expected.iter().find(|(known, _)| *known == name) else {
            wrong.push(format!("{name} is in no table"));
            continue;
        };
        let outcome = check(1..=5, 1, mutant);
        println!("{name}: {} states, {}", outcome.states, told(&outcome));
        match outcome.fault() {
            None => wrong.push(format!("{name} is not caught")),
            Some(found) if !found.contains(words) => wrong.push(format!("{name}: {found}")),
            Some(_) => {}
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
