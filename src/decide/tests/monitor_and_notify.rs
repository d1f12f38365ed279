//! Recovery in the post-stop notification with `monitor` as backstop, learners, and honest answers.

use super::world::*;
use crate::decide::fact::Fact;
use crate::decide::plan::{Effect, Exit, Phase, Request, RunMode, Via};
use crate::decide::reason::{Reason, Refusal};
use crate::decide::snapshot::*;
use crate::decide::{Progress, decide};

/// A voter of two whose peer was just lost: no leader.
fn leaderless() -> Snapshot {
    at_rest().running(Fact::Known(etcd(ME, None, &[ME, PEER], &[]))).seen_voting()
}

fn post_stop(snapshot: Snapshot) -> Snapshot {
    snapshot.notified(Moment::Post, "stop", &[], &["node2"])
}

fn recovers(request: Request, snapshot: &Snapshot) -> bool {
    matches!(first(request, snapshot).effects.first(), Some(Effect::WriteNote(_)))
}

#[test]
fn the_survivor_recovers_in_the_notification_that_follows_fencing() {
    let snapshot = post_stop(leaderless().peer_is(PeerNode::Down, PeerAgent::NoHistory));
    let plan = first(Request::Notify, &snapshot);
    assert!(matches!(plan.effects[0], Effect::WriteNote(_)));
    let announced = progress(plan);
    let seen = snapshot.announced();
    let plan = decide(Request::Notify, &seen, &announced);
    let [Effect::StopContainer { .. }, Effect::PublishRecord(last_word)] = &plan.effects[..] else {
        panic!("{plan:?}")
    };
    assert_eq!((last_word.claims, last_word.nonce), (true, Some(seen.nonce)));
    let stopped = progress(plan.clone());
    let mut seen = Snapshot { disk: Fact::Known(history(ME, &[ME, PEER], &[])), ..seen.at_the_barrier() };
    seen.container = Fact::Known(Container {
        running: false,
        exit: None,
        broke_down_at: None,
        found: None,
        forces_new_cluster: false,
    });
    let plan = decide(Request::Notify, &seen, &stopped);
    assert_eq!(plan.effects, [Effect::AdvanceCommit, Effect::RunContainer(RunMode::ForceNewCluster)]);
    // What the data says once etcd is gone has the last word.
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
    let silent = Snapshot { own_etcd: Fact::Unknown("no answer".to_owned()), ..down };
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
        ("unread", Snapshot { cib: Fact::Unknown("no answer".to_owned()), ..leaderless() }),
    ];
    for (name, snapshot) in waits {
        for request in [Request::Monitor, Request::Notify] {
            assert!(!recovers(request, &post_stop(snapshot.clone())), "{name}");
        }
    }
}

/// Pacemaker ended and came back in the same boot: etcd and `/run` live on, the attributes of its former life are gone.
#[test]
fn a_memory_without_its_claim_proves_nothing() {
    let fenced = leaderless().peer_is(PeerNode::Down, PeerAgent::NoHistory);
    let unclaimed = |snapshot: &Snapshot| snapshot.clone().cib_with(|cib| cib.own_record = None);
    for snapshot in [fenced.clone(), Snapshot { own_etcd: Fact::Unknown("no answer".to_owned()), ..fenced.clone() }] {
        assert!(recovers(Request::Monitor, &snapshot));
        assert!(!recovers(Request::Monitor, &unclaimed(&snapshot)));
        let refused = first(Request::Monitor, &unclaimed(&snapshot)).because;
        let is_named = matches!(&refused, Reason::Refused { refusal: Refusal::NoProofThatPeerDidNotGoOn { .. }, .. });
        assert!(is_named, "{refused:?}");
    }
    // What a stop or a start publishes then claims nothing either.
    let stopped = unclaimed(&Snapshot { container: Fact::Absent, own_etcd: Fact::Absent, ..fenced });
    let stopped = Snapshot { disk: Fact::Known(history(ME, &[ME, PEER], &[])), ..stopped };
    assert_eq!(stopped.record().map(|record| record.claims), Some(false));
    let kept = |effect: &Effect| matches!(effect, Effect::Remember(memory) if memory.voter.is_some());
    assert!(!first(Request::Stop, &stopped).effects.iter().any(kept));
}

