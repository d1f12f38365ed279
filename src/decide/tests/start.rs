//! R0, R1, R2 and R4, and the order in which a start does what it does.

use super::world::*;
use crate::base::Fact;
use crate::decide::Progress;
use crate::decide::evidence::*;
use crate::decide::plan::{Effect, Exit, OnFailure, Phase, Request, RunMode, Via};
use crate::decide::reason::{Reason, Refusal, Rule, Wait};

pub(super) fn refusal(evidence: &Evidence) -> Refusal {
    match first(Request::Start, evidence).because {
        Reason::Refused { refusal, .. } => refusal,
        other => panic!("not refused: {other}"),
    }
}

pub(super) fn run_mode(evidence: &Evidence) -> RunMode {
    match first(Request::Start, evidence).effects.last() {
        Some(Effect::RunContainer(mode)) => mode.clone(),
        other => panic!("no container is run: {other:?}"),
    }
}

#[test]
fn nothing_happens_before_the_own_record_is_seen_in_the_cib() {
    let mut evidence = at_rest().with_disk(history(ME, &[ME, PEER], &[])).both_start();
    evidence = evidence.cib_with(|cib| cib.own_record = None);
    let plan = first(Request::Start, &evidence);
    assert_eq!(plan.effects, [Effect::PublishRecord(evidence.published_state().unwrap())]);
    assert_eq!(exit(&plan), None);
}

#[test]
fn what_cannot_be_read_is_never_taken_for_nothing() {
    let mut evidence = at_rest().both_start();
    evidence.disk = Fact::Unknown("I/O error".to_owned());
    assert!(matches!(refusal(&evidence), Refusal::DiskUnreadable { .. }));
    let mut evidence = at_rest().both_start();
    evidence.cib = Fact::Unknown("no answer".to_owned());
    assert!(matches!(refusal(&evidence), Refusal::CibUnreadable { .. }));
    let mut evidence = at_rest().both_start();
    evidence.container = Fact::Unknown("podman hangs".to_owned());
    assert!(matches!(refusal(&evidence), Refusal::ContainerUnknown { .. }));
}

/// Asserts that a copy of the serving peer's data, for example an image of its disk, is never started. etcd itself does not
/// notice that its member already runs on another node.
#[test]
fn r1_a_copy_of_the_serving_peers_data_is_never_started_as_it_is() {
    for voters in [&[PEER][..], &[ME, PEER]] {
        let mut evidence = at_rest().with_disk(history(PEER, voters, &[])).peer_is(PeerNode::Online, PeerAgent::Active);
        evidence.peer_etcd = Fact::Known(etcd(PEER, Some(PEER), voters, &[]));
        let plan = first(Request::Start, &evidence);
        let runs = |effect: &Effect| matches!(effect, Effect::RunContainer(RunMode::Normally));
        assert!(!plan.effects.iter().any(runs), "{plan:?}");
        let removes_the_peer = |effect: &Effect| matches!(effect, Effect::RemoveMember { id: PEER, .. });
        assert!(!plan.effects.iter().any(removes_the_peer), "{plan:?}");
        evidence = evidence.with_disk(history(ME, &[ME, PEER], &[]));
        evidence.peer_etcd = Fact::Known(etcd(PEER, Some(PEER), &[ME, PEER], &[]));
        assert_eq!(run_mode(&evidence), RunMode::Normally, "its own data is");
    }
}

#[test]
fn r0_a_serving_etcd_is_left_alone() {
    let evidence = at_rest().running(Fact::Known(etcd(ME, Some(PEER), &[ME, PEER], &[]))).seen_voting();
    let plan = first(Request::Start, &evidence);
    assert_eq!(exit(&plan), Some(Exit::Success));
    assert!(is_harmless(&plan));
    assert!(matches!(plan.because, Reason::Rule { rule: Rule::AlreadyServing, .. }), "{}", plan.because);
}

#[test]
fn r1_a_listed_member_starts_with_its_data() {
    for (voters, learners) in [(&[ME, PEER][..], &[][..]), (&[PEER], &[ME])] {
        let mut evidence =
            at_rest().with_disk(history(ME, voters, learners)).peer_is(PeerNode::Online, PeerAgent::Active);
        evidence.peer_etcd = Fact::Known(etcd(PEER, Some(PEER), voters, learners));
        let plan = first(Request::Start, &evidence);
        assert_eq!(plan.effects, [Effect::RunContainer(RunMode::Normally)]);
        assert!(is_harmless(&plan));
    }
}

