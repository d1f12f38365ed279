//! Broken rules must be caught: a checker that finds nothing wrong with them proves nothing.

use std::time::Duration;

use tandem::sim::check::{Limits, check};
use tandem::sim::mutant::{ALL, Mutant};
use tandem::sim::{Bounds, Sim};

fn bounds(faults: u8, blank: bool) -> Bounds {
    Bounds {
        faults,
        writes: u8::from(!blank),
        silent_without_leader: true,
        operators: false,
        blank,
        slow_fencing: false,
        fine: false,
    }
}

/// What a search finds wrong: a violation first, else a dead state.
fn wrong(mutant: Mutant, bounds: Bounds) -> Option<String> {
    let limits = Limits { states: 4_000_000, time: Duration::from_secs(240), stop_at_first: true };
    let outcome = check(&mut Sim::new(bounds, mutant), limits);
    let violation = outcome.first_violation.map(|(violation, _)| violation.0);
    violation.or_else(|| (outcome.dead > 0).then(|| "dead".to_owned()))
}

fn assert_caught(names: &[(&str, &str)], bounds: Bounds) {
    for (name, expected) in names {
        let Some((_, mutant)) = ALL.iter().find(|(known, _)| known == name) else { panic!("no rule is called {name}") };
        let found = wrong(*mutant, bounds).unwrap_or_else(|| panic!("{name} is not caught"));
        assert!(found.contains(expected), "{name}: {found}");
    }
}

#[test]
fn the_rules_themselves_pass() {
    assert_eq!(wrong(Mutant::None, bounds(1, false)), None);
}

#[test]
fn one_fault_is_enough_to_catch() {
    let caught = [
        ("commit-index-not-advanced", "acknowledged write w1 is lost"),
        ("lost-counts-as-down", "lost and not fenced"),
        ("own-claim-not-awaited", "dead"),
        ("data-not-moved-aside", "joins with data"),
        ("stop-without-etcd-stopped", "while etcd runs"),
        ("returning-voter-rejoins-without-listing", "dead"),
        ("learner-never-promoted", "dead"),
        ("learner-never-listed", "dead"),
        ("survivor-never-goes-on", "dead"),
        ("joiner-starts-plainly", "plainly on a blank data dir"),
        ("plain-start-forces", ""),
        ("record-not-published", "dead"),
    ];
    assert_caught(&caught, bounds(1, false));
}

#[test]
fn two_faults_are_enough_to_catch() {
    let caught =
        [("stopped-counts-as-down", "lost and not fenced"), ("peers-claim-ignored", "acknowledged write w1 is lost")];
    assert_caught(&caught, bounds(2, false));
}

#[test]
fn from_blank_nodes_one_fault_is_enough_to_catch() {
    let caught = [("both-bootstrap", "both nodes accept writes"), ("data-moved-aside-early", "does not serve")];
    assert_caught(&caught, bounds(1, true));
}