#[test]
fn a_claim_that_went_with_pacemakers_former_life_is_published_again_once_there_is_a_leader() {
    let serving = Snapshot { own_etcd: Fact::Known(etcd(ME, Some(ME), &[ME, PEER], &[])), ..leaderless() };
    let effects = first(Request::Monitor, &serving.clone().cib_with(|cib| cib.own_record = None)).effects;
    assert!(effects.iter().any(|effect| matches!(effect, Effect::PublishRecord(record) if record.claims)));
    let effects = first(Request::Monitor, &serving).effects;
    assert!(!effects.iter().any(|effect| matches!(effect, Effect::PublishRecord(_))));
}

#[test]
fn an_announcement_at_an_operators_word_does_not_revive_a_memory_without_its_claim() {
    let mut confirmed =
        leaderless().peer_is(PeerNode::Down, PeerAgent::NoHistory).cib_with(|cib| cib.own_record = None);
    confirmed.authorisation = Fact::Known(word(false));
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
        "stop",
        &["node2"],
        &["node2"],
    );
    let claims = |claims| {
        let record = Record { claims, ..record(history(PEER, &[ME, PEER], &[])) };
        stopped.clone().cib_with(|cib| cib.peer_record = Some(record))
    };
    assert!(!recovers(Request::Notify, &claims(true)));
    // Its starts were in vain, and it has given up its claim: it starts again only once this notification is handled.
    assert!(recovers(Request::Notify, &claims(false)));
    let starting = claims(false).notified(Moment::Pre, "start", &["node2"], &[]);
    assert!(!recovers(Request::Notify, &starting));
}

#[test]
fn the_notifications_before_a_stop_prove_nothing() {
    let down = leaderless().peer_is(PeerNode::Down, PeerAgent::NoHistory);
    for (moment, operation) in [(Moment::Pre, "stop"), (Moment::Pre, "demote"), (Moment::Post, "demote")] {
        let plan = first(Request::Notify, &down.clone().notified(moment, operation, &[], &["node2"]));
        assert!(plan.effects.is_empty(), "{operation}");
    }
}

#[test]
fn a_learner_and_a_member_that_this_boot_never_saw_vote_do_not_recover() {
    let down = leaderless().peer_is(PeerNode::Down, PeerAgent::NoHistory);
    let learner = Snapshot { own_etcd: Fact::Known(etcd(ME, None, &[PEER], &[ME])), ..down.clone() };
    let unseen = Snapshot { boot_memory: Fact::Absent, ..down.clone() };
    let forked = down.cib_with(|cib| cib.lineage = forks(1, "node2"));
    for (name, snapshot) in [("learner", learner), ("unseen", unseen), ("the peer went on alone", forked)] {
        assert!(!recovers(Request::Monitor, &snapshot), "{name}");
        assert!(!recovers(Request::Notify, &post_stop(snapshot)), "{name}");
    }
}

#[test]
fn monitor_answers_not_running_only_when_it_is_sure() {
    assert_eq!(exit(&first(Request::Monitor, &at_rest())), Some(Exit::NotRunning));
    let unknown = Snapshot { container: Fact::Unknown("podman hangs".to_owned()), ..at_rest() };
    assert_eq!(exit(&first(Request::Monitor, &unknown)), Some(Exit::Retriable));
    assert_eq!(exit(&first(Request::Probe, &unknown)), Some(Exit::Retriable));
}

#[test]
fn an_etcd_that_served_and_fell_silent_is_reported_within_its_time() {
    let silent = Snapshot { own_etcd: Fact::Unknown("no answer".to_owned()), ..leaderless() };
    let silent = silent.peer_is(PeerNode::Online, PeerAgent::Active);
    assert_eq!(exit(&first(Request::Monitor, &silent)), None);
    assert_eq!(exit(&first(Request::Monitor, &silent.after(13_000))), Some(Exit::Retriable));
}

#[test]
fn a_probe_publishes_what_a_starting_peer_would_wait_for() {
    let snapshot = at_rest().with_disk(history(ME, &[ME, PEER], &[]));
    let plan = first(Request::Probe, &snapshot);
    assert!(matches!(plan.effects[..], [Effect::PublishRecord(_)]));
    assert_eq!(exit(&plan), Some(Exit::NotRunning));
}