#[test]
fn r1_a_stranger_is_listed_first_and_only_then_moves_its_data_aside() {
    let mut evidence = at_rest().with_disk(history(ME, &[ME, PEER], &[])).peer_is(PeerNode::Online, PeerAgent::Active);
    evidence = evidence.cib_with(|cib| cib.lineage = forks(1, "node2"));
    evidence.peer_etcd = Fact::Known(etcd(PEER, Some(PEER), &[PEER], &[]));
    let plan = first(Request::Start, &evidence);
    assert!(is_harmless(&plan));
    assert_eq!(plan.effects[0], Effect::AddLearner { peer_url: "https://node1:2380".to_owned(), via: Via::Peer });

    let listed =
        Member { id: 9, name: String::new(), peer_urls: vec!["https://node1:2380".to_owned()], is_learner: true };
    let mut serving = etcd(PEER, Some(PEER), &[PEER], &[]);
    serving.members.push(listed);
    evidence.peer_etcd = Fact::Known(serving);
    let plan = first(Request::Start, &evidence);
    let initial_cluster = vec![
        ("node2".to_owned(), "https://node2:2380".to_owned()),
        ("node1".to_owned(), "https://node1:2380".to_owned()),
    ];
    assert_eq!(
        plan.effects,
        [
            Effect::MoveDataAside,
            Effect::WriteNote(DurableState {
                lineage: forks(1, "node2"),
                joins: true,
                of: Some(DataOwner { cluster_id: CLUSTER, member_id: 9, node: "node1".to_owned() }),
                ..DurableState::default()
            }),
            Effect::PublishRecord(PublishedState {
                boot_id: "boot1".to_owned(),
                lineage: forks(1, "node2"),
                joins: true,
                ..record(DataDir::Blank)
            }),
            Effect::RunContainer(RunMode::JoinAsLearner { initial_cluster }),
        ]
    );
}

/// Asserts that a join publishes this node's record if an earlier join was cut off right after it had backed the data up. In that
/// case the record in the CIB still describes the backed-up data's lineage, and the peer's next start would wait for that
/// history.
#[test]
fn r1_a_join_that_was_cut_off_after_its_backup_publishes_its_record() {
    let learner =
        Member { id: 9, name: String::new(), peer_urls: vec!["https://node1:2380".to_owned()], is_learner: true };
    let mut serving = etcd(PEER, Some(PEER), &[PEER], &[]);
    serving.members.push(learner);
    let publishes = |left: Lineage| {
        let evidence = at_rest().with_disk(DataDir::Blank).peer_is(PeerNode::Online, PeerAgent::Active);
        let mut evidence = evidence.cib_with(|cib| cib.lineage = forks(1, "node2"));
        evidence.note = Fact::Known(DurableState { lineage: left, ..DurableState::default() });
        evidence.peer_etcd = Fact::Known(serving.clone());
        let own = evidence.published_state();
        let evidence = evidence.cib_with(|cib| cib.own_record = own);
        first(Request::Start, &evidence).effects.into_iter().find_map(|effect| match effect {
            Effect::PublishRecord(record) => Some((record.lineage, record.joins)),
            _ => None,
        })
    };
    assert_eq!(publishes(forks(1, "node1")), Some((forks(1, "node2"), true)));
    assert_eq!(publishes(forks(1, "node2")), None, "it is there already");
    assert_eq!(publishes(Lineage::default()), None, "this node never ran standalone");
}

#[test]
fn r1_a_stale_entry_with_our_address_is_removed_first() {
    let mut evidence = at_rest().with_disk(DataDir::Blank).peer_is(PeerNode::Online, PeerAgent::Active);
    evidence.peer_etcd = Fact::Known(etcd(PEER, Some(PEER), &[PEER], &[ME]));
    let plan = first(Request::Start, &evidence);
    assert_eq!(plan.effects, [Effect::RemoveMember { id: ME, via: Via::Peer }]);
}

