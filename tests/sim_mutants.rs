//! Broken rules must be caught: a checker that finds nothing wrong with them proves nothing.

use std::time::Duration;

use tandem::sim::check::{Limits, check};
use tandem::sim::mutant::{ALL, Mutant};
use tandem::sim::{Bounds, Sim, scenario, story};

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
    // A learner whose only voter loses its disk holds nothing that may be forced.
    let disks = Bounds { disks: true, ..from_blank() };
    assert_eq!(wrong(Mutant::None, disks), None);
    assert_caught(&[("learner-counts-as-voter", "no voter's")], disks);
}

/// Every probe and every stop publishes the record, too, so it takes much until a start is the only one who does.
#[test]
fn with_one_fault_of_every_kind_the_last_is_caught() {
    let bounds = Bounds { operators: true, disks: true, unblocks: true, slow_fencing: true, ..bounds(1) };
    assert_eq!(wrong(Mutant::None, bounds), None);
    assert_caught(&[("own-record-not-awaited", "dead")], bounds);
}

#[test]
fn whole_searches_catch() {
    assert_eq!(wrong(Mutant::None, from_blank()), None);
    assert_caught(&[("forks-ignored", "dead")], from_blank());
    let operators = Bounds { operators: true, ..bounds(2) };
    assert_eq!(wrong(Mutant::None, operators), None);
    assert_caught(&[("peers-claim-ignored", "both nodes accept writes")], operators);
    let caught = [("stopped-counts-as-down", "lost and not fenced"), ("fork-not-recorded", "both nodes accept writes")];
    assert_caught(&caught, bounds(2));
    let disks = Bounds { disks: true, ..bounds(2) };
    assert_caught(&[("departed-counts-as-voter", "no voter's")], disks);
    let alone = [("missing-record-counts-as-blank", "")];
    assert_caught(&alone, Bounds { unblocks: true, ..bounds(2) });
}

/// What follows in the scenario of a stale announcement where its last word is not awaited.
const CARRIED_OUT_TOO_LATE: &str = "
    agent on node2 acts
    agent on node2 decides
    agent on node2 acts
    agent on node2 acts
    etcd on node2 asks for votes
    client writes
    pacemaker notices the loss
    pacemaker on node1 fences its peer
    pacemaker begins monitor on node1
    agent on node1 acts
    agent on node1 acts
    agent on node1 acts
    agent on node1 acts
    agent on node1 decides
    agent on node1 acts
    agent on node1 acts
    agent on node1 decides
    agent on node1 acts
    agent on node1 acts
    etcd on node1 asks for votes
";

/// Three faults are too many for a search of every day, so the way is written down.
#[test]
fn a_stale_announcement_costs_a_write_where_its_last_word_is_not_awaited() {
    let scenario = include_str!("scenarios/announcement-is-stale-when-it-is-carried-out.scn");
    let (until_the_cut, _) = scenario.split_once("pacemaker notices").unwrap();
    let trace = scenario::parse(&format!("{until_the_cut}{CARRIED_OUT_TOO_LATE}")).unwrap();
    let result = |mutant| story::tell(&mut Sim::new(Bounds::for_scenarios(), mutant), &trace).1;
    let lost = result(Mutant::LastWordNotAwaited).unwrap_err().0;
    assert!(lost.contains("acknowledged write w2 is lost"), "{lost}");
    // With the rule the first of these moves has to wait for the membership.
    assert!(result(Mutant::None).unwrap_err().0.contains("cannot happen here"));
}
