//! Running standalone in the post-stop notification, with `monitor` as backstop.

use super::world::*;
use crate::base::Fact;
use crate::decide::Progress;
use crate::decide::evidence::*;
use crate::decide::plan::{Effect, Exit, Phase, Request, RunMode};
use crate::decide::reason::{Reason, Refusal};

/// Returns a voter of two that has just lost its peer, and so its leader.
pub(super) fn leaderless() -> Evidence {
    at_rest().running(Fact::Known(etcd(ME, None, &[ME, PEER], &[]))).seen_voting()
}

pub(super) fn post_stop(evidence: Evidence) -> Evidence {
    evidence.notified(Moment::Post, Operation::Stop, &[], &["node2"])
}

pub(super) fn recovers(request: Request, evidence: &Evidence) -> bool {
    matches!(first(request, evidence).effects.first(), Some(Effect::WriteNote(_)))
}

#[test]
fn the_survivor_recovers_in_the_notification_that_follows_fencing() {
    let evidence = post_stop(leaderless().peer_is(PeerNode::Down, PeerAgent::NoHistory));
    let plan = first(Request::Notify, &evidence);
    assert!(matches!(plan.effects[0], Effect::WriteNote(_)));
    let announced = progress(plan);
    let seen = evidence.announced();
    let plan = decide(Request::Notify, &seen, &announced);
    let [Effect::StopContainer { .. }, Effect::PublishRecord(last_word)] = &plan.effects[..] else {
        panic!("{plan:?}")
    };
    assert_eq!((last_word.claims, last_word.nonce), (true, Some(seen.nonce)));
    let stopped = progress(plan.clone());
    let mut seen = Evidence { disk: Fact::Known(history(ME, &[ME, PEER], &[])), ..seen.at_the_barrier() };
    seen.container = Fact::Known(Container::default());
    let plan = decide(Request::Notify, &seen, &stopped);
    assert_eq!(plan.effects, [Effect::AdvanceCommit, Effect::RunContainer(RunMode::ForceNewCluster)]);
    // The data has the last word once etcd has ended.
    seen.disk = Fact::Known(history(ME, &[PEER], &[ME]));
    assert!(is_harmless(&decide(Request::Notify, &seen, &stopped)));
}

#[test]
fn a_clean_shutdown_confirms_as_fencing_does() {
    assert!(recovers(Request::Monitor, &leaderless().peer_is(PeerNode::Down, PeerAgent::Stopped)));
}

#[test]
fn monitor_is_the_backstop() {
    let down = leaderless().peer_is(PeerNode::Down, PeerAgent::NoHistory);
    assert!(recovers(Request::Monitor, &down));
    let silent = Evidence { own_etcd: Fact::Unknown("no answer".to_owned()), ..down };
    assert!(recovers(Request::Monitor, &silent), "an etcd that was restarted has answered nobody yet");
}

#[test]
fn nobody_forces_before_the_peer_is_confirmed() {
    let waits = vec![
        ("lost, not fenced", leaderless().peer_is(PeerNode::Lost, PeerAgent::Active)),
        ("asked to shut down, and runs", leaderless().peer_is(PeerNode::Down, PeerAgent::Active)),
        ("asked to shut down, and starts", leaderless().peer_is(PeerNode::Down, PeerAgent::Starting)),
        ("asked to shut down, and is being stopped", leaderless().peer_is(PeerNode::Down, PeerAgent::Stopping)),
        ("active", leaderless().peer_is(PeerNode::Online, PeerAgent::Active)),
        ("starting", leaderless().peer_is(PeerNode::Online, PeerAgent::Starting)),
        ("stopping", leaderless().peer_is(PeerNode::Online, PeerAgent::Stopping)),
        ("stopped without a word", leaderless().peer_is(PeerNode::Online, PeerAgent::Stopped)),
        ("unread", Evidence { cib: Fact::Unknown("no answer".to_owned()), ..leaderless() }),
    ];
    for (name, evidence) in waits {
        for request in [Request::Monitor, Request::Notify] {
            assert!(!recovers(request, &post_stop(evidence.clone())), "{name}");
        }
    }
}

