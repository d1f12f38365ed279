//! Data that reads as whole and that etcd does not start from: when that is said of it, and when never.

use super::world::*;
use crate::base::Fact;
use crate::decide::evidence::*;
use crate::decide::plan::{Effect, Exit, Phase, Plan, Progress, Request, RunMode, Via};
use crate::decide::reason::{Reason, Refusal, Wait};

/// Returns `count` failed plain starts, in which etcd crashed because of its data.
fn failed(count: u64) -> FailedStarts {
    FailedStarts { count, last_at: "then".to_owned(), last_words: "exit code 2: panic: freepages".to_owned() }
}

fn with_failed(mut evidence: Evidence, count: u64) -> Evidence {
    evidence.local.failed_starts = Some(failed(count));
    // What is published is what is known.
    let record = evidence.published_state();
    evidence.cib_with(|cib| cib.own_record = record)
}

fn says_broken(evidence: &Evidence) -> bool {
    let record = evidence.published_state().unwrap();
    match &record.disk {
        DataDir::Broken { why } => {
            assert!(why.contains("etcd failed to start from it 3 times: exit code 2: panic: freepages"), "{why}");
            assert!(!record.claims && !record.joins);
            true
        }
        _ => false,
    }
}

/// Returns a node that boots at the same time as its peer. Both have the data of two voters.
fn cold_boot() -> Evidence {
    at_rest().both_start().with_peer_record(history(PEER, &[ME, PEER], &[])).with_disk(history(ME, &[ME, PEER], &[]))
}

/// Returns a learner of a peer that serves.
fn learner() -> Evidence {
    let peer_etcd = Fact::Known(etcd(PEER, Some(PEER), &[PEER], &[ME]));
    let evidence = Evidence { peer_etcd, ..at_rest().peer_is(PeerNode::Online, PeerAgent::Active) };
    evidence.with_peer_record(history(PEER, &[PEER], &[ME])).with_disk(history(ME, &[PEER], &[ME]))
}

#[test]
fn a_learner_that_never_starts_beside_a_serving_peer_is_listed_anew() {
    let plain = first(Request::Start, &with_failed(learner(), 2));
    assert_eq!(plain.effects, [Effect::RunContainer(RunMode::Normally)], "as many are tried as are tried quickly");
    let removed = first(Request::Start, &with_failed(learner(), 3));
    assert_eq!(removed.effects, [Effect::RemoveMember { id: ME, via: Via::Peer }]);

    let unlisted = Evidence { peer_etcd: Fact::Known(etcd(PEER, Some(PEER), &[PEER], &[])), ..learner() };
    let added = first(Request::Start, &with_failed(unlisted, 3));
    assert!(matches!(added.effects.first(), Some(Effect::AddLearner { via: Via::Peer, .. })), "{added:?}");

    let mut serving = etcd(PEER, Some(PEER), &[PEER], &[9]);
    serving.members[1].name.clear();
    serving.members[1].peer_urls = vec![address("node1").peer_url];
    let listed = Evidence { peer_etcd: Fact::Known(serving), ..learner() };
    let joined = first(Request::Start, &with_failed(listed, 3));
    assert_eq!(joined.effects.first(), Some(&Effect::MoveDataAside), "what it had is kept");
    assert!(matches!(joined.effects.last(), Some(Effect::RunContainer(RunMode::JoinAsLearner { .. }))));
}

#[test]
fn of_two_that_boot_together_the_whole_one_goes_on() {
    // The damaged one publishes that, starts no more, and waits for the other.
    assert!(!says_broken(&with_failed(cold_boot(), 2)) && says_broken(&with_failed(cold_boot(), 3)));
    let plan = first(Request::Start, &with_failed(cold_boot(), 3));
    assert!(plan.effects.is_empty(), "{plan:?}");
    assert!(matches!(plan.because, Reason::Waiting(Wait::PeerToServe { .. })), "{plan:?}");
    // The other one runs and waits for its vote until then.
    let own_etcd = Fact::Unknown("no answer without a leader".to_owned());
    let whole = cold_boot().running(own_etcd).peer_is(PeerNode::Online, PeerAgent::Starting);
    assert_eq!(exit(&first(Request::Monitor, &whole)), Some(Exit::Success));
    let broken = DataDir::Broken { why: "it reads as whole, and etcd failed to start from it 3 times".to_owned() };
    let plan = first(Request::Monitor, &whole.clone().with_peer_record(broken.clone()));
    assert!(matches!(plan.effects.first(), Some(Effect::WriteNote(_))), "{plan:?}");
    // A word of newer forks keeps it from that: they may be on the disk that etcd does not start from.
    let newer = whole.with_peer_record(broken).cib_with(|cib| {
        cib.lineage = forks(1, "node2");
        cib.peer_record.iter_mut().for_each(|record| record.lineage = forks(1, "node2"));
    });
    assert!(is_harmless(&first(Request::Monitor, &newer)));
}

