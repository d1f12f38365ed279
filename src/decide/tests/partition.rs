//! Only etcd's network parts: the voter that is not the configured primary yields to it.

use super::world::*;
use crate::base::Fact;
use crate::decide::evidence::*;
use crate::decide::plan::{Effect, Exit, Next, Phase, Plan, Progress, Request};
use crate::decide::reason::{Health, Reason, ReasonStep, Refusal, Wait};
use crate::decide::{Yielding, yielding};

const PATIENCE_S: u64 = 30;

fn leading(leaderless_for_s: Option<u64>) -> Leading {
    let primary = Some("node2".to_owned());
    Leading { primary, delay_s: 60, patience_s: PATIENCE_S, leaderless_for_s, boot_s: 1_000, ..Leading::default() }
}

/// Returns a pair with a partition of etcd's network, in which node1 has had no leader for `leaderless_for_s` seconds. `claims`
/// is whether node1 has a claim to run standalone in its record, and a voter in its `BootState`.
fn parted_since(leaderless_for_s: Option<u64>, claims: bool) -> Evidence {
    let voter = at_rest().running(Fact::Known(etcd(ME, None, &[ME, PEER], &[]))).seen_voting();
    let mut evidence = voter.peer_is(PeerNode::Online, PeerAgent::Active).cib_with(|cib| {
        cib.peer_leads = Some(false);
        cib.peer_record = Some(PublishedState { claims: true, ..record(history(PEER, &[ME, PEER], &[])) });
        cib.own_record.iter_mut().for_each(|own| own.claims = claims);
    });
    if let Fact::Known(memory) = &mut evidence.boot_memory {
        memory.leaderless_since_s = leaderless_for_s.and(Some(900));
        memory.voter = memory.voter.take().filter(|_| claims);
    }
    let leading = Some(Box::new(leading(leaderless_for_s)));
    let peer_etcd = Fact::Unknown("cannot connect".to_owned());
    Evidence { peer_etcd, leading, notify: None, budget_ms: 23_000, ..evidence }
}

/// Returns a pair with a partition of etcd's network, in which node1 has waited long enough to yield.
fn parted() -> Evidence {
    parted_since(Some(PATIENCE_S), true)
}

fn monitor(evidence: &Evidence) -> Plan {
    first(Request::Monitor, evidence)
}

fn gives_up(plan: &Plan) -> bool {
    plan.effects.iter().any(|effect| matches!(effect, Effect::PublishRecord(record) if !record.claims))
}

fn yields(plan: &Plan) -> bool {
    matches!(&plan.because, Reason::Refused { refusal: Refusal::YieldsToPrimary, .. })
}

#[test]
fn the_claim_goes_from_the_cib_and_from_memory_before_the_monitor_fails() {
    let counts = monitor(&parted_since(None, true));
    let [Effect::Remember(memory)] = &counts.effects[..] else { panic!("{counts:?}") };
    assert!(memory.leaderless_since_s == Some(1_000) && memory.voter.is_some(), "{memory:?}");
    assert_eq!(exit(&counts), Some(Exit::Success));

    let waits = monitor(&parted_since(Some(PATIENCE_S - 1), true));
    assert_eq!((waits.effects, waits.next), (Vec::new(), Next::Exit(Exit::Success)));

    let step = monitor(&parted());
    let [Effect::PublishRecord(record), Effect::Remember(memory)] = &step.effects[..] else { panic!("{step:?}") };
    assert!(!record.claims && memory.voter.is_none() && memory.leaderless_since_s == Some(900));
    assert!(matches!(&step.next, Next::Reobserve { progress, .. } if *progress == Progress::default()));
    assert_eq!(step.because, Reason::Step(ReasonStep::YieldToPrimary { peer: "node2".to_owned() }));

    let fails = monitor(&parted_since(Some(PATIENCE_S), false));
    assert!(yields(&fails) && fails.effects.is_empty() && exit(&fails) == Some(Exit::Retriable), "{fails:?}");
    // One half alone is no end: each that is left goes first.
    let unseen = parted_since(Some(PATIENCE_S), false)
        .cib_with(|cib| cib.own_record.iter_mut().for_each(|own| own.claims = true));
    assert!(gives_up(&monitor(&unseen)) && !yields(&monitor(&unseen)));
    // A CIB that never shows it leaves etcd as it is, for the next monitor.
    let late = monitor(&unseen.after(15_000));
    assert_eq!((late.effects, late.next), (Vec::new(), Next::Exit(Exit::Success)));
}

