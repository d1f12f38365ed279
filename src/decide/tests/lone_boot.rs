//! L1 to L5: which node that boots without its peer may have quorum. Each row breaks one thing and names the rule.

use super::world::*;
use crate::base::Fact;
use crate::decide::evidence::*;
use crate::decide::plan::{Effect, Exit, Next, Plan, Request, RunMode};
use crate::decide::reason::{LoneBootStep, NoLoneBoot, Reason, Refusal};
use crate::decide::{LoneBootOutlook, lone_boot_outlook};

const THEIRS: &str = "11111111-2222-3333-4444-555555555555";
const OURS: &str = "99999999-2222-3333-4444-555555555555";

fn off(for_s: u64) -> Power {
    Power::Off { for_ms: for_s * 1_000, age_ms: 300 }
}

fn known(uuid: &str) -> Fact<String> {
    Fact::Known(uuid.to_owned())
}

fn asked() -> LoneBoot {
    LoneBoot {
        is_wanted: true,
        wait_s: 120,
        quorum: Fact::Known(false),
        waits_for_all: Fact::Known(true),
        peer_was_seen: Fact::Known(false),
        voters_are_committed: Fact::Known(true),
        release: Fact::Known(Version { minor: 5, patch: 21 }),
        peer_bmc: Fact::Known(PeerBmc {
            power: off(120),
            found: Some(THEIRS.to_owned()),
            by_device: Some(THEIRS.to_owned()),
            by_agent: Some(THEIRS.to_owned()),
        }),
        own_uuid: known(OURS),
        done: Done::default(),
    }
}

/// Returns node1, the sole voter, after both machines lost power and only node1 came back.
pub(super) fn sole_voter_alone() -> Evidence {
    let note = DurableState { lineage: forks(1, "node1"), of: Some(mine()), ..DurableState::default() };
    let mut evidence = at_rest().with_disk(history(ME, &[ME], &[])).cib_with(|cib| {
        (cib.own_record, cib.peer_node, cib.peer_agent) = (None, PeerNode::NeverSeen, PeerAgent::NoHistory);
        (cib.lineage, cib.own_lineage) = (forks(1, "node1"), Some(forks(1, "node1")));
        cib.standalone_node = Some("node1".to_owned());
        cib.redundancy = Fact::Known(Redundancy { is_redundant: false, since: 7 });
    });
    (evidence.note, evidence.lone_boot) = (Fact::Known(note), Some(Box::new(asked())));
    evidence
}

pub(super) fn two_voters_alone() -> Evidence {
    data(&[ME, PEER], &[])
}

pub(super) fn beside_a_peer_that_is_on() -> Evidence {
    bmc(|bmc| bmc.power = Power::On)
}

fn asks(change: impl FnOnce(&mut LoneBoot)) -> Evidence {
    let mut evidence = sole_voter_alone();
    change(evidence.lone_boot.as_mut().unwrap());
    evidence
}

fn bmc(change: impl FnOnce(&mut PeerBmc)) -> Evidence {
    asks(|asked| match &mut asked.peer_bmc {
        Fact::Known(bmc) => change(bmc),
        _ => unreachable!(),
    })
}

fn with(change: impl FnOnce(&mut Evidence)) -> Evidence {
    let mut evidence = sole_voter_alone();
    change(&mut evidence);
    evidence
}

fn note(change: impl FnOnce(&mut DurableState)) -> Evidence {
    with(|evidence| match &mut evidence.note {
        Fact::Known(note) => change(note),
        _ => unreachable!(),
    })
}

fn data(voters: &[u64], learners: &[u64]) -> Evidence {
    with(|evidence| evidence.disk = Fact::Known(history(ME, voters, learners)))
}

fn cib(change: impl FnOnce(&mut Cib)) -> Evidence {
    sole_voter_alone().cib_with(change)
}

fn ask(evidence: &Evidence) -> Plan {
    first(Request::LoneBoot, evidence)
}

fn why_not(evidence: &Evidence) -> NoLoneBoot {
    let plan = ask(evidence);
    assert!(plan.effects.is_empty() && exit(&plan) == Some(Exit::Retriable), "{plan:?}");
    match plan.because {
        Reason::Refused { refusal: Refusal::LoneBoot { why }, .. } => why,
        other => panic!("{other}"),
    }
}

fn unknown<T>() -> Fact<T> {
    Fact::Unknown("no answer".to_owned())
}