#[test]
fn a_returning_peer_is_listed_before_it_starts_and_never_twice() {
    let sole = at_rest().running(Fact::Known(etcd(ME, Some(ME), &[ME], &[]))).seen_voting();
    let starting = sole.notified(Moment::Pre, "start", &["node2"], &[]);
    let plan = first(Request::Notify, &starting);
    assert_eq!(plan.effects[0], Effect::AddLearner { peer_url: "https://node2:2380".to_owned(), via: Via::Own });
    let listed = Snapshot { own_etcd: Fact::Known(etcd(ME, Some(ME), &[ME], &[PEER])), ..starting };
    assert!(first(Request::Notify, &listed).effects.is_empty());
}

#[test]
fn a_learner_is_promoted_after_two_polls_with_a_small_absolute_lag() {
    let learner = |index| {
        let mut snapshot = at_rest().running(Fact::Known(etcd(ME, Some(ME), &[ME], &[PEER]))).seen_voting();
        let answer = Etcd { index, ..etcd(PEER, Some(ME), &[ME], &[PEER]) };
        snapshot.peer_etcd = Fact::Known(answer);
        snapshot
    };
    let far = first(Request::Monitor, &learner(899));
    assert!(far.effects.is_empty(), "101 entries behind");
    let near = first(Request::Monitor, &learner(950));
    assert!(near.effects.is_empty(), "one poll is not enough");
    let after_far = decide(Request::Monitor, &learner(899), &progress(near.clone()));
    assert_eq!(progress(after_far).polls_caught_up, 0);
    let second = decide(Request::Monitor, &learner(950), &progress(near));
    assert_eq!(second.effects, [Effect::PromoteMember { id: PEER, via: Via::Own }]);
}

#[test]
fn a_stranger_that_answers_in_the_learners_place_is_not_promoted() {
    let mut snapshot = at_rest().running(Fact::Known(etcd(ME, Some(ME), &[ME], &[PEER]))).seen_voting();
    snapshot.peer_etcd = Fact::Known(Etcd { member_id: 9, ..etcd(PEER, Some(ME), &[ME], &[PEER]) });
    let progress = Progress { polls_caught_up: 1, ..Progress::default() };
    let effects = decide(Request::Monitor, &snapshot, &progress).effects;
    assert!(!effects.iter().any(|effect| matches!(effect, Effect::PromoteMember { .. })));
}

#[test]
fn promoted_is_what_pacemaker_promoted() {
    let voter = || at_rest().running(Fact::Known(etcd(ME, Some(ME), &[ME, PEER], &[]))).seen_voting();
    let promoted = |promoted, promotable| {
        let mut snapshot = voter();
        snapshot.promotable = promotable;
        if let Fact::Known(memory) = &mut snapshot.boot_memory {
            memory.promoted = promoted;
        }
        exit(&first(Request::Monitor, &snapshot))
    };
    assert_eq!(promoted(true, true), Some(Exit::Promoted));
    assert_eq!(promoted(false, true), Some(Exit::Success));
    assert_eq!(promoted(true, false), Some(Exit::Success));
}

#[test]
fn two_voters_take_back_what_was_said_of_one() {
    let mut snapshot = at_rest().running(Fact::Known(etcd(ME, Some(ME), &[ME, PEER], &[]))).seen_voting();
    snapshot = snapshot.cib_with(|cib| {
        cib.standalone_node = Some("node1".to_owned());
        cib.learner_node = Some("node2".to_owned());
    });
    let effects = first(Request::Monitor, &snapshot).effects;
    assert!(effects.contains(&Effect::SetStandalone(None)) && effects.contains(&Effect::SetLearner(None)));
}

#[test]
fn a_healthy_monitor_writes_nothing() {
    let snapshot = at_rest().running(Fact::Known(etcd(ME, Some(ME), &[ME, PEER], &[]))).seen_voting();
    assert_eq!(first(Request::Monitor, &snapshot).effects, []);
}

#[test]
fn a_sole_voter_that_is_slow_or_has_just_started_is_not_forced_once_more() {
    let mut sole = leaderless().peer_is(PeerNode::Down, PeerAgent::NoHistory);
    if let Fact::Known(memory) = &mut sole.boot_memory {
        memory.voter.as_mut().unwrap().sole = true;
    }
    let silent = Snapshot { own_etcd: Fact::Unknown("no answer".to_owned()), ..sole.clone() };
    assert!(!recovers(Request::Monitor, &silent));
    let starting = Snapshot { own_etcd: Fact::Known(etcd(ME, None, &[ME], &[])), ..sole };
    assert!(!recovers(Request::Monitor, &starting));
}