/// Asserts that [`BootState::voter`] proves nothing if the CIB lacks the claim to run standalone. In this case Pacemaker ended
/// and came back in the same boot. etcd and `/run` are unchanged, and Pacemaker's attributes are gone.
#[test]
fn a_memory_without_its_claim_proves_nothing() {
    let fenced = leaderless().peer_is(PeerNode::Down, PeerAgent::NoHistory);
    let unclaimed = |evidence: &Evidence| evidence.clone().cib_with(|cib| cib.own_record = None);
    for evidence in [fenced.clone(), Evidence { own_etcd: Fact::Unknown("no answer".to_owned()), ..fenced.clone() }] {
        assert!(recovers(Request::Monitor, &evidence));
        assert!(!recovers(Request::Monitor, &unclaimed(&evidence)));
        let refused = first(Request::Monitor, &unclaimed(&evidence)).because;
        let is_named = matches!(&refused, Reason::Refused { refusal: Refusal::NoProofThatPeerDidNotGoOn { .. }, .. });
        assert!(is_named, "{refused:?}");
    }
    // What a stop or a start publishes then claims nothing either.
    let stopped = unclaimed(&Evidence { container: Fact::Absent, own_etcd: Fact::Absent, ..fenced });
    let stopped = Evidence { disk: Fact::Known(history(ME, &[ME, PEER], &[])), ..stopped };
    assert_eq!(stopped.published_state().map(|record| record.claims), Some(false));
    let kept = |effect: &Effect| matches!(effect, Effect::Remember(memory) if memory.voter.is_some());
    assert!(!first(Request::Stop, &stopped).effects.iter().any(kept));
}

#[test]
fn an_announcement_at_an_operators_word_does_not_revive_a_memory_without_its_claim() {
    let mut confirmed =
        leaderless().peer_is(PeerNode::Down, PeerAgent::NoHistory).cib_with(|cib| cib.own_record = None);
    confirmed.confirmation = Fact::Known(word(false));
    let effects = first(Request::Monitor, &confirmed).effects;
    assert!(matches!(&effects[0], Effect::Remember(memory) if memory.voter.is_none()), "{effects:?}");
    assert!(matches!(&effects[1], Effect::WriteNote(note) if note.gave_up), "{effects:?}");
}

#[test]
fn a_stopped_peer_is_passed_over_only_once_it_gave_up_its_claim() {
    let stopped = leaderless().with_peer_record(history(PEER, &[ME, PEER], &[]));
    assert!(recovers(Request::Monitor, &stopped));
    let claiming = stopped.cib_with(|cib| {
        if let Some(record) = &mut cib.peer_record {
            record.claims = true;
        }
    });
    assert!(!recovers(Request::Monitor, &claiming));
}

#[test]
fn a_peer_that_is_only_restarted_is_waited_for() {
    let stopped = leaderless().with_peer_record(history(PEER, &[ME, PEER], &[])).notified(
        Moment::Post,
        Operation::Stop,
        &["node2"],
        &["node2"],
    );
    let claims = |claims| {
        let record = PublishedState { claims, ..record(history(PEER, &[ME, PEER], &[])) };
        stopped.clone().cib_with(|cib| cib.peer_record = Some(record))
    };
    assert!(!recovers(Request::Notify, &claims(true)));
    // Its starts were in vain, and it has given up its claim: it starts again only once this notification is handled.
    assert!(recovers(Request::Notify, &claims(false)));
    let starting = claims(false).notified(Moment::Pre, Operation::Start, &["node2"], &[]);
    assert!(!recovers(Request::Notify, &starting));
}

#[test]
fn the_notifications_before_a_stop_prove_nothing() {
    let down = leaderless().peer_is(PeerNode::Down, PeerAgent::NoHistory);
    for (moment, operation) in
        [(Moment::Pre, Operation::Stop), (Moment::Pre, Operation::Demote), (Moment::Post, Operation::Demote)]
    {
        let plan = first(Request::Notify, &down.clone().notified(moment, operation, &[], &["node2"]));
        assert!(plan.effects.is_empty(), "{operation:?}");
    }
}