#[test]
fn data_that_may_hold_what_nobody_else_has_is_never_given_up() {
    let claiming = |evidence: Evidence| Evidence { boot_memory: at_rest().seen_voting().boot_memory, ..evidence };
    let note = |lineage| Fact::Known(DurableState { lineage, ..DurableState::default() });
    let peer_at = |evidence: Evidence, lineage: Lineage| {
        evidence.cib_with(|cib| cib.peer_record.iter_mut().for_each(|record| record.lineage = lineage.clone()))
    };
    let served_by = |peer_etcd| Evidence { peer_etcd: Fact::Known(peer_etcd), ..learner() };
    let words = Evidence { confirmation: Fact::Known(word(false)), ..cold_boot() };
    let kept = vec![
        ("a sole voter's", cold_boot().with_disk(history(ME, &[ME], &[]))),
        ("a sole voter's beside a learner", cold_boot().with_disk(history(ME, &[ME], &[PEER]))),
        ("a claiming voter's", claiming(cold_boot())),
        ("a claiming learner's", claiming(learner())),
        ("newer than the peer's", Evidence { note: note(forks(1, "node1")), ..cold_boot() }),
        ("another fork", peer_at(Evidence { note: note(forks(1, "node1")), ..cold_boot() }, forks(1, "node2"))),
        ("the peer has none", cold_boot().with_peer_record(DataDir::Blank)),
        ("the peer's is broken", cold_boot().with_peer_record(DataDir::Broken { why: String::new() })),
        ("the peer has not said", cold_boot().cib_with(|cib| cib.peer_record = None)),
        ("the peer only learned", cold_boot().with_peer_record(history(PEER, &[ME], &[PEER]))),
        ("the peer has left", cold_boot().with_peer_record(departed(PEER))),
        ("the peer is an earlier member", cold_boot().with_peer_record(history(7, &[ME, 7], &[]))),
        ("an operator chose it", cold_boot().cib_with(|cib| cib.primary = Some("node1".to_owned()))),
        ("force_new_cluster is set", cold_boot().cib_with(|cib| cib.others.force_on_me = true)),
        ("an operator gave the peer up", words),
        (
            "the peer serves another cluster",
            Evidence {
                peer_etcd: Fact::Known(Etcd { cluster_id: 9, ..etcd(PEER, Some(PEER), &[PEER], &[ME]) }),
                ..learner()
            },
        ),
        ("the peer does not list it", served_by(etcd(PEER, Some(PEER), &[PEER], &[]))),
        ("others vote as well", served_by(etcd(PEER, Some(PEER), &[PEER, 9], &[ME]))),
        ("a voter's, of which the peer says that it learns", learner().with_disk(history(ME, &[ME, PEER], &[]))),
        ("the peer has no leader", Evidence { peer_etcd: Fact::Known(etcd(PEER, None, &[PEER], &[ME])), ..learner() }),
    ];
    for (name, evidence) in kept {
        assert!(!says_broken(&with_failed(evidence, 3)), "{name}");
    }
    assert!(says_broken(&with_failed(peer_at(cold_boot(), forks(1, "node2")), 3)), "the peer's is newer");
}

/// Returns the plan of a start after the etcd that it waited for has ended.
fn after_an_end(container: Fact<Container>, mode: RunMode, failures: u64) -> Plan {
    let mut evidence = cold_boot().cib_with(|cib| cib.own_start_failures = failures);
    (evidence.container, evidence.own_etcd) = (container, Fact::Absent);
    evidence.local.failed_starts = Some(failed(1));
    decide(Request::Start, &evidence, &Progress::enter(Phase::Started(mode), 0))
}

fn ended(broke_down_at: Option<&str>) -> Fact<Container> {
    let exit = Some("exit code 2: panic: x".to_owned());
    Fact::Known(Container { exit, broke_down_at: broke_down_at.map(str::to_owned), ..Container::default() })
}

#[test]
fn each_breakdown_of_a_plain_start_counts_once() {
    let last_words = "exit code 2: panic: x".to_owned();
    let second = Effect::NoteFailedStart(FailedStarts { count: 2, last_at: "now".to_owned(), last_words });
    let plan = after_an_end(ended(Some("now")), RunMode::Normally, 0);
    assert_eq!(plan.effects, std::slice::from_ref(&second));
    assert!(matches!(plan.because, Reason::Refused { refusal: Refusal::EtcdExited { .. }, .. }));
    // A start that may not fail yet looks again, and finds what is counted.
    let paced = after_an_end(ended(Some("now")), RunMode::Normally, 5);
    assert!(paced.effects == [second] && exit(&paced).is_none(), "{paced:?}");
    assert!(after_an_end(ended(Some("then")), RunMode::Normally, 5).effects.is_empty());
}

#[test]
fn what_is_around_the_data_does_not_count() {
    let join = RunMode::JoinAsLearner { initial_cluster: Vec::new() };
    for (name, container, mode) in [
        ("a port that is taken, a member that was removed", ended(None), RunMode::Normally),
        ("podman has no container", Fact::Absent, RunMode::Normally),
        ("a join", ended(Some("now")), join),
        ("a force", ended(Some("now")), RunMode::ForceNewCluster),
    ] {
        let plan = after_an_end(container, mode, 0);
        assert!(plan.effects.is_empty() && exit(&plan) == Some(Exit::Retriable), "{name}: {plan:?}");
    }
}

#[test]
fn an_etcd_that_serves_takes_the_count_back() {
    let serving = || cold_boot().seen_voting().running(Fact::Known(etcd(ME, Some(ME), &[ME, PEER], &[])));
    for request in [Request::Start, Request::Monitor] {
        assert!(!first(request, &serving()).effects.contains(&Effect::ForgetFailedStarts));
        let mut counted = serving();
        counted.local.failed_starts = Some(failed(3));
        assert!(first(request, &counted).effects.contains(&Effect::ForgetFailedStarts), "{request:?}");
    }
    let mut leaderless = cold_boot().running(Fact::Known(etcd(ME, None, &[ME, PEER], &[])));
    leaderless.local.failed_starts = Some(failed(3));
    assert!(first(Request::Monitor, &leaderless).effects.is_empty(), "it has not served");
}