#[test]
fn a_voter_that_waits_for_an_operator_says_so_and_goes_on_at_his_word() {
    let down = leaderless().peer_is(PeerNode::Down, PeerAgent::NoHistory);
    let mut unproven = Snapshot { boot_memory: Fact::Absent, ..down };
    for own in [Fact::Known(etcd(ME, None, &[ME, PEER], &[])), Fact::Unknown("no answer".to_owned())] {
        unproven.own_etcd = own;
        let plan = first(Request::Monitor, &unproven);
        assert_eq!(exit(&plan), Some(Exit::Retriable));
        assert!(plan.because.short().contains("tandem confirm-recovery"), "{}", plan.because.short());
        let position = Position { term: 3, index: 1000 };
        let word = Authorisation {
            boot_id: "boot1".to_owned(),
            lost_node: "node2".to_owned(),
            cluster_id: CLUSTER,
            member_id: ME,
            position,
            accept_loss: false,
        };
        let authorised = Snapshot { authorisation: Fact::Known(word.clone()), ..unproven.clone() };
        assert!(recovers(Request::Monitor, &authorised));
        // The word is about data, which is read once etcd is gone.
        let stopped =
            Snapshot { container: Fact::Absent, disk: Fact::Known(history(ME, &[ME, PEER], &[])), ..authorised };
        let stopped = stopped.at_the_barrier();
        assert!(!is_harmless(&decide(Request::Monitor, &stopped, &barrier())));
        let other = Authorisation { position: Position { term: 3, index: 7 }, ..word };
        let other = Snapshot { authorisation: Fact::Known(other), ..stopped };
        let plan = decide(Request::Monitor, &other, &barrier());
        // Once: as long as it stood, it would have the next etcd announced and stopped again.
        assert_eq!((exit(&plan), &plan.effects[..]), (Some(Exit::Retriable), &[Effect::ConsumeAuthorisation][..]));
        assert!(plan.because.short().contains("what was confirmed is about older data"), "{}", plan.because);
    }
}

#[test]
fn a_voter_with_a_leader_has_no_use_for_an_operators_word() {
    let mut serving = leaderless();
    serving.authorisation = Fact::Known(word(false));
    let takes_it_back =
        |snapshot: &Snapshot| first(Request::Monitor, snapshot).effects.contains(&Effect::ConsumeAuthorisation);
    assert!(!takes_it_back(&serving));
    serving.own_etcd = Fact::Known(etcd(ME, Some(PEER), &[ME, PEER], &[]));
    assert!(takes_it_back(&serving));
}

#[test]
fn what_cannot_be_written_down_does_not_make_a_serving_etcd_fail() {
    let serving = at_rest().running(Fact::Known(etcd(ME, Some(ME), &[ME, PEER], &[])));
    assert_eq!(crate::decide::after_failed_upkeep(&serving), Exit::Success);
    assert_eq!(crate::decide::after_failed_upkeep(&leaderless()), Exit::Success);
    let silent = Snapshot { own_etcd: Fact::Unknown("no answer".to_owned()), ..serving };
    assert_eq!(crate::decide::after_failed_upkeep(&silent), Exit::Retriable);
}

#[test]
fn a_voter_that_is_found_running_claims_before_it_remembers() {
    let found = at_rest().running(Fact::Known(etcd(ME, Some(ME), &[ME, PEER], &[])));
    for request in [Request::Start, Request::Monitor] {
        let effects = first(request, &found).effects;
        let claims = effects.iter().any(|effect| matches!(effect, Effect::PublishRecord(record) if record.claims));
        let remembers = effects.iter().any(|effect| matches!(effect, Effect::Remember(_)));
        assert!(claims && !remembers, "{request:?}");
    }
}