/// Returns a row for each way in which rule L1 is not met.
fn l1() -> Vec<(&'static str, Evidence)> {
    let running = Container { running: true, ..Container::default() };
    vec![
        ("the CIB is not readable", with(|evidence| evidence.cib = unknown())),
        ("one node", with(|evidence| evidence.peer = None)),
        ("quorum is not known", asks(|asked| asked.quorum = unknown())),
        ("Corosync does not wait", asks(|asked| asked.waits_for_all = Fact::Known(false))),
        ("not known", asks(|asked| asked.waits_for_all = unknown())),
        ("the peer was here", asks(|asked| asked.peer_was_seen = Fact::Known(true))),
        ("not known", asks(|asked| asked.peer_was_seen = Fact::NotAsked)),
        ("etcd's container", with(|evidence| evidence.container = Fact::Known(running))),
        ("podman is silent", with(|evidence| evidence.container = unknown())),
        ("an etcd without a container", with(|evidence| evidence.data_in_use = Fact::Known(true))),
        ("not known", with(|evidence| evidence.data_in_use = unknown())),
        ("an etcd on the port", with(|evidence| evidence.own_etcd = unknown())),
        ("a start under way", with(|evidence| evidence.launching = Fact::Known(true))),
        ("kubelet's etcd", with(|evidence| evidence.local.obstacle = Some(Obstacle::StaticPod))),
        ("maintenance", cib(|cib| cib.in_maintenance = true)),
    ]
}

fn l2() -> Vec<(&'static str, Evidence)> {
    let third_voter = ThirdVoter { name: "node3".to_owned(), peer_url: "https://c:2380".to_owned(), id: Some(3) };
    let ahead = |evidence: &mut Evidence| {
        let DataDir::Present(history) = history(ME, &[ME], &[]) else { unreachable!() };
        evidence.disk = Fact::Known(DataDir::Present(History { database_ahead: Some(1_100), ..history }));
    };
    let someone_elses = |note: &mut DurableState| note.of = Some(DataOwner { node: "node2".to_owned(), ..mine() });
    vec![
        ("the data is not known", with(|evidence| evidence.disk = unknown())),
        ("no data", with(|evidence| evidence.disk = Fact::Known(DataDir::Blank))),
        ("broken data", with(|evidence| evidence.disk = Fact::Known(DataDir::Broken { why: "x".to_owned() }))),
        ("two voters", two_voters_alone()),
        ("three voters", data(&[ME, PEER, 3], &[])),
        ("a learner", data(&[PEER], &[ME])),
        ("departed", with(|evidence| evidence.disk = Fact::Known(departed(ME)))),
        ("a third voter", cib(|cib| cib.third_voter = Some(third_voter))),
        ("the note is not known", with(|evidence| evidence.note = unknown())),
        ("it asked to leave", note(|note| note.left_at = Some(LogPosition::default()))),
        ("it joins", note(|note| note.joins = true)),
        ("the note of a copied disk", note(someone_elses)),
        ("the database is ahead", with(ahead)),
        ("a removal that only this log has", asks(|asked| asked.voters_are_committed = Fact::Known(false))),
        ("not known", asks(|asked| asked.voters_are_committed = unknown())),
        ("a restored snapshot", cib(|cib| cib.own_identity = Some(Identity { cluster_id: 0xc2, member_id: ME }))),
        ("another member's disk", cib(|cib| cib.own_identity = Some(Identity { cluster_id: CLUSTER, member_id: 9 }))),
        ("a CIB that began anew", cib(|cib| cib.own_identity = None)),
    ]
}

fn l3() -> Vec<(&'static str, Evidence)> {
    let reached =
        Reached { cluster_id: CLUSTER, forks: 1, position: LogPosition { term: 3, index: 1_000 }, is_redundant: true };
    let said = |is_redundant| Fact::Known(Redundancy { is_redundant, since: 7 });
    vec![
        ("more forks", cib(|cib| cib.lineage = forks(2, "node2"))),
        ("a fork of the peer's", cib(|cib| cib.peer_lineage = Some(forks(1, "node2")))),
        ("a note without the fork", note(|note| note.lineage = Lineage::default())),
        ("put back", cib(|cib| cib.reached = Fact::Known(reached))),
        ("two voters since", cib(|cib| cib.redundancy = said(true))),
        ("nothing is said", cib(|cib| cib.redundancy = Fact::Absent)),
        ("rubbish is said", cib(|cib| cib.redundancy = unknown())),
        ("the peer said that it is alone", cib(|cib| cib.standalone_node = Some("node2".to_owned()))),
        ("an operator chose the peer's data", cib(|cib| cib.primary = Some("node2".to_owned()))),
    ]
}

fn l4() -> Vec<(&'static str, Evidence)> {
    let release = |minor, patch| asks(move |asked| asked.release = Fact::Known(Version { minor, patch }));
    vec![
        ("3.3", release(3, 27)),
        ("3.4", release(4, 20)),
        ("3.5", release(5, 4)),
        ("not known", asks(|asked| asked.release = unknown())),
        ("no container", asks(|asked| asked.release = Fact::Absent)),
    ]
}

fn l5() -> Vec<(&'static str, Evidence)> {
    let says = |power: Power| bmc(move |bmc| bmc.power = power);
    let found = |uuid: Option<&str>| uuid.map(str::to_owned);
    vec![
        ("no device", asks(|asked| asked.peer_bmc = Fact::Absent)),
        ("not known", asks(|asked| asked.peer_bmc = unknown())),
        ("On", beside_a_peer_that_is_on()),
        ("PoweringOn", says(Power::Unclear { says: "PoweringOn".to_owned() })),
        ("silence", says(Power::Silent { why: "no answer".to_owned() })),
        ("an old look", says(Power::Off { for_ms: 500_000, age_ms: 5_001 })),
        ("no UUID", bmc(|bmc| bmc.found = None)),
        ("no UUID to compare with", bmc(|bmc| (bmc.by_device, bmc.by_agent) = (None, None))),
        ("another machine", bmc(|bmc| bmc.found = found(Some(OURS)))),
        ("the peer runs on another machine", bmc(|bmc| bmc.by_agent = found(Some("other")))),
        ("the device names another machine", bmc(|bmc| bmc.by_device = found(Some("other")))),
        ("one UUID for all machines", asks(|asked| asked.own_uuid = known(THEIRS))),
        ("this machine's UUID is not known", asks(|asked| asked.own_uuid = Fact::Absent)),
    ]
}