/// Asserts that an etcd that does not answer yields too. From etcd 3.5 on, an etcd answers nothing until it has had a leader
/// since its start.
#[test]
fn an_etcd_that_is_silent_without_a_leader_yields_too() {
    let silent = |evidence: Evidence| Evidence { own_etcd: Fact::Unknown("no leader".to_owned()), ..evidence };
    assert!(gives_up(&monitor(&silent(parted()))));
    assert!(yields(&monitor(&silent(parted_since(Some(PATIENCE_S), false)))));
    // What is only slow serves.
    let slow = Evidence { pace: Pace { unanswered: 2, ..Pace::default() }, ..silent(parted()) };
    assert!(!gives_up(&monitor(&slow)));
    // The restart of one that is taken for dead keeps the count.
    let dead = monitor(&silent(parted_since(None, true)).after(12_000));
    assert!(matches!(&dead.effects[..], [Effect::Remember(memory)] if memory.leaderless_since_s == Some(1_000)));
    assert!(matches!(&dead.because, Reason::Refused { refusal: Refusal::EtcdDoesNotAnswer { .. }, .. }));
}

/// Asserts for each condition of rules Y1 to Y4 that neither node yields while the condition is not met.
#[test]
fn whatever_is_missing_has_both_wait() {
    let peer_etcd = |leader| Fact::Known(etcd(PEER, leader, &[ME, PEER], &[]));
    let led = etcd(ME, Some(PEER), &[ME, PEER], &[]);
    let leading = |change: fn(&mut Leading)| {
        let mut changed = leading(Some(10 * PATIENCE_S));
        change(&mut changed);
        Evidence { leading: Some(Box::new(changed)), ..parted() }
    };
    let rows = vec![
        ("a leader", Evidence { own_etcd: Fact::Known(led), ..parted() }),
        ("the peer has a leader", Evidence { peer_etcd: peer_etcd(Some(ME)), ..parted() }),
        ("no primary", leading(|leading| leading.primary = None)),
        ("this node is the primary", leading(|leading| leading.primary = Some("node1".to_owned()))),
        ("no patience", leading(|leading| leading.patience_s = 0)),
        ("its machine is lost", parted().peer_is(PeerNode::Lost, PeerAgent::Active)),
        ("its agent stops", parted().peer_is(PeerNode::Online, PeerAgent::Stopping)),
        ("its agent starts", parted().peer_is(PeerNode::Online, PeerAgent::Starting)),
        ("its node shows a leader", parted().cib_with(|cib| cib.peer_leads = Some(true))),
        ("its node shows nothing", parted().cib_with(|cib| cib.peer_leads = None)),
        ("it proves nothing", parted().cib_with(|cib| cib.peer_record.iter_mut().for_each(|peer| peer.claims = false))),
        ("it says nothing", parted().cib_with(|cib| cib.peer_record = None)),
        ("maintenance", parted().cib_with(|cib| cib.in_maintenance = true)),
        ("standby", parted().cib_with(|cib| cib.peer_leaves = true)),
        ("a third voter", parted().cib_with(|cib| cib.third_voter = Some(ThirdVoter::default()))),
        ("three voters", Evidence { own_etcd: Fact::Known(etcd(ME, None, &[ME, PEER, 3], &[])), ..parted() }),
        ("no CIB", Evidence { cib: Fact::Unknown("no answer".to_owned()), ..parted() }),
    ];
    for (what, evidence) in rows {
        let plan = monitor(&evidence);
        assert!(!gives_up(&plan) && !yields(&plan), "{what}: {plan:?}");
        let forgets = |effect: &Effect| matches!(effect, Effect::Remember(memory) if memory.voter.is_none());
        assert!(!plan.effects.iter().any(forgets), "{what}: {plan:?}");
    }
    assert!(gives_up(&monitor(&Evidence { peer_etcd: peer_etcd(None), ..parted() })), "only its peer port is lost");
}