#[test]
fn r1_a_learner_that_leads_nothing_is_not_followed() {
    let mut evidence = at_rest().with_disk(DataDir::Blank).peer_is(PeerNode::Online, PeerAgent::Active);
    evidence.peer_etcd = Fact::Known(etcd(PEER, Some(ME), &[ME], &[PEER]));
    assert!(is_harmless(&first(Request::Start, &evidence)));
}

#[test]
fn r2_both_start_from_their_records() {
    let pair = at_rest().both_start().with_disk(history(ME, &[ME, PEER], &[]));
    let plan = first(Request::Start, &pair);
    assert!(plan.effects.is_empty(), "the peer's record is not there yet");
    assert_eq!(run_mode(&pair.clone().with_peer_record(history(PEER, &[ME, PEER], &[]))), RunMode::Normally);
    let blank = at_rest().both_start().with_disk(DataDir::Blank).with_peer_record(DataDir::Blank);
    assert_eq!(run_mode(&blank), RunMode::Bootstrap);
    // The peer may have published this before it joined: no cluster begins next to an etcd that listens.
    let listens = Evidence { peer_etcd: Fact::Unknown("no answer".to_owned()), ..blank };
    let plan = first(Request::Start, &listens);
    assert_eq!((plan.effects.as_slice(), matches!(plan.because, Reason::Waiting(_))), (&[][..], true));
}

#[test]
fn r2_a_peer_that_never_says_anything_ends_in_a_retriable_refusal() {
    let starting = at_rest().both_start().with_disk(history(ME, &[ME, PEER], &[]));
    let starting = starting.peer_is(PeerNode::Online, PeerAgent::Starting);
    assert_eq!(exit(&first(Request::Start, &starting.clone().after(59_000))), None);
    assert_eq!(exit(&first(Request::Start, &starting.clone().after(61_000))), Some(Exit::Retriable));
    assert_eq!(refusal(&starting.after(61_000)), Refusal::PeerSaysNothing);
}

#[test]
fn r2_a_peer_whose_start_has_not_begun_may_be_waiting_for_ours_to_end() {
    let planned = at_rest().both_start().with_disk(DataDir::Blank).with_peer_record(history(PEER, &[PEER], &[]));
    assert_eq!(exit(&first(Request::Start, &planned)), None);
    assert_eq!(exit(&first(Request::Start, &planned.clone().after(5_000))), Some(Exit::Retriable));
    let begun = planned.peer_is(PeerNode::Online, PeerAgent::Starting);
    assert_eq!(exit(&first(Request::Start, &begun.after(5_000))), None);
}

#[test]
fn r2_the_force_is_announced_seen_and_only_then_done() {
    let evidence = at_rest().both_start().with_disk(history(ME, &[ME, PEER], &[])).with_peer_record(DataDir::Blank);
    let plan = first(Request::Start, &evidence);
    assert!(!plan.effects.contains(&Effect::AdvanceCommit));
    let note = DurableState {
        lineage: forks(1, "node1"),
        alone_since: Some(LogPosition { term: 3, index: 1000 }),
        of: Some(mine()),
        without: Some(PEER),
        ..DurableState::default()
    };
    assert_eq!(plan.effects[0], Effect::WriteNote(note.clone()));
    assert_eq!(plan.effects[1], Effect::PublishLineage(forks(1, "node1")));
    assert_eq!(plan.effects[2], Effect::SetStandalone(Some("node1".to_owned())));
    assert!(matches!(&plan.effects[3], Effect::PublishRecord(record) if record.nonce == Some(evidence.nonce)));

    let progress = progress(plan);
    let mut unseen = evidence.clone();
    unseen.note = Fact::Known(note);
    assert!(decide(Request::Start, &unseen, &progress).effects.is_empty(), "not visible in the CIB yet");
    let plan = decide(Request::Start, &unseen.clone().announced(), &progress);
    assert!(plan.effects.is_empty(), "what is visible may be an announcement of an earlier start");
    let plan = decide(Request::Start, &unseen.at_the_barrier(), &progress);
    assert_eq!(plan.effects, [Effect::AdvanceCommit, Effect::RunContainer(RunMode::ForceNewCluster)]);
}

