//! What other programs ask through the CIB, and what they read there.

use super::world::*;
use crate::base::Fact;
use crate::decide::evidence::*;
use crate::decide::plan::{Effect, Exit, Next, Notice, Phase, Progress, Request, RunMode};
use crate::decide::reason::{Reason, Refusal, Rule, Wait};

fn says(effects: &[Effect], notice: &Notice) -> bool {
    effects.contains(&Effect::TellOthers(notice.clone()))
}

fn serving() -> Evidence {
    at_rest().running(Fact::Known(etcd(ME, Some(ME), &[ME, PEER], &[]))).seen_voting()
}

fn forced_on_me(evidence: Evidence) -> Evidence {
    evidence.cib_with(|cib| cib.others.force_on_me = true)
}

#[test]
fn a_start_publishes_address_and_revision_and_takes_back_what_was_asked() {
    let mut evidence = serving().cib_with(|cib| {
        cib.others = Others {
            restart_no_leave: true,
            force_on_me: true,
            removal_lock: Some("1".to_owned()),
            ..Others::default()
        };
    });
    evidence.local.revision = Some(7);
    let plan = first(Request::Start, &evidence);
    assert_eq!(exit(&plan), Some(Exit::Success));
    for notice in [
        Notice::Address("192.0.2.1".to_owned()),
        Notice::Revision(7),
        Notice::Member,
        Notice::ForceDone,
        Notice::RestartDone,
    ] {
        assert!(says(&plan.effects, &notice), "{notice:?}");
    }
}

#[test]
fn a_healthy_monitor_writes_nothing_and_leaves_the_restart_to_the_stop() {
    let mut evidence = serving().cib_with(|cib| {
        cib.others.revision = Some(1000);
        cib.others.restart_no_leave = true;
    });
    evidence.local.revision = Some(2000);
    assert!(first(Request::Monitor, &evidence).effects.is_empty());
    evidence.local.revision = Some(11_000);
    assert_eq!(first(Request::Monitor, &evidence).effects, [Effect::TellOthers(Notice::Revision(11_000))]);
    let spoofed = serving().cib_with(|cib| cib.others.revision = Some(999_999));
    let spoofed = Evidence { local: Local { revision: Some(2000), ..spoofed.local.clone() }, ..spoofed };
    assert!(says(&first(Request::Monitor, &spoofed).effects, &Notice::Revision(2000)));
}

/// Asserts that an unchanged UUID is not published again, because the CIB is written to disk at every change.
#[test]
fn the_machines_uuid_is_published_where_it_is_new_and_at_no_other_time() {
    let uuid = |text: &str| Some(text.to_owned());
    let mut evidence = serving();
    evidence.local.system_uuid = uuid("u1");
    for request in [Request::Start, Request::Monitor] {
        assert!(says(&first(request, &evidence).effects, &Notice::SystemUuid("u1".to_owned())), "{request}");
    }
    let published = |text: &str| evidence.clone().cib_with(|cib| cib.others.system_uuid = uuid(text));
    assert!(first(Request::Monitor, &published("u1")).effects.is_empty());
    assert!(says(&first(Request::Monitor, &published("u0")).effects, &Notice::SystemUuid("u1".to_owned())));
    let silent = Evidence { local: Local { system_uuid: None, ..evidence.local.clone() }, ..published("u0") };
    assert!(first(Request::Monitor, &silent).effects.is_empty(), "no parameter asks for it");
}

#[test]
fn a_voter_alone_keeps_its_published_revision_exact() {
    let mut evidence = serving().cib_with(|cib| cib.others.revision = Some(1000));
    evidence.own_etcd = Fact::Known(etcd(ME, Some(ME), &[ME], &[]));
    evidence.local.revision = Some(1001);
    let says_so = |evidence: &Evidence| says(&first(Request::Monitor, evidence).effects, &Notice::Revision(1001));
    evidence.local.machine_is_deleted = Fact::Known(true);
    assert!(says_so(&evidence), "a peer that is away");
    let single = Evidence { peer: None, ..evidence };
    assert!(!says_so(&single), "a cluster of one has nobody to tell it");
}

