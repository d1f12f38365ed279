//! Mutants must be caught: a checker that finds no fault in a broken rule proves nothing.

use std::time::Duration;

use tandem::sim::check::check;
use tandem::sim::mutant::{ALL, Mutant};
use tandem::sim::search::Limits;
use tandem::sim::{Bounds, Sim, scenario, story};

fn bounds(faults: u8) -> Bounds {
    Bounds { operators: false, ..Bounds::of_search(faults) }
}

fn from_blank() -> Bounds {
    Bounds { blank: true, writes: 0, ..bounds(1) }
}

/// Returns what a search finds wrong with a broken rule: the first violation, or else "dead" if a state has no way back.
/// Returns `None` if it finds nothing.
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

/// Asserts that the search catches broken rules about a primary. Without a broken rule the primary leads in the end.
#[test]
fn with_a_primary_leadership_goes_back_to_it_and_to_no_other() {
    let primary = Bounds { primary: Some(0), cuts_users: true, ..bounds(1) };
    assert_eq!(wrong(Mutant::None, Bounds { operators: true, ..primary }), None);
    assert_eq!(wrong(Mutant::None, Bounds { blank: true, writes: 0, ..primary }), None);
    let caught = [
        ("learner-is-to-lead", "has no vote"),
        ("led-before-the-delay", "was not well for the delay"),
        ("lead-never-given-back", "dead"),
    ];
    assert_caught(&caught, primary);
    // The steps must be fine: between two atomic ones no message is in flight from one etcd to the other.
    let fine = Bounds { fine: true, ..Bounds { faults: 0, ..primary } };
    assert_caught(&[("laggard-is-to-lead", "lacks entries")], fine);
}

/// Asserts that the search catches broken rules about a network that parts only the two etcds. The primary then runs
/// standalone, once the other node has yielded.
#[test]
fn where_only_etcds_network_parts_the_primary_leads() {
    let parted = Bounds { primary: Some(0), parts_etcd: true, ..bounds(1) };
    assert_eq!(wrong(Mutant::None, parted), None);
    assert_eq!(wrong(Mutant::None, Bounds { operators: true, silent_without_leader: false, ..parted }), None);
    let caught = [("yields-and-keeps-its-claim", "keeps its claim"), ("yields-to-a-peer-unseen", "which is not seen")];
    assert_caught(&caught, parted);
}

/// Asserts that the search catches a broken rule about a node that boots without its peer. The node may get quorum only if
/// its data has all acknowledged writes, and its peer is off.
#[test]
fn a_sole_voter_boots_alone_and_switches_nothing_off_that_is_on() {
    let lone_boot = Bounds { lone_boot: true, ..bounds(1) };
    assert_eq!(wrong(Mutant::None, Bounds { operators: true, ..lone_boot }), None);
    assert_caught(&[("on-is-off", "which is on")], Bounds { blank: true, ..lone_boot });
}

/// Asserts that a search with two faults catches further broken rules about a node that boots without its peer.
#[test]
#[ignore = "minutes: `make sim-deep` runs it"]
fn a_sole_voter_boots_alone_by_all_rules_or_not_at_all() {
    let lone_boot = Bounds { lone_boot: true, ..bounds(2) };
    assert_eq!(wrong(Mutant::None, lone_boot), None);
    let caught =
        [("two-voters-data-boots-alone", "lacks an acknowledged write"), ("one-look-is-enough", "which is on")];
    assert_caught(&caught, lone_boot);
    let chosen = Bounds { chooses: true, ..lone_boot };
    assert_caught(&[("known-fork-ignored", "acknowledged write w1 is lost")], chosen);
    let removed = Bounds { others_remove: true, stacks: false, ..lone_boot };
    assert_caught(&[("uncommitted-removal-counts", "acknowledged write w1 is lost")], removed);
}