#[test]
fn a_learner_and_a_member_that_this_boot_never_saw_vote_do_not_recover() {
    let down = leaderless().peer_is(PeerNode::Down, PeerAgent::NoHistory);
    let learner = Evidence { own_etcd: Fact::Known(etcd(ME, None, &[PEER], &[ME])), ..down.clone() };
    let unseen = Evidence { boot_memory: Fact::Absent, ..down.clone() };
    let forked = down.cib_with(|cib| cib.lineage = forks(1, "node2"));
    for (name, evidence) in [("learner", learner), ("unseen", unseen), ("the peer ran standalone", forked)] {
        assert!(!recovers(Request::Monitor, &evidence), "{name}");
        assert!(!recovers(Request::Notify, &post_stop(evidence)), "{name}");
    }
}

#[test]
fn a_sole_voter_that_is_slow_or_has_just_started_is_not_forced_once_more() {
    let mut sole = leaderless().peer_is(PeerNode::Down, PeerAgent::NoHistory);
    if let Fact::Known(memory) = &mut sole.boot_memory {
        memory.voter.as_mut().unwrap().sole = true;
    }
    let silent = Evidence { own_etcd: Fact::Unknown("no answer".to_owned()), ..sole.clone() };
    assert!(!recovers(Request::Monitor, &silent));
    let starting = Evidence { own_etcd: Fact::Known(etcd(ME, None, &[ME], &[])), ..sole };
    assert!(!recovers(Request::Monitor, &starting));
}

#[test]
fn a_voter_that_waits_for_an_operator_says_so_and_goes_on_at_his_word() {
    let down = leaderless().peer_is(PeerNode::Down, PeerAgent::NoHistory);
    let mut unproven = Evidence { boot_memory: Fact::Absent, ..down };
    for own in [Fact::Known(etcd(ME, None, &[ME, PEER], &[])), Fact::Unknown("no answer".to_owned())] {
        unproven.own_etcd = own;
        let plan = first(Request::Monitor, &unproven);
        assert_eq!(exit(&plan), Some(Exit::Retriable));
        assert!(plan.because.short().contains("tandem confirm-recovery"), "{}", plan.because.short());
        let position = LogPosition { term: 3, index: 1000 };
        let word = Confirmation {
            boot_id: "boot1".to_owned(),
            lost_node: "node2".to_owned(),
            cluster_id: CLUSTER,
            member_id: ME,
            position,
            accept_loss: false,
        };
        let confirmed = Evidence { confirmation: Fact::Known(word.clone()), ..unproven.clone() };
        assert!(recovers(Request::Monitor, &confirmed));
        // The word is about data, which is read once etcd is gone.
        let stopped =
            Evidence { container: Fact::Absent, disk: Fact::Known(history(ME, &[ME, PEER], &[])), ..confirmed };
        let stopped = stopped.at_the_barrier();
        assert!(!is_harmless(&decide(Request::Monitor, &stopped, &barrier())));
        let other = Confirmation { position: LogPosition { term: 3, index: 7 }, ..word };
        let other = Evidence { confirmation: Fact::Known(other), ..stopped };
        let plan = decide(Request::Monitor, &other, &barrier());
        // Once: as long as it stood, it would have the next etcd announced and stopped again.
        assert_eq!((exit(&plan), &plan.effects[..]), (Some(Exit::Retriable), &[Effect::ConsumeConfirmation][..]));
        assert!(plan.because.short().contains("what was confirmed is about older data"), "{}", plan.because);
    }
}

#[test]
fn a_recovery_does_not_forget_that_pacemaker_promoted_us() {
    let mut recovered = at_rest().running(Fact::Known(etcd(ME, Some(ME), &[ME], &[]))).seen_voting();
    recovered.promotable = true;
    if let Fact::Known(memory) = &mut recovered.boot_memory {
        memory.promoted = true;
    }
    let progress = Progress::enter(Phase::Started(RunMode::ForceNewCluster), 0);
    let recovered = post_stop(recovered);
    let effects = decide(Request::Notify, &recovered, &progress).effects;
    let remembered = effects.iter().find_map(|effect| match effect {
        Effect::Remember(memory) => Some(memory.promoted),
        _ => None,
    });
    assert_eq!(remembered, Some(true));
}