#[test]
fn a_voter_has_the_promotion_score_and_a_learner_has_none() {
    let score = |own: Etcd, seen: Option<u32>| {
        let mut snapshot = at_rest().running(Fact::Known(own)).seen_voting();
        snapshot.promotable = true;
        let snapshot = snapshot.cib_with(|cib| cib.own_promotion_score = seen);
        let effects = first(Request::Monitor, &snapshot).effects;
        effects.into_iter().find_map(|effect| match effect {
            Effect::SetPromotionScore(score) => Some(score),
            _ => None,
        })
    };
    let (voter, learner) = (etcd(ME, Some(ME), &[ME, PEER], &[]), etcd(ME, Some(PEER), &[PEER], &[ME]));
    assert_eq!(score(voter.clone(), None), Some(Some(1000)));
    assert_eq!(score(voter, Some(1000)), None, "a monitor writes only what differs");
    assert_eq!(score(learner.clone(), Some(1000)), Some(None));
    assert_eq!(score(learner, None), None);
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
    let led = Snapshot { own_etcd: Fact::Known(etcd(ME, Some(PEER), &[ME, PEER], &[])), ..seen.clone() };
    assert!(is_harmless(&decide(Request::Monitor, &led, &announced)));
    // Once etcd is stopped, a plain start is what is always safe.
    let stopped = Snapshot { disk: Fact::Known(history(ME, &[ME, PEER], &[])), ..back.at_the_barrier() };
    let plan = decide(Request::Monitor, &stopped, &barrier());
    assert_eq!(plan.effects, [Effect::RunContainer(RunMode::Normally)]);
}

#[test]
fn nothing_is_forced_before_the_last_word_comes_back_from_the_cib() {
    let down = at_rest().seen_voting().peer_is(PeerNode::Down, PeerAgent::NoHistory);
    let back = Snapshot { disk: Fact::Known(history(ME, &[ME, PEER], &[])), ..down.at_the_barrier() };
    assert!(!is_harmless(&decide(Request::Monitor, &back, &barrier())), "nothing stands in the way");
    // What is seen is the announcement, or the last word of an earlier round.
    for nonce in [None, Some(back.nonce + 1)] {
        let stale = back.clone().cib_with(|cib| cib.own_record.iter_mut().for_each(|record| record.nonce = nonce));
        let plan = decide(Request::Monitor, &stale, &barrier());
        assert_eq!((plan.effects.len(), exit(&plan)), (0, None));
        let plan = decide(Request::Monitor, &stale.after(16_000), &barrier());
        assert_eq!((plan.effects.len(), exit(&plan)), (0, Some(Exit::Retriable)));
    }
    // Whoever announces something in the meantime is not overlooked.
    let other = back.cib_with(|cib| cib.standalone_node = Some("node2".to_owned()));
    assert!(is_harmless(&decide(Request::Monitor, &other, &barrier())));
}

#[test]
fn an_announcement_is_made_once_but_for_an_operators_word_which_counts_a_fork_of_its_own() {
    let published = |snapshot: &Snapshot| {
        let effects = first(Request::Monitor, snapshot).effects;
        effects.into_iter().find_map(|effect| match effect {
            Effect::PublishLineage(lineage) => Some(lineage),
            _ => None,
        })
    };
    let proven = leaderless().peer_is(PeerNode::Down, PeerAgent::NoHistory).announced();
    assert_eq!(published(&proven), Some(forks(1, "node1")));
    let authorised = Snapshot { authorisation: Fact::Known(word(false)), ..proven };
    assert_eq!(published(&authorised), Some(forks(2, "node1")));
}

#[test]
fn two_voters_with_a_leader_have_one_history_and_one_count_of_its_forks() {
    let voter = at_rest().running(Fact::Known(etcd(ME, Some(PEER), &[ME, PEER], &[]))).seen_voting();
    let voter = voter.cib_with(|cib| cib.lineage = forks(2, "node2"));
    let adopted = Effect::WriteNote(Note { lineage: forks(2, "node2"), ..Note::default() });
    assert!(first(Request::Monitor, &voter).effects.contains(&adopted));
    let leaderless = Snapshot { own_etcd: Fact::Known(etcd(ME, None, &[ME, PEER], &[])), ..voter };
    assert!(!first(Request::Monitor, &leaderless).effects.contains(&adopted));
}