/// Asserts that the search catches broken rules about `two_histories=primary`. If both nodes ran standalone and their
/// parameters agree, the primary's history continues without an operator.
#[test]
fn a_history_is_given_up_for_a_parameter_only_where_both_nodes_name_the_other() {
    let kept = Bounds { primary: Some(0), two_histories: true, ..bounds(1) };
    assert_eq!(wrong(Mutant::None, Bounds { operators: true, ..kept }), None);
    let caught = [
        ("one-sides-word-counts", "acknowledged write w2 is lost"),
        ("learners-history-kept", "no voter's"),
        ("serving-history-given-up", "both nodes accept writes"),
    ];
    assert_caught(&caught, kept);
}

#[test]
fn from_blank_nodes_one_fault_is_enough_to_catch() {
    assert_caught(&[("both-bootstrap", ""), ("data-moved-aside-early", "does not serve")], from_blank());
    // If a learner's only voter loses its disk, the learner has nothing that may be forced.
    let disks = Bounds { disks: true, ..from_blank() };
    assert_eq!(wrong(Mutant::None, disks), None);
    assert_caught(&[("learner-counts-as-voter", "no voter's")], disks);
}

/// Asserts that a search with one fault of any kind catches a start that does not wait until its own record is published. The search needs
/// long runs, because every probe and every stop also publishes the record.
#[test]
fn with_one_fault_of_every_kind_the_last_is_caught() {
    let bounds = Bounds { operators: true, disks: true, unblocks: true, slow_fencing: true, ..bounds(1) };
    assert_eq!(wrong(Mutant::None, bounds), None);
    assert_caught(&[("own-record-not-awaited", "dead")], bounds);
}

#[test]
fn whole_searches_pass_unbroken_rules_and_catch_broken_ones() {
    assert_eq!(wrong(Mutant::None, from_blank()), None);
    // A node that lost its disk then knows of no fork, and waits for ever for one of its own.
    assert_caught(&[("forks-ignored", "dead")], Bounds { disks: true, ..bounds(1) });
    let operators = Bounds { operators: true, ..bounds(2) };
    assert_eq!(wrong(Mutant::None, operators), None);
    let caught = [("peers-claim-ignored", "both nodes accept writes"), ("expected-counts-as-down", "not fenced")];
    assert_caught(&caught, operators);
    let caught = [("stopped-counts-as-down", "lost and not fenced"), ("fork-not-recorded", "both nodes accept writes")];
    assert_caught(&caught, bounds(2));
    let without_clients = Bounds { stacks: false, writes: 0, ..bounds(2) };
    assert_caught(&[("fork-never-made-counts", "dead")], without_clients);
    let disks = Bounds { disks: true, ..bounds(2) };
    assert_caught(&[("departed-counts-as-voter", "no voter's")], disks);
}

/// Asserts that the search catches broken rules about a third voter outside of the two nodes. With it etcd keeps a
/// majority whichever member is lost, so the agents must leave the recovery to Raft.
#[test]
fn a_third_voter_is_left_to_raft() {
    let third_voter = Bounds { third_voter: true, ..bounds(2) };
    assert_eq!(wrong(Mutant::None, third_voter), None);
    let caught = [("third-voter-overlooked", "beside a third voter")];
    assert_caught(&caught, third_voter);
    assert_caught(&caught, Bounds { vote_proxies: false, ..third_voter });
    assert_caught(&[("called-off-for-three-counts", "dead")], third_voter);
}

/// Asserts that the search catches an agent that deletes its record of a serving voter while it cannot read the CIB.
/// The CIB may still contain this node's announcement that it runs standalone.
#[test]
fn a_voter_is_not_forgotten_for_a_cib_that_does_not_answer() {
    let hidden = Bounds { hides: true, ..bounds(1) };
    assert_eq!(wrong(Mutant::None, hidden), None);
    assert_caught(&[("unseen-claim-forgotten", "its agent is to forget it")], hidden);
}