#[test]
fn a_recovery_ends_where_the_peer_comes_back_meanwhile() {
    let announced = Progress::enter(Phase::Announced, 0);
    let seen = leaderless().peer_is(PeerNode::Down, PeerAgent::NoHistory).announced();
    assert!(!is_harmless(&decide(Request::Monitor, &seen, &announced)), "nothing stands in the way");
    let back = seen.clone().peer_is(PeerNode::Online, PeerAgent::Active);
    assert!(is_harmless(&decide(Request::Monitor, &back, &announced)));
    let led = Evidence { own_etcd: Fact::Known(etcd(ME, Some(PEER), &[ME, PEER], &[])), ..seen.clone() };
    assert!(is_harmless(&decide(Request::Monitor, &led, &announced)));
    // Once etcd is stopped, a plain start is what is always safe.
    let stopped = Evidence { disk: Fact::Known(history(ME, &[ME, PEER], &[])), ..back.at_the_barrier() };
    let plan = decide(Request::Monitor, &stopped, &barrier());
    assert_eq!(plan.effects, [Effect::RunContainer(RunMode::Normally)]);
}

#[test]
fn nothing_is_forced_before_the_last_word_comes_back_from_the_cib() {
    let down = at_rest().seen_voting().peer_is(PeerNode::Down, PeerAgent::NoHistory);
    let back = Evidence { disk: Fact::Known(history(ME, &[ME, PEER], &[])), ..down.at_the_barrier() };
    assert!(!is_harmless(&decide(Request::Monitor, &back, &barrier())), "nothing stands in the way");
    // What is seen is the announcement, or the last word of an earlier round.
    for nonce in [None, Some(back.nonce + 1)] {
        let stale = back.clone().cib_with(|cib| cib.own_record.iter_mut().for_each(|record| record.nonce = nonce));
        let plan = decide(Request::Monitor, &stale, &barrier());
        assert_eq!((plan.effects.len(), exit(&plan)), (0, None));
        let plan = decide(Request::Monitor, &stale.after(16_000), &barrier());
        assert_eq!((plan.effects.len(), exit(&plan)), (0, Some(Exit::Retriable)));
    }
    // A node that announces something in the meantime is not overlooked.
    let other = back.cib_with(|cib| cib.standalone_node = Some("node2".to_owned()));
    assert!(is_harmless(&decide(Request::Monitor, &other, &barrier())));
}

#[test]
fn an_announcement_is_made_once_but_for_an_operators_word_which_counts_a_fork_of_its_own() {
    let noted = |evidence: &Evidence| {
        let effects = first(Request::Monitor, evidence).effects;
        effects.into_iter().find_map(|effect| match effect {
            Effect::WriteNote(note) => Some(note.lineage),
            _ => None,
        })
    };
    let proven = leaderless().peer_is(PeerNode::Down, PeerAgent::NoHistory).announced();
    assert_eq!(noted(&proven), Some(forks(1, "node1")));
    let confirmed = Evidence { confirmation: Fact::Known(word(false)), ..proven };
    assert_eq!(noted(&confirmed), Some(forks(2, "node1")));
}

/// Asserts that a recovery publishes only what the CIB lacks if it begins again. Each call of a Pacemaker tool takes seconds on a slow
/// machine.
#[test]
fn of_an_announcement_only_the_record_is_published_again_where_the_cib_has_the_rest() {
    let published = |evidence: &Evidence| {
        let effects = first(Request::Monitor, evidence).effects;
        let says = |effect: &&Effect| !matches!(effect, Effect::WriteNote(_));
        effects
            .iter()
            .filter(says)
            .map(|effect| match effect {
                Effect::PublishLineage(_) => "lineage",
                Effect::SetStandalone(Some(_)) => "standalone",
                Effect::PublishRecord(_) => "record",
                _ => "another",
            })
            .collect::<Vec<_>>()
    };
    let fenced = leaderless().peer_is(PeerNode::Down, PeerAgent::NoHistory);
    assert_eq!(published(&fenced), ["lineage", "standalone", "record"]);
    let announced = fenced.announced();
    assert_eq!(published(&announced), ["record"]);
    let unnamed = announced.clone().cib_with(|cib| cib.standalone_node = None);
    assert_eq!(published(&unnamed), ["standalone", "record"]);
    let untold = announced.cib_with(|cib| cib.lineage = forks(0, "node1"));
    assert_eq!(published(&untold), ["lineage", "record"]);
}