#[test]
fn what_breaks_one_rule_alone_is_refused_by_that_rule() {
    for (rule, rows) in [("L1", l1()), ("L2", l2()), ("L3", l3()), ("L4", l4()), ("L5", l5())] {
        for (name, evidence) in rows {
            let why = why_not(&evidence);
            assert_eq!(why.rule(), Some(rule), "{name}: {why:?}");
            let outlook = lone_boot_outlook(&ask(&evidence).because);
            let expected = if why.is_unknown() { LoneBootOutlook::NotKnown } else { LoneBootOutlook::WouldNot };
            assert_eq!(outlook, expected, "{name}");
        }
    }
}

#[test]
fn without_the_parameter_nothing_is_asked() {
    assert_eq!(why_not(&asks(|asked| asked.is_wanted = false)), NoLoneBoot::NotWanted);
    assert_eq!(why_not(&with(|evidence| evidence.lone_boot = None)), NoLoneBoot::NotWanted);
}

fn done(is_announced: bool, is_held_off: bool) -> Evidence {
    asks(|asked| asked.done = Done { is_announced, is_held_off })
}

#[test]
fn each_step_is_seen_before_the_next_and_all_rules_are_asked_before_each() {
    let step = |evidence: &Evidence| {
        let plan = ask(evidence);
        assert!(matches!(plan.next, Next::Reobserve { .. }));
        assert_eq!(lone_boot_outlook(&plan.because), LoneBootOutlook::Would);
        plan.effects
    };
    assert_eq!(step(&done(false, false)), [Effect::AnnounceLoneBoot("node1".to_owned())]);
    assert_eq!(step(&done(false, true)), [Effect::AnnounceLoneBoot("node1".to_owned())], "of an earlier boot");
    assert_eq!(step(&done(true, false)), [Effect::HoldPeerOff("node2".to_owned())]);
    assert_eq!(step(&done(true, true)), [Effect::CancelWaitForAll]);
    let switched_on = asks(|asked| {
        asked.done = Done { is_announced: true, is_held_off: true };
        if let Fact::Known(bmc) = &mut asked.peer_bmc {
            bmc.power = Power::On;
        }
    });
    assert_eq!(why_not(&switched_on), NoLoneBoot::On);
}

#[test]
fn the_peer_has_to_be_off_for_as_long_as_the_parameter_says() {
    for (power, waits) in [(off(0), true), (off(119), true), (off(120), false)] {
        let plan = ask(&bmc(|bmc| bmc.power = power));
        assert_eq!(plan.effects.is_empty(), waits, "{plan:?}");
        let is_wait = matches!(plan.because, Reason::LoneBoot { step: LoneBootStep::Waits { wait_s: 120, .. }, .. });
        assert_eq!(is_wait, waits);
        assert_eq!(lone_boot_outlook(&plan.because), LoneBootOutlook::Would);
    }
}

#[test]
fn one_of_the_two_names_of_the_machine_is_enough() {
    for change in [|bmc: &mut PeerBmc| bmc.by_agent = None, |bmc: &mut PeerBmc| bmc.by_device = None] {
        assert!(!ask(&bmc(change)).effects.is_empty());
    }
}

#[test]
fn releases_that_sync_first_may() {
    for (minor, patch) in [(4, 21), (5, 5), (6, 0), (7, 3)] {
        let plan = ask(&asks(|asked| asked.release = Fact::Known(Version { minor, patch })));
        assert!(!plan.effects.is_empty(), "3.{minor}.{patch}");
    }
}

#[test]
fn quorum_ends_it_whatever_else_is_known() {
    let mut evidence = asks(|asked| (asked.quorum, asked.is_wanted) = (Fact::Known(true), false));
    evidence.cib = unknown();
    let plan = ask(&evidence);
    assert_eq!((plan.effects.as_slice(), exit(&plan)), ([].as_slice(), Some(Exit::Success)));
}

/// Asserts that a node that may boot alone starts plainly, by the usual rules of a start, which force and wipe nothing.
#[test]
fn the_node_that_boots_alone_is_started_as_a_sole_voter() {
    let evidence = sole_voter_alone().peer_is(PeerNode::Down, PeerAgent::NoHistory);
    let record = evidence.published_state();
    let plan = first(Request::Start, &evidence.cib_with(|cib| cib.own_record = record));
    assert!(plan.effects.iter().any(|effect| matches!(effect, Effect::RunContainer(RunMode::Normally))), "{plan:?}");
}