fn stops_beside_a_voter() -> Evidence {
    let mut evidence = serving().peer_is(PeerNode::Online, PeerAgent::Active);
    evidence.own_etcd = Fact::Known(etcd(ME, Some(PEER), &[ME, PEER], &[]));
    evidence.peer_etcd = Fact::Known(etcd(PEER, Some(PEER), &[ME, PEER], &[]));
    evidence.notify = Some(Notify { active: nodes(&["node1", "node2"]), stop: nodes(&["node1"]), ..Notify::default() });
    evidence
}

#[test]
fn a_leave_is_announced_before_it_is_done() {
    let plan = first(Request::Stop, &stops_beside_a_voter());
    let lock = plan.effects.iter().position(|effect| *effect == Effect::TellOthers(Notice::Leaving));
    let leave = plan.effects.iter().position(|effect| matches!(effect, Effect::RemoveMember { .. }));
    assert!(lock.is_some() && lock < leave, "{plan:?}");
}

/// Asserts that a stop with `restart_no_leave` keeps the member in the member list, and keeps the claim to run standalone.
/// OpenShift restarts the two members one after the other so that they read a new CA bundle.
#[test]
fn restart_no_leave_is_half_of_a_restart() {
    let evidence = stops_beside_a_voter().cib_with(|cib| cib.others.restart_no_leave = true);
    let plan = first(Request::Stop, &evidence);
    assert!(matches!(plan.effects.as_slice(), [Effect::StopContainer { .. }]), "{plan:?}");
    let mut stopped = evidence.with_disk(history(ME, &[ME, PEER], &[]));
    stopped.container = Fact::Absent;
    let plan = first(Request::Stop, &stopped);
    let claims = plan.effects.iter().any(|effect| matches!(effect, Effect::PublishRecord(record) if record.claims));
    assert!(claims, "the peer waits for our return: {plan:?}");
}

/// Asserts that `restart_no_leave` has no effect on the next start if a ban left the attribute set. The peer has run standalone since,
/// and its member list counts.
#[test]
fn a_stale_restart_flag_bypasses_nothing() {
    let mut evidence = at_rest().with_disk(history(ME, &[ME, PEER], &[]));
    evidence = evidence.cib_with(|cib| cib.others.restart_no_leave = true);
    evidence.peer_etcd = Fact::Known(etcd(PEER, Some(PEER), &[PEER], &[]));
    let plan = first(Request::Start, &evidence);
    assert!(matches!(plan.effects.as_slice(), [Effect::AddLearner { .. }, ..]), "{plan:?}");
}

#[test]
fn a_stale_removal_lock_decides_nothing() {
    let evidence = at_rest()
        .both_start()
        .peer_is(PeerNode::Online, PeerAgent::Starting)
        .with_disk(history(ME, &[ME, PEER], &[]))
        .with_peer_record(history(PEER, &[ME, PEER], &[]))
        .cib_with(|cib| cib.others.removal_lock = Some("1".to_owned()));
    let plan = first(Request::Start, &evidence);
    assert_eq!(plan.because, Reason::Rule { rule: Rule::TwoPlainStarts, peer: "node2".to_owned() });
}

/// Asserts that `force_new_cluster` lets this node run standalone if OpenShift's etcd operator has replaced the peer's node. The old node
/// is gone, and the new one was never in the cluster.
#[test]
fn a_replaced_peer_is_given_up_where_others_say_so() {
    let lost = || at_rest().with_disk(history(ME, &[ME, PEER], &[])).peer_is(PeerNode::NeverSeen, PeerAgent::NoHistory);
    assert!(is_harmless(&first(Request::Start, &lost())));
    let plan = first(Request::Start, &forced_on_me(lost()));
    assert_eq!(plan.because, Reason::Rule { rule: Rule::OperatorConfirmed, peer: "node2".to_owned() });
    let both = forced_on_me(lost()).cib_with(|cib| cib.others.force_on_peer = true);
    assert!(is_harmless(&first(Request::Start, &both)), "two claims are none");
    let unclean = forced_on_me(lost()).peer_is(PeerNode::Lost, PeerAgent::Active);
    assert!(is_harmless(&first(Request::Start, &unclean)), "a peer that may run is fenced first");
    let off = forced_on_me(lost()).peer_is(PeerNode::Down, PeerAgent::NoHistory);
    assert_eq!(first(Request::Start, &off).because, plan.because, "a claim counts where the peer is confirmed off");
}