#[test]
fn a_stopped_peer_that_is_a_sole_voter_is_never_passed_over() {
    let stopped = leaderless().with_peer_record(history(PEER, &[ME, PEER], &[]));
    assert!(recovers(Request::Monitor, &stopped));
    assert!(!recovers(Request::Monitor, &stopped.with_peer_record(history(PEER, &[PEER], &[]))));
}

#[test]
fn a_peer_of_another_kind_that_said_it_is_alone_may_have_gone_on() {
    let fenced = leaderless().peer_is(PeerNode::Down, PeerAgent::NoHistory);
    assert!(recovers(Request::Monitor, &fenced));
    let alone = fenced.clone().cib_with(|cib| cib.standalone_node = Some("node2".to_owned()));
    assert!(!recovers(Request::Monitor, &alone));
    assert!(!recovers(Request::Notify, &post_stop(alone)));
    let own_announcement = fenced.cib_with(|cib| cib.standalone_node = Some("node1".to_owned()));
    assert!(recovers(Request::Monitor, &own_announcement));
}

#[test]
fn a_peer_that_lost_its_disk_while_it_ran_is_not_waited_for() {
    for (node, agent) in [(PeerNode::Online, PeerAgent::Starting), (PeerNode::Online, PeerAgent::Stopped)] {
        for lost in [DataDir::Blank, DataDir::Broken { why: "no wal".to_owned() }] {
            let starting = leaderless().with_peer_record(lost).peer_is(node, agent);
            assert!(recovers(Request::Monitor, &starting), "{agent:?}");
        }
    }
    let starting = || leaderless().peer_is(PeerNode::Online, PeerAgent::Starting);
    let whole = starting().with_peer_record(history(PEER, &[ME, PEER], &[]));
    let blank = starting().with_peer_record(DataDir::Blank);
    let runs = Evidence { peer_etcd: Fact::Unknown("no answer".to_owned()), ..blank.clone() };
    let claims = blank.cib_with(|cib| {
        if let Some(record) = &mut cib.peer_record {
            record.claims = true;
        }
    });
    for (name, evidence) in [("whole", whole), ("runs", runs), ("claims", claims), ("silent", starting())] {
        assert!(!recovers(Request::Monitor, &evidence), "{name}");
    }
}

#[test]
fn after_a_reboot_of_both_too_a_peer_without_data_is_not_waited_for() {
    let pair = || history(ME, &[ME, PEER], &[]);
    let rebooted = |own: DataDir, lost: DataDir| {
        let own_etcd = Fact::Unknown("no answer without a leader".to_owned());
        let published = at_rest().running(own_etcd).with_peer_record(lost).cib_with(|cib| {
            cib.own_record = Some(record(own));
        });
        published.peer_is(PeerNode::Online, PeerAgent::Starting)
    };
    assert!(recovers(Request::Monitor, &rebooted(pair(), DataDir::Blank)));
    for (name, evidence) in [
        ("the peer's data is whole", rebooted(pair(), history(PEER, &[ME, PEER], &[]))),
        ("a learner", rebooted(history(ME, &[PEER], &[ME]), DataDir::Blank)),
        ("a fork is missing", rebooted(pair(), DataDir::Blank).cib_with(|cib| cib.lineage = forks(1, "node2"))),
        ("the peer is active", rebooted(pair(), DataDir::Blank).peer_is(PeerNode::Online, PeerAgent::Active)),
    ] {
        assert!(!recovers(Request::Monitor, &evidence), "{name}");
    }
}