#[test]
fn r4_beside_an_active_peer_nothing_is_forced() {
    let active = at_rest().peer_is(PeerNode::Online, PeerAgent::Active).seen_voting();
    assert_eq!(run_mode(&active.clone().with_disk(history(ME, &[ME, PEER], &[]))), RunMode::Normally);
    assert_eq!(run_mode(&active.clone().with_disk(history(ME, &[ME], &[]))), RunMode::Normally);
    assert_eq!(run_mode(&active.clone().with_disk(history(ME, &[PEER], &[ME]))), RunMode::Normally);
    for disk in [DataDir::Blank, departed(ME)] {
        let plan = first(Request::Start, &active.clone().with_disk(disk));
        assert!(plan.effects.is_empty() && exit(&plan).is_none());
    }
    // The record of a running peer is of its start: it may have been the sole voter then.
    let mut pair = active.with_disk(history(ME, &[ME, PEER], &[])).with_peer_record(history(PEER, &[PEER], &[]));
    assert_eq!(run_mode(&pair), RunMode::Normally);
    pair.peer_etcd = Fact::Known(etcd(PEER, None, &[PEER], &[]));
    assert!(first(Request::Start, &pair).effects.is_empty(), "the peer runs standalone: it serves first");
}

#[test]
fn a_plain_start_without_a_leader_runs_on_and_does_not_block_the_peers_start() {
    let evidence = at_rest().running(Fact::Unknown("no answer".to_owned())).after(6_000);
    let progress = Progress::enter(Phase::Started(RunMode::Normally), 500);
    assert_eq!(exit(&decide(Request::Start, &evidence, &progress)), Some(Exit::Success));
    let forced = Progress::enter(Phase::Started(RunMode::ForceNewCluster), 500);
    assert_eq!(exit(&decide(Request::Start, &evidence, &forced)), None);
}

#[test]
fn an_etcd_that_exits_says_why() {
    let mut evidence = at_rest();
    let exit = Some("exit code 1: member count is unequal".to_owned());
    evidence.container = Fact::Known(Container { exit, ..Container::default() });
    let progress = Progress::enter(Phase::Started(RunMode::Normally), 0);
    let plan = decide(Request::Start, &evidence, &progress);
    assert_eq!(plan.because.to_string(), "etcd exited: exit code 1: member count is unequal");
}

/// Asserts that a start continues once a slow peer answers. This node's data names two voters, but the peer has removed this
/// member.
#[test]
fn a_start_whose_member_was_removed_goes_on_as_soon_as_the_peer_answers() {
    let late = Fact::Unknown("it gave no answer within 1.5 s".to_owned());
    let mut removed = at_rest().with_disk(history(ME, &[ME, PEER], &[])).peer_is(PeerNode::Online, PeerAgent::Active);
    (removed.peer_etcd, removed.elapsed_ms) = (late, 30_000);
    let exit_words = Some("exit code 0: the member has been permanently removed from the cluster".to_owned());
    removed.container = Fact::Known(Container { exit: exit_words, removed: true, ..Container::default() });
    let begun = Progress::enter(Phase::Started(RunMode::Normally), 500);
    let plan = decide(Request::Start, &removed, &begun);
    assert_eq!(plan.because, Reason::Waiting(Wait::PeerToServe { peer: "node2".to_owned() }));
    assert!(plan.effects.is_empty() && exit(&plan).is_none(), "{plan:?}");
    let answers = Evidence { peer_etcd: Fact::Known(etcd(PEER, Some(PEER), &[PEER], &[])), ..removed.clone() };
    let plan = decide(Request::Start, &answers, &begun);
    assert_eq!(plan.because, Reason::Rule { rule: Rule::PeerServesAndThisDataIsNotIts, peer: "node2".to_owned() });
    assert_eq!(progress(plan), Progress::default());
    // No peer that serves, or no time: the start has failed.
    let lost = removed.clone().peer_is(PeerNode::Down, PeerAgent::NoHistory);
    let another = Fact::Known(Container { removed: false, ..removed.container.known().unwrap().clone() });
    let unremoved = Evidence { container: another, ..removed.clone() };
    for failed in [lost, unremoved, removed.clone().after(61_000), answers.after(595_000)] {
        assert_eq!(exit(&decide(Request::Start, &failed, &begun)), Some(Exit::Retriable), "{failed:?}");
    }
}