#[test]
fn a_fork_that_the_cib_has_lost_is_told_anew_by_who_knows_it() {
    let tells = Effect::PublishLineage(forks(2, "node1"));
    let note = Note { lineage: forks(2, "node1"), ..Note::default() };
    for voters in [&[ME, PEER][..], &[ME]] {
        let voter = at_rest().running(Fact::Known(etcd(ME, Some(ME), voters, &[]))).seen_voting();
        let voter = Snapshot { note: Fact::Known(note.clone()), ..voter };
        assert!(first(Request::Monitor, &voter).effects.contains(&tells));
        let known = voter.cib_with(|cib| cib.lineage = forks(2, "node1"));
        assert!(!first(Request::Monitor, &known).effects.contains(&tells));
    }
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
fn a_listed_learner_is_named_so_that_an_agent_of_another_kind_starts_it() {
    let mut listed = etcd(ME, Some(ME), &[ME], &[PEER]);
    listed.members[1].name.clear();
    let named = Effect::SetLearner(Some("node2".to_owned()));
    let serving = at_rest().running(Fact::Known(listed)).seen_voting();
    let monitored = first(Request::Monitor, &serving);
    assert!(monitored.effects.contains(&named), "{monitored:?}");
    let returns = serving.clone().notified(Moment::Pre, "start", &["node2"], &[]);
    assert_eq!(first(Request::Notify, &returns).effects, std::slice::from_ref(&named));
    let known = serving.cib_with(|cib| cib.learner_node = Some("node2".to_owned()));
    assert!(!first(Request::Monitor, &known).effects.contains(&named));
    let started = at_rest().running(Fact::Known(etcd(ME, Some(ME), &[ME], &[PEER]))).seen_voting();
    assert!(!first(Request::Monitor, &started).effects.contains(&named));
}

#[test]
fn a_learner_at_nobodys_address_makes_place_and_a_voter_there_is_not_touched() {
    let sole = |voters: &[u64], learners: &[u64]| {
        at_rest().running(Fact::Known(etcd(ME, Some(ME), voters, learners))).seen_voting()
    };
    let stranger = sole(&[ME], &[7]);
    let removed = [Effect::RemoveMember { id: 7, via: Via::Own }];
    assert_eq!(first(Request::Monitor, &stranger).effects, removed);
    let starting = stranger.notified(Moment::Pre, "start", &["node2"], &[]);
    assert_eq!(first(Request::Notify, &starting).effects, removed);
    let only_node = Snapshot { peer: None, ..sole(&[ME], &[PEER]) };
    assert_eq!(first(Request::Monitor, &only_node).effects, [Effect::RemoveMember { id: PEER, via: Via::Own }]);
    for (voters, learners) in [(&[ME, 7][..], &[][..]), (&[ME, PEER, 7], &[]), (&[ME], &[PEER])] {
        let effects = first(Request::Monitor, &sole(voters, learners)).effects;
        assert!(!effects.iter().any(|effect| matches!(effect, Effect::RemoveMember { .. })), "{voters:?} {learners:?}");
    }
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
    let runs = Snapshot { peer_etcd: Fact::Unknown("no answer".to_owned()), ..blank.clone() };
    let claims = blank.cib_with(|cib| {
        if let Some(record) = &mut cib.peer_record {
            record.claims = true;
        }
    });
    for (name, snapshot) in [("whole", whole), ("runs", runs), ("claims", claims), ("silent", starting())] {
        assert!(!recovers(Request::Monitor, &snapshot), "{name}");
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
    for (name, snapshot) in [
        ("the peer's data is whole", rebooted(pair(), history(PEER, &[ME, PEER], &[]))),
        ("a learner", rebooted(history(ME, &[PEER], &[ME]), DataDir::Blank)),
        ("a fork is missing", rebooted(pair(), DataDir::Blank).cib_with(|cib| cib.lineage = forks(1, "node2"))),
        ("the peer is active", rebooted(pair(), DataDir::Blank).peer_is(PeerNode::Online, PeerAgent::Active)),
    ] {
        assert!(!recovers(Request::Monitor, &snapshot), "{name}");
    }
}

/// Somebody added members with etcd's own commands: their majority is Raft's business.
#[test]
fn more_than_two_voters_are_plain_raft() {
    let many = |leader| etcd(ME, leader, &[ME, PEER, 3], &[]);
    let down = at_rest().seen_voting().peer_is(PeerNode::Down, PeerAgent::NoHistory);
    let published = Record { claims: true, ..record(history(ME, &[ME, PEER, 3], &[])) };
    let down = down.cib_with(|cib| cib.own_record = Some(published));
    for own in [Fact::Known(many(None)), Fact::Unknown("no answer".to_owned())] {
        let leaderless = down.clone().running(own);
        assert_eq!(first(Request::Monitor, &leaderless).effects, []);
        assert_ne!(exit(&first(Request::Monitor, &leaderless.clone())), Some(Exit::Retriable));
        assert_eq!(first(Request::Notify, &post_stop(leaderless)).effects, []);
    }
    let mut stranger = many(Some(ME));
    stranger.members.push(Member { is_learner: true, ..etcd(4, None, &[4], &[]).members[0].clone() });
    let serving = down.clone().running(Fact::Known(stranger)).peer_is(PeerNode::Online, PeerAgent::Active);
    let effects = first(Request::Monitor, &serving).effects;
    let changes = |effect: &Effect| matches!(effect, Effect::RemoveMember { .. } | Effect::AddLearner { .. });
    assert!(!effects.iter().any(changes), "{effects:?}");
    for machine in [PeerNode::Down, PeerNode::Lost] {
        let started = down.clone().with_disk(history(ME, &[ME, PEER, 3], &[])).peer_is(machine, PeerAgent::NoHistory);
        assert_eq!(first(Request::Start, &started).effects, [Effect::RunContainer(RunMode::Normally)]);
    }
}

#[test]
fn a_learner_whose_machine_is_being_deleted_is_promoted_by_nobody() {
    let mut serving = at_rest().running(Fact::Known(etcd(ME, Some(ME), &[ME], &[PEER]))).seen_voting();
    serving = serving.peer_is(PeerNode::Online, PeerAgent::Active);
    serving.peer_etcd = Fact::Known(etcd(PEER, Some(ME), &[ME], &[PEER]));
    let caught_up = Progress { polls_caught_up: 1, ..Progress::default() };
    let after_start = serving.clone().notified(Moment::Post, "start", &["node2"], &[]);
    let promotes = |snapshot: &Snapshot| {
        let plan = decide(Request::Notify, snapshot, &caught_up);
        plan.effects.iter().any(|effect| matches!(effect, Effect::PromoteMember { .. }))
    };
    assert!(promotes(&after_start));
    let deleted = |mut snapshot: Snapshot| {
        snapshot.local.machine_is_deleted = Fact::Known(true);
        snapshot
    };
    assert!(!promotes(&deleted(after_start)));
    let mut learner = at_rest().running(Fact::Known(etcd(ME, Some(PEER), &[PEER], &[ME])));
    learner.peer_etcd = Fact::Known(etcd(PEER, Some(PEER), &[PEER], &[ME]));
    assert_eq!(exit(&decide(Request::Promote, &learner, &caught_up)), None);
    assert_eq!(exit(&decide(Request::Promote, &deleted(learner), &caught_up)), Some(Exit::Retriable));
}

/// Otherwise the leader's loss would need an operator until the next monitors.
#[test]
fn a_new_voter_claims_and_remembers_in_one_action() {
    let mut promoted = at_rest().running(Fact::Known(etcd(ME, Some(PEER), &[ME, PEER], &[])));
    promoted.peer_etcd = Fact::Known(etcd(PEER, Some(PEER), &[ME, PEER], &[]));
    promoted = promoted.peer_is(PeerNode::Online, PeerAgent::Active);
    for (request, snapshot) in [
        (Request::Monitor, promoted.clone()),
        (Request::Notify, promoted.clone().notified(Moment::Post, "start", &["node1"], &[])),
    ] {
        let plan = first(request, &snapshot);
        let claims = |effect: &Effect| matches!(effect, Effect::PublishRecord(record) if record.claims);
        assert!(plan.effects.iter().any(claims) && exit(&plan).is_none(), "{plan:?}");
        let claim = Record { claims: true, ..record(history(ME, &[ME, PEER], &[])) };
        let claimed = snapshot.cib_with(|cib| cib.own_record = Some(claim));
        let plan = decide(request, &claimed, &progress(plan));
        let remembers = |effect: &Effect| matches!(effect, Effect::Remember(memory) if memory.voter.is_some());
        assert!(plan.effects.iter().any(remembers) && exit(&plan) == Some(Exit::Success), "{plan:?}");
    }
}

/// Between the entry that promotes a learner and its application the leader acknowledges alone.
#[test]
fn a_new_voter_remembers_only_once_it_has_what_its_leader_had() {
    let claim = Record { claims: true, ..record(history(ME, &[ME, PEER], &[])) };
    let voter = at_rest().running(Fact::Known(etcd(ME, Some(PEER), &[ME, PEER], &[])));
    let voter = voter.peer_is(PeerNode::Online, PeerAgent::Active).cib_with(|cib| cib.own_record = Some(claim));
    let remembers = |leader: Etcd| {
        let snapshot = Snapshot { peer_etcd: Fact::Known(leader), ..voter.clone() };
        let plan = first(Request::Monitor, &snapshot);
        plan.effects.iter().any(|effect| matches!(effect, Effect::Remember(memory) if memory.voter.is_some()))
    };
    assert!(remembers(etcd(PEER, Some(PEER), &[ME, PEER], &[])));
    assert!(!remembers(Etcd { index: 1001, ..etcd(PEER, Some(PEER), &[ME, PEER], &[]) }), "it has committed more");
    assert!(!remembers(etcd(PEER, Some(PEER), &[PEER], &[ME])), "it has not applied the promotion");
    let plan = first(Request::Monitor, &voter);
    assert!(!plan.effects.iter().any(|effect| matches!(effect, Effect::Remember(memory) if memory.voter.is_some())));
}

#[test]
fn a_peer_that_is_confirmed_to_be_gone_is_listed_at_once() {
    let sole = at_rest().running(Fact::Known(etcd(ME, Some(ME), &[ME], &[]))).seen_voting();
    let lists = |snapshot: &Snapshot| {
        let plan = first(Request::Monitor, snapshot);
        plan.effects.iter().any(|effect| matches!(effect, Effect::AddLearner { .. }))
    };
    let down = sole.clone().peer_is(PeerNode::Down, PeerAgent::NoHistory);
    assert!(lists(&down));
    assert!(!lists(&sole.clone().peer_is(PeerNode::Lost, PeerAgent::Active)), "it may run");
    assert!(!lists(&sole.clone().peer_is(PeerNode::Online, PeerAgent::Stopped)));
    assert!(lists(&sole.peer_is(PeerNode::Online, PeerAgent::Stopped).with_peer_record(departed(PEER))));
    let mut deleted = down.clone();
    deleted.local.machine_is_deleted = Fact::Known(true);
    assert!(!lists(&deleted));
    let listed = Snapshot { own_etcd: Fact::Known(etcd(ME, Some(ME), &[ME], &[PEER])), ..down };
    assert!(!lists(&listed), "etcd of some releases keeps a learner through a force: never two of them");
}

/// Pacemaker bans etcd from a node at `migration-threshold`, and forgets no failure by itself.
#[test]
fn failures_never_add_up_to_a_ban() {
    let failed = |snapshot: Snapshot, operation: &str, count| {
        snapshot.cib_with(|cib| _ = cib.own_failures.insert(operation.to_owned(), count))
    };
    let set = |plan: &crate::decide::Plan| {
        let counts = plan.effects.iter().filter_map(|effect| match effect {
            Effect::SetFailures { operation, count } => Some((operation.clone(), *count)),
            _ => None,
        });
        counts.collect::<Vec<_>>()
    };
    let expected = [("monitor_5000".to_owned(), 8)];
    let serving = || at_rest().running(Fact::Known(etcd(ME, Some(ME), &[ME, PEER], &[]))).seen_voting();
    assert_eq!(set(&first(Request::Monitor, &failed(serving(), "monitor_5000", 58))), expected);
    assert_eq!(set(&first(Request::Start, &failed(serving(), "monitor_5000", 58))), expected);
    assert_eq!(set(&first(Request::Monitor, &failed(serving(), "monitor_5000", 8))), []);
    let refused = at_rest().with_disk(history(ME, &[ME, PEER], &[])).peer_is(PeerNode::Down, PeerAgent::NoHistory);
    let refused = failed(refused, "start_0", 58).cib_with(|cib| cib.own_start_failures = 58).after(60_000);
    assert_eq!(set(&first(Request::Start, &refused)), [("start_0".to_owned(), 8)]);
}

/// Pacemaker came back in the same boot: what a learner said when it joined is gone, and its sole voter may wait for that.
#[test]
fn a_probe_beside_a_running_learner_says_again_that_it_joins() {
    let mut learner = at_rest().running(Fact::Unknown("no leader".to_owned()));
    learner.note = Fact::Known(Note { lineage: forks(1, "node1"), joins: true, ..Note::default() });
    let plan = first(Request::Probe, &learner);
    let joins = |effect: &Effect| matches!(effect, Effect::PublishRecord(record) if record.joins && !record.claims);
    assert!(plan.effects.iter().any(joins) && exit(&plan) == Some(Exit::Success), "{plan:?}");
    learner.note = Fact::Absent;
    assert_eq!(first(Request::Probe, &learner).effects, []);
}