#[test]
fn only_a_monitor_yields() {
    let notified = parted().notified(Moment::Post, Operation::Start, &["node2"], &[]);
    for request in [Request::Notify, Request::Probe, Request::Promote, Request::Reload] {
        let plan = decide(request, &notified, &Progress::default());
        assert!(!gives_up(&plan) && !yields(&plan), "{request}: {plan:?}");
    }
}

/// Asserts that the time without a leader is not stored while the [`BootState`] cannot be read. A new file could replace one that
/// records that this member votes.
#[test]
fn nothing_is_counted_over_a_memory_that_cannot_be_read() {
    let unread = Evidence { boot_memory: Fact::Unknown("an I/O error".to_owned()), ..parted_since(None, true) };
    assert_eq!(monitor(&unread).effects, Vec::new());
}

#[test]
fn what_is_counted_ends_with_a_leader_and_with_a_stop_for_good() {
    let remembered = |plan: &Plan| {
        plan.effects.iter().find_map(|effect| match effect {
            Effect::Remember(memory) => Some(memory.leaderless_since_s),
            _ => None,
        })
    };
    let led = Evidence { own_etcd: Fact::Known(etcd(ME, Some(PEER), &[ME, PEER], &[])), ..parted() };
    assert_eq!(remembered(&monitor(&led)), Some(None));
    let stopped = |start: &[&str]| {
        let stopped = Evidence { container: Fact::Absent, own_etcd: Fact::Absent, ..parted() };
        let stopped = stopped.notified(Moment::Outside, Operation::None, start, &["node1"]);
        first(Request::Stop, &Evidence { disk: Fact::Known(history(ME, &[ME, PEER], &[])), ..stopped })
    };
    assert_eq!(remembered(&stopped(&["node1"])), Some(Some(900)), "the other half of a restart has no leader, either");
    assert_eq!(remembered(&stopped(&[])), Some(None));
}

/// Asserts that the stop of a node that has yielded publishes no claim to run standalone, even if the stop belongs to a restart
/// by Pacemaker.
#[test]
fn the_stop_of_a_restart_does_not_bring_the_claim_back() {
    let stopped = Evidence { container: Fact::Absent, own_etcd: Fact::Absent, ..parted_since(Some(PATIENCE_S), false) };
    let stopped = stopped.notified(Moment::Outside, Operation::None, &["node1"], &["node1"]);
    let plan = first(Request::Stop, &Evidence { disk: Fact::Known(history(ME, &[ME, PEER], &[])), ..stopped });
    for effect in &plan.effects {
        assert!(!matches!(effect, Effect::Remember(memory) if memory.voter.is_some()), "{plan:?}");
        assert!(!matches!(effect, Effect::PublishRecord(record) if record.claims), "{plan:?}");
    }
}