/// Asserts that the search catches failed starts that add up. Pacemaker bans a node after too many of them, until an operator
/// cleans up.
#[test]
fn refusals_end_where_failures_add_up() {
    let counted = Bounds { threshold: 3, ..bounds(1) };
    assert_eq!(wrong(Mutant::None, counted), None);
    assert_caught(&[("failures-add-up", "dead")], counted);
}

/// Asserts that the search catches an agent that trusts a leader although the vote proxy that elected this leader has given up. Such an
/// agent announces more new clusters than there were faults.
#[test]
fn an_abandoned_leader_is_not_believed() {
    let counted = Bounds { operators: true, counts_forks: true, ..bounds(1) };
    assert_eq!(wrong(Mutant::None, counted), None);
    assert_caught(&[("abandoned-leader-believed", "5 new clusters were announced, and there were 1 faults")], counted);
}

/// Asserts that the search catches a `confirm-recovery` that does not ask the BMC. In a partition, an operator could
/// then let a node run without its peer while the peer serves.
#[test]
fn a_word_in_a_partition_is_held_to_what_the_bmc_says() {
    let partition = Bounds { operators: true, ..bounds(2) };
    assert_caught(&[("bmc-not-asked", "has its peer fenced, which serves")], partition);
}

/// Asserts that the search catches an agent that ignores the leader's published position. If no data dir has a write any
/// more, only that position reveals the loss.
#[test]
fn a_disk_that_was_put_back_is_noticed_by_what_was_reached() {
    let put_back = Bounds { operators: true, puts_back: true, counts_forks: true, ..bounds(1) };
    assert_caught(&[("reached-ignored", "acknowledged write w1 is lost")], put_back);
}

/// Asserts that the search catches a node that joins an etcd of another cluster. That etcd answers at the peer's address, and
/// has added the node as its learner.
#[test]
fn an_etcd_of_another_cluster_is_not_joined() {
    let hidden = Bounds { hides: true, ..bounds(2) };
    assert_caught(&[("stranger-believed", "its data is to be backed up")], hidden);
}

/// Asserts that the search catches an agent that takes an empty mount point for a blank data dir.
#[test]
fn a_disk_that_is_not_mounted_is_no_blank_one() {
    let unmounted = Bounds { unmounts: true, ..bounds(1) };
    assert_eq!(wrong(Mutant::None, unmounted), None);
    assert_caught(&[("mount-not-checked", "where the disk of its data is not mounted")], unmounted);
}

/// Asserts that the search catches broken rules about two histories, of which an operator chooses one, or none.
#[test]
fn two_histories_are_told_apart_and_kept() {
    let parted = Bounds { chooses: true, ..bounds(1) };
    assert_eq!(wrong(Mutant::None, parted), None);
    let caught = [
        ("split-not-refused", "both nodes accept writes"),
        ("active-peers-history-ignored", "acknowledged write w1 is lost"),
    ];
    assert_caught(&caught, parted);
}

/// Asserts that the search catches an agent that ignores a container launch by an action that was killed. Pacemaker's stop of the failed
/// resource then ends before the launch does, and etcd starts after the stop.
#[test]
fn a_launch_that_is_not_waited_for_starts_etcd_after_its_stop() {
    let caught = [("launch-ignored", "etcd starts after its stop was answered")];
    assert_caught(&caught, Bounds { stacks: false, ..bounds(2) });
}

/// Asserts that the search catches an agent that waits for the vote of a peer with damaged or lost data. Damaged data may look whole to
/// the agent.
#[test]
fn a_vote_that_never_comes_is_not_waited_for() {
    let damaged = Bounds { damage: true, ..bounds(1) };
    assert_eq!(wrong(Mutant::None, damaged), None);
    assert_caught(&[("failed-starts-ignored", "dead")], damaged);
    assert_caught(&[("vote-that-is-gone-awaited", "dead")], Bounds { disks: true, ..from_blank() });
}