#[test]
fn a_voter_counts_on_its_claim_only_once_the_claim_is_published() {
    let fresh = at_rest().with_disk(history(ME, &[ME, PEER], &[]));
    let evidence = fresh.running(Fact::Known(etcd(ME, Some(ME), &[ME, PEER], &[])));
    let plan = first(Request::Start, &evidence);
    assert!(matches!(&plan.effects[..], [Effect::PublishRecord(record)] if record.claims));
    let claimed = evidence.cib_with(|cib| {
        if let Some(record) = &mut cib.own_record {
            record.claims = true;
        }
    });
    let plan = first(Request::Start, &claimed);
    assert!(plan.effects.iter().any(|effect| matches!(effect, Effect::Remember(memory) if memory.voter.is_some())));
    assert_eq!(exit(&plan), Some(Exit::Success));
}

#[test]
fn the_force_is_taken_out_of_the_configuration_as_soon_as_etcd_serves() {
    let mut evidence = at_rest().running(Fact::Known(etcd(ME, Some(ME), &[ME], &[]))).seen_voting();
    evidence.container = Fact::Known(Container { running: true, forces_new_cluster: true, ..Container::default() });
    for request in [Request::Start, Request::Monitor] {
        assert!(first(request, &evidence).effects.contains(&Effect::SettleConfig), "{request:?}");
    }
}

#[test]
fn a_refusal_paces_itself_once_the_first_quick_tries_are_used_up() {
    let refused = at_rest().with_disk(history(ME, &[ME, PEER], &[])).peer_is(PeerNode::Down, PeerAgent::NoHistory);
    assert_eq!(exit(&first(Request::Start, &refused)), Some(Exit::Retriable));
    let often = refused.cib_with(|cib| cib.own_start_failures = 3);
    assert_eq!(exit(&first(Request::Start, &often)), None);
    assert_eq!(exit(&first(Request::Start, &often.clone().after(16_000))), Some(Exit::Retriable));
    // The obstacle may pass meanwhile.
    let returned = often.peer_is(PeerNode::Online, PeerAgent::Active);
    assert_eq!(run_mode(&returned), RunMode::Normally);
}

#[test]
fn a_start_whose_effects_fail_paces_itself_as_a_refusal_does() {
    let quick = at_rest();
    assert_eq!(on_failure(Request::Start, &quick), OnFailure::FailInTime);
    let often = quick.cib_with(|cib| cib.own_start_failures = 3);
    assert_eq!(on_failure(Request::Start, &often), OnFailure::TryOn);
    assert_eq!(on_failure(Request::Start, &often.clone().after(16_000)), OnFailure::FailInTime);
    let in_no_time = Evidence { budget_ms: 12_000, ..often.clone() };
    assert_eq!(on_failure(Request::Start, &in_no_time.after(2_000)), OnFailure::FailInTime, "within the action's time");
    assert_eq!(on_failure(Request::Notify, &often), OnFailure::FailInTime, "Pacemaker counts starts");
}

#[test]
fn r4_of_two_sole_voters_only_the_one_that_runs_serves() {
    let sole = at_rest().with_disk(history(ME, &[ME], &[])).peer_is(PeerNode::Online, PeerAgent::Active);
    assert_eq!(run_mode(&sole), RunMode::Normally);
    let split = sole.with_peer_record(history(PEER, &[PEER], &[]));
    let claims = |claims: bool| {
        split.clone().cib_with(|cib| {
            if let Some(record) = &mut cib.peer_record {
                record.claims = claims;
            }
        })
    };
    // A node that was refused its start claims nothing, and counts as active: neither continues while the other still
    // observes.
    for split in [claims(true), claims(false)] {
        assert_eq!(refusal(&split), Refusal::HistoriesSplit);
    }
    let chosen = |name: &str, split: Evidence| split.cib_with(|cib| cib.primary = Some(name.to_owned()));
    let waits = |evidence: &Evidence| matches!(first(Request::Start, evidence).because, Reason::Waiting(_));
    assert!(waits(&chosen("node2", claims(false))));
    assert!(waits(&chosen("node1", claims(true))), "the other one serves");
    let announced = first(Request::Start, &chosen("node1", claims(false)));
    assert_eq!(announced.because, split.rule(Rule::ChosenPrimary));
    // A record of before it joined us is replaced when it backs its data up.
    let joined = sole_with(PublishedState { joins: true, ..record(DataDir::Blank) });
    assert_eq!(run_mode(&joined), RunMode::Normally);
}