/// Asserts that an outdated `force_new_cluster` is cleared while there are two voters. If the peer continued without this node's data,
/// `force_new_cluster` does not let this node run standalone, because the peer's writes would be lost. Only a restored snapshot is an
/// exception.
#[test]
fn a_stale_wish_to_force_is_taken_back_and_gives_nothing_up() {
    let running = forced_on_me(serving());
    assert!(says(&first(Request::Monitor, &running).effects, &Notice::ForceDone));
    let sole = Evidence { own_etcd: Fact::Known(etcd(ME, Some(ME), &[ME], &[])), ..running };
    assert!(!says(&first(Request::Monitor, &sole).effects, &Notice::ForceDone));
    let alone = forced_on_me(at_rest().with_disk(history(ME, &[ME, PEER], &[])));
    let alone = alone.peer_is(PeerNode::Down, PeerAgent::NoHistory);
    let behind = alone.cib_with(|cib| cib.lineage = forks(1, "node2"));
    let refused = first(Request::Start, &behind);
    assert!(matches!(refused.because, Reason::Refused { refusal: Refusal::PeerWentOnWithoutUs { .. }, .. }));
    // A snapshot of another cluster id was put here for this purpose.
    let restored = behind.cib_with(|cib| cib.own_identity = Some(Identity { cluster_id: 0xc2, member_id: ME }));
    let plan = first(Request::Start, &restored);
    assert_eq!(plan.because, Reason::Rule { rule: Rule::OperatorConfirmed, peer: "node2".to_owned() });
}

#[test]
fn the_announced_force_that_others_asked_for_is_carried_out() {
    let announced = forced_on_me(at_rest().with_disk(history(ME, &[ME, PEER], &[])))
        .peer_is(PeerNode::NeverSeen, PeerAgent::NoHistory)
        .at_the_barrier();
    let plan = decide(Request::Start, &announced, &barrier());
    assert!(plan.effects.contains(&Effect::RunContainer(RunMode::ForceNewCluster)), "{plan:?}");
}

/// Asserts that `force_new_cluster` forces no new cluster if the peer's node only rebooted. The peer may have published its data, may not
/// have done so yet, or may already run etcd.
#[test]
fn what_others_asked_for_forces_nothing_beside_a_peer_that_came_back() {
    let back = || forced_on_me(at_rest().with_disk(history(ME, &[ME, PEER], &[]))).both_start();
    let starting = || back().peer_is(PeerNode::Online, PeerAgent::Starting);
    let with_data = starting().with_peer_record(history(PEER, &[ME, PEER], &[]));
    let plan = first(Request::Start, &with_data);
    assert_eq!(plan.because, Reason::Rule { rule: Rule::TwoPlainStarts, peer: "node2".to_owned() });
    assert!(is_harmless(&first(Request::Start, &starting())), "it has not said yet what it holds");
    let active = back().peer_is(PeerNode::Online, PeerAgent::Active);
    let plan = first(Request::Start, &active);
    assert_eq!(plan.because, Reason::Rule { rule: Rule::PeerActiveButWithoutLeader, peer: "node2".to_owned() });
    let mut serving = active;
    serving.peer_etcd = Fact::Known(etcd(PEER, Some(PEER), &[PEER], &[]));
    let plan = first(Request::Start, &serving);
    assert!(matches!(plan.effects.as_slice(), [Effect::AddLearner { .. }, ..]), "{plan:?}");
}

/// Asserts the plan of each node after OpenShift's restore script has put a snapshot on one of them. That node is then the only
/// voter of a new cluster, and has no durable note.
#[test]
fn a_restored_snapshot_counts_on_both_sides() {
    let restored = DataDir::Present(History {
        cluster_id: 0xc2,
        ..match history(9, &[9], &[]) {
            DataDir::Present(history) => history,
            other => panic!("{other:?}"),
        }
    });
    let starting = || at_rest().both_start().peer_is(PeerNode::Online, PeerAgent::Starting);
    let mine = starting().with_disk(restored.clone()).with_peer_record(history(PEER, &[PEER], &[]));
    let refused = first(Request::Start, &mine);
    assert!(matches!(refused.because, Reason::Refused { refusal: Refusal::HistoriesSplit, .. }), "{refused:?}");
    let plan = first(Request::Start, &forced_on_me(mine));
    assert_eq!(plan.because, Reason::Rule { rule: Rule::OperatorConfirmed, peer: "node2".to_owned() });
    let theirs = starting().with_disk(history(ME, &[ME], &[])).with_peer_record(restored);
    let plan = first(Request::Start, &theirs.cib_with(|cib| cib.others.force_on_peer = true));
    assert_eq!(plan.because, Reason::Waiting(Wait::PeerToServe { peer: "node2".to_owned() }));
}