/// Asserts that searches with two faults catch some broken rules. The runs that these searches found first are replayed by
/// [`what_is_long_or_takes_three_faults_is_played`].
#[test]
#[ignore = "a minute: `make sim-deep` runs it"]
fn deep_searches_catch_broken_rules() {
    let alone = Bounds { operators: true, unblocks: true, ..bounds(2) };
    let caught = [
        ("proof-outlives-its-claim", "acknowledged write w1 is lost"),
        ("history-beside-given-up", "a history is backed up that nobody gave up"),
    ];
    assert_caught(&caught, alone);
    let counted = Bounds { operators: true, stacks: false, counts_forks: true, ..bounds(2) };
    assert_caught(&[("outdated-word-stands", "new clusters were announced, and there were 2 faults")], counted);
}

/// Replays runs that are too long for a daily search, or take three faults. Asserts that each breaks an invariant with its
/// rule broken, and is impossible with the rule.
#[test]
fn what_is_long_or_takes_three_faults_is_played() {
    let ways = [
        (
            Mutant::ProofOutlivesItsClaim,
            include_str!("../mutants/proof-outlives-its-claim.scn"),
            "acknowledged write w1 is lost",
        ),
        (
            Mutant::HistoryBesideGivenUp,
            include_str!("../mutants/history-beside-given-up.scn"),
            "a history is backed up that nobody gave up",
        ),
        (
            Mutant::OutdatedWordStands,
            include_str!("../mutants/outdated-word-stands.scn"),
            "7 new clusters were announced, and there were 2 faults",
        ),
        (
            Mutant::ToldBesideAKnownFork,
            include_str!("../mutants/told-beside-a-known-fork.scn"),
            "acknowledged write w1 is lost",
        ),
        (
            Mutant::BootstrapBesideAListener,
            include_str!("../mutants/bootstrap-beside-a-listener.scn"),
            "acknowledged write w1 is lost",
        ),
        (
            Mutant::GreaterNameIsNewer,
            include_str!("../mutants/greater-name-is-newer.scn"),
            "acknowledged write w1 is lost",
        ),
        (Mutant::PeersForkNotKept, include_str!("../mutants/peers-fork-not-kept.scn"), "acknowledged write w1 is lost"),
        (
            Mutant::TermNotLookedAt,
            include_str!("../mutants/term-not-looked-at.scn"),
            "acknowledged write w2 is lost: node1 serves without it",
        ),
        (
            Mutant::VoteProxyBeforeAnnouncement,
            include_str!("../mutants/stand-in-before-announcement.scn"),
            "acknowledged write w6 is lost",
        ),
        (
            Mutant::SilentPeerNotAwaited,
            include_str!("../mutants/silent-peer-not-awaited.scn"),
            "both nodes accept writes",
        ),
    ];
    assert_played(&ways);
}

/// Replays lone boots that each break one rule. Each takes three faults: both nodes lose power, and a BMC fails or a
/// node's data is older than the CIB.
#[test]
fn lone_boots_that_take_three_faults_are_played() {
    let missing = "boots alone, and its data lacks an acknowledged write";
    assert_played(&[
        (Mutant::SilenceIsOff, include_str!("../mutants/silence-is-off.scn"), "which is on"),
        (Mutant::AnothersOffCounts, include_str!("../mutants/anothers-off-counts.scn"), "which is on"),
        (Mutant::LearnersDataBootsAlone, include_str!("../mutants/learners-data-boots-alone.scn"), missing),
        (Mutant::RedundantIgnored, include_str!("../mutants/redundant-ignored.scn"), missing),
    ]);
}