fn sole_with(peer_record: PublishedState) -> Evidence {
    let sole = at_rest().with_disk(history(ME, &[ME], &[])).peer_is(PeerNode::Online, PeerAgent::Active);
    sole.cib_with(|cib| cib.peer_record = Some(peer_record))
}

/// Asserts that a sole voter's data is not backed up before an operator has chosen, if the serving peer has a history without it.
#[test]
fn r1_a_history_that_the_serving_peer_does_not_know_is_not_moved_aside() {
    let serving = |lineage: Lineage| {
        let peer = PublishedState { lineage: lineage.clone(), claims: true, ..record(history(PEER, &[PEER], &[])) };
        let mut split = sole_with(peer).cib_with(|cib| cib.peer_lineage = Some(lineage));
        let note = DurableState {
            lineage: forks(1, "node1"),
            alone_since: Some(LogPosition::default()),
            ..DurableState::default()
        };
        split.note = Fact::Known(note);
        split = split.with_disk(history(ME, &[ME], &[]));
        let mut etcd = etcd(PEER, Some(PEER), &[PEER], &[ME]);
        etcd.members[1] = Member { id: 9, name: String::new(), ..etcd.members[1].clone() };
        split.peer_etcd = Fact::Known(etcd);
        split
    };
    assert_eq!(refusal(&serving(forks(1, "node2"))), Refusal::HistoriesSplit);
    assert_eq!(refusal(&serving(Lineage::default())), Refusal::HistoriesSplit);
    // It continued from this history, or at an operator's confirmation that gave this history up: no other data may have its writes.
    assert_eq!(first(Request::Start, &serving(forks(1, "node1"))).effects[0], Effect::MoveDataAside);
    assert_eq!(first(Request::Start, &serving(forks(2, "node2"))).effects[0], Effect::MoveHistoryAside);
    let chosen = serving(forks(1, "node2")).cib_with(|cib| cib.primary = Some("node2".to_owned()));
    assert_eq!(first(Request::Start, &chosen).effects[0], Effect::MoveHistoryAside);
    // The peer continued at an operator's confirmation that named this node.
    let given_up = serving(forks(1, "node2")).cib_with(|cib| {
        cib.peer_record.iter_mut().for_each(|record| record.gave_up = true);
    });
    assert_eq!(first(Request::Start, &given_up).effects[0], Effect::MoveHistoryAside);
}

#[test]
fn r1_chosen_data_is_never_moved_aside() {
    let mut split = at_rest().with_disk(history(ME, &[ME], &[])).peer_is(PeerNode::Online, PeerAgent::Active);
    split.peer_etcd = Fact::Known(etcd(PEER, Some(PEER), &[PEER], &[]));
    let chosen = |name: &str| split.clone().cib_with(|cib| cib.primary = Some(name.to_owned()));
    assert_eq!(refusal(&chosen("node1")), Refusal::PeerServesThoughNotChosen);
    assert!(matches!(first(Request::Start, &chosen("node2")).effects[..], [Effect::AddLearner { .. }, _]));
    assert!(matches!(first(Request::Start, &chosen("node10")).effects[..], [Effect::AddLearner { .. }, _]));
}

#[test]
fn a_joiner_whose_voter_is_lost_gives_up_so_that_it_can_be_fenced() {
    let mode = RunMode::JoinAsLearner { initial_cluster: Vec::new() };
    let started = Progress::enter(Phase::Started(mode), 0);
    let joiner = |peer: PeerNode| {
        at_rest().running(Fact::Unknown("silent".to_owned())).peer_is(peer, PeerAgent::Active).after(3_000)
    };
    assert_eq!(exit(&decide(Request::Start, &joiner(PeerNode::Online), &started)), None);
    for gone in [PeerNode::Lost, PeerNode::Down] {
        let plan = decide(Request::Start, &joiner(gone), &started);
        assert_eq!(exit(&plan), Some(Exit::Retriable));
        assert!(matches!(plan.because, Reason::Refused { refusal: Refusal::PeerLostWhileJoining, .. }));
    }
}
