//! Broken rules must be caught: a checker that finds nothing wrong with them proves nothing.
//!
//! Two of the 24 are not caught. `learner-counts-as-voter` survives every bound that was tried: two blank nodes and one
//! fault, with and without writes. `own-record-not-awaited` cannot be caught here: in the model a probe publishes the
//! record before Pacemaker can plan a start, and a replica of the CIB takes changes in their order. The rule guards
//! against attributes that arrive later than the operations they belong to; the tables of the core hold it.

use std::time::Duration;

use tandem::sim::check::{Limits, check};
use tandem::sim::mutant::{ALL, Mutant};
use tandem::sim::{Bounds, Sim};

fn bounds(faults: u8) -> Bounds {
    Bounds { operators: false, ..Bounds::of_search(faults) }
}

fn from_blank() -> Bounds {
    Bounds { blank: true, writes: 0, ..bounds(1) }
}

/// What a search finds wrong: a violation first, else a dead state.
fn wrong(mutant: Mutant, bounds: Bounds) -> Option<String> {
    let limits = Limits { states: 4_000_000, time: Duration::from_secs(600), stop_at_first: true, threads: 1 };
    let outcome = check(&mut Sim::new(bounds, mutant), limits);
    let violation = outcome.first_violation.map(|(violation, _)| violation.0);
    let cut_short = outcome.cut_short.filter(|_| violation.is_none());
    assert_eq!(cut_short, None, "the search is not complete");
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
    assert_eq!(wrong(Mutant::None, Bounds { operators: true, ..bounds(1) }), None);
    assert_eq!(wrong(Mutant::None, Bounds { unblocks: true, ..bounds(1) }), None);
    assert_eq!(wrong(Mutant::None, Bounds { disks: true, ..bounds(1) }), None);
    assert_eq!(wrong(Mutant::None, Bounds { disks: true, unblocks: true, ..bounds(1) }), None);
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
        ("plain-start-forces", "acknowledged write w1 is lost"),
        ("record-not-published", "dead"),
    ];
    assert_caught(&caught, bounds(1));
    let alone = [("proof-survives-reboot", "acknowledged write w1 is lost")];
    assert_caught(&alone, Bounds { unblocks: true, ..bounds(1) });
}

#[test]
fn from_blank_nodes_one_fault_is_enough_to_catch() {
    assert_caught(&[("both-bootstrap", ""), ("data-moved-aside-early", "does not serve")], from_blank());
}

#[test]
fn whole_searches_catch() {
    assert_eq!(wrong(Mutant::None, from_blank()), None);
    assert_caught(&[("forks-ignored", "dead")], from_blank());
    assert_eq!(wrong(Mutant::None, Bounds { operators: true, ..bounds(2) }), None);
    let caught = [
        ("stopped-counts-as-down", "lost and not fenced"),
        ("peers-claim-ignored", "acknowledged write w1 is lost"),
        ("fork-not-recorded", "dead"),
        ("departed-counts-as-voter", "dead"),
        ("both-leave-when-both-stop", "dead"),
    ];
    assert_caught(&caught, bounds(2));
    let alone = [("missing-record-counts-as-blank", "")];
    assert_caught(&alone, Bounds { unblocks: true, ..bounds(2) });
}