/// Asserts that the primary comes to run standalone by a restart of etcd once node1 has yielded and is stopped. No vote proxy
/// casts node1's vote, because node1's machine is on.
#[test]
fn the_primary_runs_standalone_by_a_restart() {
    let primary = |claims: bool, agent: PeerAgent| {
        let mut evidence = parted_since(None, true).peer_is(PeerNode::Online, agent).cib_with(|cib| {
            cib.peer_record.iter_mut().for_each(|peer| peer.claims = claims);
        });
        evidence.leading = Some(Box::new(Leading { primary: Some("node1".to_owned()), ..leading(None) }));
        Evidence { recovery: Recovery::VoteProxy, budget_ms: 58_000, ..evidence }
    };
    let yielded = primary(false, PeerAgent::Stopped).notified(Moment::Post, Operation::Stop, &[], &["node2"]);
    let announces = first(Request::Notify, &yielded);
    assert!(announces.effects.contains(&Effect::SetStandalone(Some("node1".to_owned()))), "{announces:?}");
    assert_eq!(progress(announces).phase, Phase::Announced);
    // Unseen as stopped, or with its claim, it may serve.
    for waits in [primary(false, PeerAgent::Active), primary(true, PeerAgent::Stopped)] {
        let plan = monitor(&waits);
        assert!(is_harmless(&plan) && plan.effects.is_empty(), "{plan:?}");
    }
}

/// Asserts that a start waits until it reaches the primary if its node has yielded to the primary. The primary has forced a new cluster
/// that the node's data does not know.
#[test]
fn a_node_that_yielded_starts_once_it_reaches_the_primary() {
    let at_start = |lineage: Lineage, voters: &[u64]| {
        let disk = history(ME, &[ME, PEER], &[]);
        let peer = PublishedState { claims: true, lineage, ..record(history(PEER, voters, &[])) };
        let start = at_rest().with_disk(disk).peer_is(PeerNode::Online, PeerAgent::Active);
        let start = start.cib_with(|cib| {
            (cib.lineage, cib.peer_lineage) = (peer.lineage.clone(), Some(peer.lineage.clone()));
            cib.peer_record = Some(peer);
        });
        Evidence {
            peer_etcd: Fact::Unknown("cannot connect".to_owned()),
            leading: Some(Box::new(leading(None))),
            ..start
        }
    };
    let went_on = at_start(forks(1, "node2"), &[PEER]);
    let waits = first(Request::Start, &went_on);
    assert_eq!(waits.because, Reason::Waiting(Wait::PeerToServe { peer: "node2".to_owned() }));
    let refuses = first(Request::Start, &went_on.clone().after(5_000));
    assert!(matches!(&refuses.because, Reason::Refused { refusal: Refusal::PrimaryNotReached, .. }), "{refuses:?}");
    // Its vote may be awaited: after a fork that was called off, and by a record of before this member's promotion.
    for awaited in [at_start(forks(1, "node2"), &[ME, PEER]), at_start(Lineage::default(), &[PEER])] {
        let plan = first(Request::Start, &awaited);
        assert!(plan.effects.iter().any(|effect| matches!(effect, Effect::RunContainer(_))), "{plan:?}");
    }
    let without = Evidence { leading: None, ..went_on };
    assert!(!first(Request::Start, &without).effects.is_empty(), "nothing is new without a primary");
}

#[test]
fn people_read_what_is_waited_for() {
    let read = |evidence: &Evidence| yielding(evidence).map(|yields| yields.sentence("node2"));
    let counted = parted_since(Some(18), true);
    assert_eq!(read(&counted).as_deref(), Some("this node gives its claim up in 12 s, and node2 runs standalone"));
    let leading = Some(Box::new(Leading { primary: Some("node1".to_owned()), ..leading(None) }));
    let primary = Evidence { leading, ..parted_since(None, true) };
    assert_eq!(yielding(&primary), Some(Yielding::ThePeer { patience_s: PATIENCE_S }));
    assert!(read(&primary).unwrap().starts_with("node2 gives its claim up 30 s after it lost its leader"));
    assert_eq!(read(&Evidence { leading: None, ..parted() }), None);
    assert_eq!(read(&counted.cib_with(|cib| cib.in_maintenance = true)), None);
    let health = Health::LeaderlessPeerNotConfirmed { peer: "node2".to_owned() };
    assert_eq!(monitor(&parted_since(Some(18), true)).because, Reason::Running(health));
}
