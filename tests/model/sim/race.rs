//! The race of two fence agents: no order resets both nodes or neither, and each broken rule is caught.

use tandem::sim::race::mutant::{ALL, Mutant};
use tandem::sim::race::{Options, Outcome, check};

const ONE_FAULT: Options = Options { faults: 1, context: true, timely: false, learner: false, mutant: Mutant::None };
/// The options of a search without lost messages, in which the BMCs answer within `race_delay`.
const TIMELY: Options = Options { faults: 0, timely: true, ..ONE_FAULT };

fn found(options: Options) -> Outcome {
    let outcome = check(options);
    println!("{options:?}: {} states, {} transitions, {:?}", outcome.states, outcome.transitions, outcome.wrong);
    outcome
}

#[test]
fn no_order_resets_both_nodes_or_neither() {
    for options in [ONE_FAULT, Options { context: false, ..ONE_FAULT }, TIMELY] {
        for learner in [false, true] {
            assert_eq!(found(Options { learner, ..options }).wrong, None, "{options:?}");
        }
    }
}

#[test]
#[ignore = "two faults take half a minute"]
fn no_order_with_two_faults_resets_both_nodes_or_neither() {
    for context in [true, false] {
        assert_eq!(found(Options { faults: 2, context, ..ONE_FAULT }).wrong, None);
    }
}

#[test]
fn each_broken_rule_is_caught() {
    let mut wrong = Vec::new();
    for (name, mutant) in ALL {
        let (options, words) = match mutant {
            Mutant::NeverWithdraws | Mutant::LateForgotten => (TIMELY, "waits for race_delay too often"),
            _ => (ONE_FAULT, "both nodes are off"),
        };
        let caught = found(Options { mutant, ..options })
            .wrong
            .is_some_and(|(what, way)| what.contains(words) && !way.is_empty());
        wrong.extend((!caught).then_some(name));
    }
    assert!(wrong.is_empty(), "not caught: {wrong:?}");
    let none = found(Options { mutant: Mutant::NeitherPreferred, ..TIMELY }).wrong.map(|(what, _)| what);
    assert_eq!(none.as_deref(), Some("a node waits for race_delay too often"), "two that withdraw never meet");
}