/// Asserts that a start begins again if the peer has published restored data since this start was decided from the peer's former
/// record.
#[test]
fn a_start_that_was_decided_from_a_stale_record_begins_again() {
    let started = at_rest().with_disk(history(ME, &[ME, PEER], &[])).running(Fact::Unknown("no leader yet".to_owned()));
    let restored = Etcd { cluster_id: 0xc2, ..etcd(9, Some(9), &[9], &[]) };
    let left_out = Evidence { peer_etcd: Fact::Known(restored), ..started.clone() };
    let progress = crate::decide::Progress::enter(Phase::Started(RunMode::Normally), 0);
    let plan = decide(Request::Start, &left_out.after(1_500), &progress);
    assert!(matches!(plan.effects.as_slice(), [Effect::StopContainer { .. }]), "{plan:?}");
    let listed = Evidence { peer_etcd: Fact::Known(etcd(PEER, Some(PEER), &[ME, PEER], &[])), ..started };
    assert!(decide(Request::Start, &listed.after(1_500), &progress).effects.is_empty());
}

#[test]
fn a_start_waits_until_the_static_pod_is_gone_and_says_meanwhile_what_is_here() {
    let mut evidence = at_rest();
    evidence.disk = Fact::Known(history(ME, &[ME, PEER], &[]));
    evidence.local.obstacle = Some(Obstacle::StaticPod);
    let plan = first(Request::Start, &evidence);
    assert!(matches!(plan.effects.as_slice(), [Effect::PublishRecord(_)]), "{plan:?}");
    assert_eq!(plan.because, Reason::Waiting(Wait::WayToBeFree { obstacle: Obstacle::StaticPod }));
    assert_eq!(exit(&first(Request::Start, &evidence.clone().after(595_000))), Some(Exit::Retriable));
    assert_eq!(exit(&first(Request::Probe, &evidence)), Some(Exit::NotRunning), "kubelet's etcd is not ours");
}

/// Asserts that a start publishes the data that kubelet's etcd left, and does not fail at once, even if it waited long for the end of
/// that etcd.
#[test]
fn what_a_static_pod_leaves_is_published_however_long_it_ran() {
    let mut evidence = at_rest().both_start().with_disk(history(ME, &[ME, PEER], &[]));
    evidence.elapsed_ms = 120_000;
    evidence.local.obstacle = Some(Obstacle::StaticPod);
    let waits = decide(Request::Start, &evidence, &Progress::default());
    let Next::Reobserve { progress, .. } = waits.next else { panic!("{waits:?}") };
    let mut evidence = evidence.cib_with(|cib| cib.own_record = None);
    evidence.local.obstacle = None;
    evidence.elapsed_ms += 1_000;
    let publishes = decide(Request::Start, &evidence, &progress);
    assert!(matches!(publishes.effects[..], [Effect::PublishRecord(_)]), "{publishes:?}");
    evidence.elapsed_ms += 60_000;
    let refused = decide(Request::Start, &evidence, &progress);
    assert!(matches!(refused.because, Reason::Refused { refusal: Refusal::CibUnreadable { .. }, .. }), "{refused:?}");
}

#[test]
fn a_taken_port_is_named_after_a_minute() {
    let mut evidence = at_rest().with_disk(history(ME, &[ME, PEER], &[]));
    evidence.local.obstacle = Some(Obstacle::PortTaken(2380));
    assert_eq!(exit(&first(Request::Start, &evidence.clone().after(30_000))), None);
    let plan = first(Request::Start, &evidence.after(61_000));
    assert!(plan.because.short().contains("port 2380"), "{}", plan.because.short());
}