/// Asserts that each run in `ways` breaks an invariant with its broken rule, and is impossible if the rule holds.
#[allow(clippy::unwrap_used, reason = "a way that cannot be read, or is survived, fails the test")]
fn assert_played(ways: &[(Mutant, &str, &str)]) {
    for &(mutant, text, expected) in ways {
        let trace = scenario::parse(text).unwrap();
        let result = |mutant| story::tell(&mut Sim::new(Bounds::for_scenarios(), mutant), &trace).1.unwrap_err().0;
        let found = result(mutant);
        assert!(found.contains(expected), "{mutant:?}: {found}");
        let found = result(Mutant::None);
        assert!(found.contains("cannot happen here"), "{mutant:?}: {found}");
    }
}

/// Asserts that a test of this file uses each broken rule, by its name or as a variant.
#[test]
fn every_broken_rule_is_caught_above_or_below() {
    let tests = include_str!("mutants.rs");
    let is_caught = |name: &str, mutant: Mutant| {
        let (named, itself) = (format!("(\"{name}\", \""), format!("Mutant::{mutant:?}"));
        tests.contains(&named) || tests.split(|c: char| !c.is_alphanumeric() && c != ':').any(|word| word == itself)
    };
    let missing: Vec<_> = ALL.iter().filter(|(name, mutant)| !is_caught(name, *mutant)).map(|(name, _)| name).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

/// Asserts that a sole voter loses a write that it acknowledged before it was on disk. No rule restores such a write, so such
/// releases of etcd are not supported.
#[test]
fn what_a_sole_voter_acknowledges_before_it_syncs_is_lost_with_its_power() {
    let found = wrong(Mutant::None, Bounds { acks_before_sync: true, operators: true, ..bounds(2) });
    assert!(found.is_some_and(|found| found.contains("acknowledged write w1 is lost")));
}

/// Asserts that the end of Pacemaker in good order does not count as a proof that its node is off. Pacemaker then expects the
/// node to be gone, even while its etcd runs.
#[test]
fn a_node_in_maintenance_is_not_passed_over() {
    let scenario = include_str!("../scenarios/pacemaker-ends-in-maintenance-and-comes-back.scn");
    let (until_the_cut, _) = scenario.split_once("pacemaker begins monitor").unwrap();
    let begins = "pacemaker begins monitor on node1\n".to_owned() + &"agent on node1 acts\n".repeat(4);
    let forces =
        "agent on node1 decides\n".to_owned() + &"agent on node1 acts\n".repeat(2) + "agent on node1 decides\n";
    let trace = scenario::parse(&format!("{until_the_cut}{begins}{forces}")).unwrap();
    let result = |mutant| story::tell(&mut Sim::new(Bounds::for_scenarios(), mutant), &trace).1.unwrap_err().0;
    let forced = result(Mutant::ExpectedCountsAsDown);
    assert!(forced.contains("lost and not fenced"), "{forced}");
    assert!(result(Mutant::None).contains("cannot happen here"));
}

/// The moves with which a stale announcement that a node runs standalone is carried out too late. They follow the first moves of a
/// scenario, and need an agent that does not wait for its own last record.
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

/// Asserts that a write is lost if a node carries out a stale announcement that it runs standalone. A broken rule makes this possible: the
/// node does not wait for its own last record. The run is written down, because a daily search cannot have the three faults.
#[test]
fn a_stale_announcement_costs_a_write_where_its_last_word_is_not_awaited() {
    let scenario = include_str!("../scenarios/announcement-is-stale-when-it-is-carried-out.scn");
    let (until_the_cut, _) = scenario.split_once("pacemaker notices").unwrap();
    let trace = scenario::parse(&format!("{until_the_cut}{CARRIED_OUT_TOO_LATE}")).unwrap();
    let result = |mutant| story::tell(&mut Sim::new(Bounds::for_scenarios(), mutant), &trace).1;
    let lost = result(Mutant::LastWordNotAwaited).unwrap_err().0;
    assert!(lost.contains("acknowledged write w2 is lost"), "{lost}");
    // With the rule, the first of these moves has to wait for the membership.
    assert!(result(Mutant::None).unwrap_err().0.contains("cannot happen here"));
}