#[test]
fn a_node_whose_machine_is_being_deleted_is_not_added() {
    let mut joiner = at_rest().with_disk(DataDir::Blank);
    joiner.peer_etcd = Fact::Known(etcd(PEER, Some(PEER), &[PEER], &[]));
    joiner.local.machine_is_deleted = Fact::Known(true);
    let plan = first(Request::Start, &joiner);
    assert!(matches!(plan.because, Reason::Refused { refusal: Refusal::MachineIsDeleted, .. }), "{plan:?}");

    // The API that would answer needs etcd itself.
    joiner.local.machine_is_deleted = Fact::Unknown("the API answers 403".to_owned());
    let plan = first(Request::Start, &joiner);
    assert!(matches!(plan.effects.first(), Some(Effect::AddLearner { .. })), "{plan:?}");

    let mut voter = at_rest().running(Fact::Known(etcd(ME, Some(ME), &[ME], &[]))).seen_voting();
    voter.local.machine_is_deleted = Fact::Known(true);
    let notified = voter.clone().notified(Moment::Pre, Operation::Start, &["node2"], &[]);
    assert!(first(Request::Notify, &notified).effects.is_empty());
    voter.own_etcd = Fact::Known(etcd(ME, Some(ME), &[ME], &[PEER]));
    let plan = first(Request::Monitor, &voter);
    assert!(matches!(plan.effects.as_slice(), [Effect::RemoveMember { id: PEER, .. }]), "{plan:?}");
}

#[test]
fn a_learner_of_a_node_that_left_the_map_is_removed() {
    let mut voter = at_rest().running(Fact::Known(etcd(ME, Some(ME), &[ME], &[PEER]))).seen_voting();
    assert!(
        !first(Request::Monitor, &voter).effects.iter().any(|effect| matches!(effect, Effect::RemoveMember { .. }))
    );
    voter.peer = None;
    let plan = first(Request::Monitor, &voter);
    assert!(matches!(plan.effects.as_slice(), [Effect::RemoveMember { id: PEER, .. }]), "{plan:?}");
    voter.peer = Some(address("node10"));
    assert!(matches!(first(Request::Monitor, &voter).effects.as_slice(), [Effect::RemoveMember { id: PEER, .. }]));
}

/// Asserts that a failed check fails the monitor after a wait, but not if etcd needs a recovery.
#[test]
fn a_check_that_was_asked_for_fails_the_monitor() {
    let mut evidence = serving();
    evidence.local.failed_check = Some("no confirmed read".to_owned());
    let plan = first(Request::Monitor, &evidence.clone().after(11_000));
    assert_eq!((exit(&plan), plan.effects.len()), (None, 0), "its leader may have died a moment ago: {plan:?}");
    assert_eq!(out_of_time(Request::Monitor, &evidence, &plan), None, "there is no time for another look");
    assert_eq!(exit(&first(Request::Monitor, &evidence.clone().after(12_000))), Some(Exit::Retriable));
    let short = Evidence { budget_ms: 8_000, ..evidence.clone() };
    assert_eq!(exit(&first(Request::Monitor, &short.after(6_000))), Some(Exit::Retriable), "a monitor of 10 s");
    let gone = serving().peer_is(PeerNode::Down, PeerAgent::NoHistory);
    let mut leaderless = gone.running(Fact::Known(etcd(ME, None, &[ME, PEER], &[])));
    leaderless.local.failed_check = Some("monitor_cmd: unhealthy".to_owned());
    let plan_of_a_survivor = first(Request::Monitor, &leaderless);
    assert!(matches!(plan_of_a_survivor.effects.first(), Some(Effect::WriteNote(_))), "{plan_of_a_survivor:?}");
    evidence.local.failed_check = None;
    assert_eq!(out_of_time(Request::Monitor, &evidence, &plan), Some(Exit::Success), "another plan that waits");
}

/// Asserts that `force_new_cluster` forces no new cluster if the peer publishes itself as the sole voter. The peer's etcd has removed
/// this member without a forced new cluster, so it has writes that exist nowhere else.
#[test]
fn force_new_cluster_is_no_word_against_a_peer_that_says_it_is_the_sole_voter() {
    let stopped = Evidence { disk: Fact::Known(history(ME, &[ME, PEER], &[])), ..at_rest().at_the_barrier() };
    let told = forced_on_me(stopped).peer_is(PeerNode::Online, PeerAgent::Starting);
    let forces = |voters: &[u64]| {
        let told = told.clone().with_peer_record(history(PEER, voters, &[]));
        let plan = decide(Request::Start, &told, &barrier());
        plan.effects.contains(&Effect::RunContainer(RunMode::ForceNewCluster))
    };
    assert!(forces(&[ME, PEER]), "nothing else stands in the way");
    assert!(!forces(&[PEER]));
}
