//! Running standalone without a restart: the vote of a member that is off is cast only where every condition is met.

use super::world::*;
use crate::base::Fact;
use crate::decide::evidence::*;
use crate::decide::plan::{DeadVote, Effect, Exit, Phase, Plan, Progress, Request};
use crate::decide::reason::{NoVoteProxy, Reason, ReasonStep};

const TERM: u64 = 3;
const VOTE: DeadVote = DeadVote { dead: PEER, member_id: ME, cluster_id: CLUSTER, term: TERM, applied: 1000 };

fn told() -> Leaderless {
    let members = etcd(ME, None, &[ME, PEER], &[]).members;
    Leaderless {
        cluster_id: CLUSTER,
        member_id: ME,
        term: TERM,
        applied: 1000,
        version: Version { minor: 5, patch: 21 },
        members,
    }
}

/// Returns a voter of two that has had no leader since its peer was fenced. From etcd 3.5 on, such an etcd refuses every query for its
/// members.
fn survivor() -> Evidence {
    let own = Fact::Unknown("etcdserver: no leader".to_owned());
    let voter = at_rest().running(own).seen_voting().peer_is(PeerNode::Down, PeerAgent::NoHistory);
    Evidence { own_leaderless: Fact::Known(told()), recovery: Recovery::VoteProxy, ..voter }
}

fn telling(change: impl FnOnce(&mut Leaderless)) -> Evidence {
    let mut told = told();
    change(&mut told);
    Evidence { own_leaderless: Fact::Known(told), ..survivor() }
}

/// Returns `evidence` with a CIB that shows this node's announcement that it will run standalone, with the announcement's nonce.
fn announced(evidence: Evidence) -> Evidence {
    let nonce = evidence.nonce;
    evidence.announced().cib_with(|cib| cib.own_record.iter_mut().for_each(|own| own.nonce = Some(nonce)))
}

fn waiting(evidence: &Evidence) -> Progress {
    Progress::enter(Phase::VoteProxy { nonce: evidence.nonce, term: TERM }, 0)
}

fn votes(plan: &Plan) -> bool {
    plan.effects.iter().any(|effect| matches!(effect, Effect::VoteProxy(_)))
}

/// Asserts that the agent on a slow machine queries a silent etcd's state again, even if one observation takes longer than the
/// usual wait.
#[test]
fn on_a_slow_machine_what_is_not_told_is_looked_for_more_than_once() {
    let untold =
        Evidence { own_leaderless: Fact::Unknown("no answer".to_owned()), ..announced(survivor()) }.after(6_000);
    let looks_again = |look_ms| {
        let evidence = Evidence { pace: Pace { look_ms, ..Pace::default() }, ..untold.clone() };
        decide(Request::Monitor, &evidence, &waiting(&evidence)).effects.is_empty()
    };
    assert_eq!([looks_again(5_000), looks_again(0)], [true, false]);
}

fn why_restarted(plan: &Plan) -> Option<NoVoteProxy> {
    match &plan.because {
        Reason::Step(ReasonStep::RestartInstead { why }) => Some(why.clone()),
        _ => None,
    }
}

#[test]
fn the_announcement_comes_back_before_the_vote_and_the_vote_before_the_answer() {
    let plan = first(Request::Monitor, &survivor());
    let told: Vec<_> = plan.effects.iter().map(std::mem::discriminant).collect();
    let note =
        plan.effects.iter().position(|effect| matches!(effect, Effect::WriteNote(note) if note.alone_since.is_some()));
    let record =
        plan.effects.iter().position(|effect| matches!(effect, Effect::PublishRecord(own) if own.nonce.is_some()));
    assert!(note.is_some() && note < record && record == Some(told.len() - 1), "{plan:?}");
    let waits = progress(plan);
    assert_eq!(waits.phase, Phase::VoteProxy { nonce: survivor().nonce, term: TERM });

    let early = decide(Request::Monitor, &survivor().announced(), &waits);
    assert!(!votes(&early) && exit(&early).is_none(), "{early:?}");
    let plan = decide(Request::Monitor, &announced(survivor()), &waits);
    assert_eq!(plan.effects, [Effect::VoteProxy(VOTE)]);

    let cast = progress(plan);
    let alone = Evidence {
        own_etcd: Fact::Known(etcd(ME, Some(ME), &[ME], &[])),
        own_leaderless: Fact::NotAsked,
        ..announced(survivor()).after(310)
    };
    let plan = decide(Request::Monitor, &alone, &cast);
    assert_eq!(exit(&plan), Some(Exit::Success), "{plan:?}");
    assert_eq!(plan.because, Reason::Step(ReasonStep::TookOver { restarted: false, ms: 310 }));
    assert!(plan.because.to_string().contains("without a restart, as the sole voter, 0.31 s"), "{}", plan.because);
}

/// Asserts for each precondition of a vote proxy that etcd is restarted if the precondition is not met, and that the log names
/// the reason.
#[test]
fn whoever_breaks_a_precondition_restarts_etcd_and_says_why() {
    let elsewhere = |told: &mut Leaderless| told.members[1].peer_urls = vec!["https://elsewhere:2380".to_owned()];
    let untested = Version { minor: 5, patch: 4 };
    let silent = Evidence { own_leaderless: Fact::Unknown("no answer".to_owned()), ..survivor() };
    let cases = vec![
        ("one voter", telling(|told| drop(told.members.pop())), NoVoteProxy::OtherVoters),
        ("a stranger", telling(elsewhere), NoVoteProxy::OtherVoters),
        ("another cluster", telling(|told| told.cluster_id += 1), NoVoteProxy::OtherVoters),
        ("another member", telling(|told| told.member_id = 7), NoVoteProxy::OtherVoters),
        ("etcd 3.5.4", telling(|told| told.version = untested), NoVoteProxy::UntestedRelease { version: untested }),
        ("silent", silent, NoVoteProxy::NotTold { why: "no answer".to_owned() }),
    ];
    for (name, evidence, expected) in cases {
        let announcing = progress(first(Request::Monitor, &evidence));
        assert_eq!(announcing.phase, Phase::Announced, "{name}");
        let plan = decide(Request::Monitor, &announced(evidence.clone()), &announcing);
        assert_eq!(why_restarted(&plan), Some(expected.clone()), "{name}");
        // What is found out only after the announcement counts as well.
        let found_out = announced(evidence.clone()).after(2_500);
        let plan = decide(Request::Monitor, &found_out, &waiting(&evidence));
        assert_eq!((votes(&plan), why_restarted(&plan)), (false, Some(expected)), "{name}");
        assert!(plan.effects.iter().any(|effect| matches!(effect, Effect::StopContainer { .. })), "{name}: {plan:?}");
    }
}

/// Asserts that next to a third voter no recovery begins, and that one that has begun is called off. No vote proxy votes, and no
/// cluster is forced.
#[test]
fn beside_a_third_voter_nobody_votes_for_the_peer_and_nobody_is_forced() {
    let third = etcd(ME, None, &[ME, PEER, 7], &[]).members;
    let evidence = telling(|told| told.members = third);
    let plan = first(Request::Monitor, &evidence);
    assert!(exit(&plan).is_some() && is_harmless(&plan), "{plan:?}");
    let plan = decide(Request::Monitor, &announced(evidence).after(2_500), &waiting(&survivor()));
    assert!(!votes(&plan) && is_harmless(&plan) && why_restarted(&plan).is_none(), "{plan:?}");
    assert!(!plan.effects.iter().any(|effect| matches!(effect, Effect::StopContainer { .. })), "{plan:?}");
}

/// Asserts that no vote proxy casts the vote of a peer with a machine that is on, because that machine could start an etcd. The
/// agent restarts etcd.
#[test]
fn nobody_votes_for_a_peer_whose_machine_is_there() {
    let stopped =
        survivor().peer_is(PeerNode::Online, PeerAgent::Stopped).with_peer_record(history(PEER, &[ME, PEER], &[]));
    let blank = survivor().peer_is(PeerNode::Online, PeerAgent::Starting).with_peer_record(DataDir::Blank);
    for evidence in [stopped, blank] {
        let plan = first(Request::Monitor, &evidence);
        assert_eq!(progress(plan).phase, Phase::Announced);
        let plan = decide(Request::Monitor, &announced(evidence.clone()), &waiting(&evidence));
        assert_eq!((votes(&plan), why_restarted(&plan)), (false, Some(NoVoteProxy::PeerIsThere)));
    }
}

/// Asserts that the agent uses no vote proxy, and restarts etcd, unless [`Evidence::running_voter`] proves that the node's data
/// is complete.
#[test]
fn what_this_boot_does_not_prove_is_restarted() {
    let mut confirmed = survivor();
    confirmed.boot_memory = Fact::Absent;
    confirmed.confirmation = Fact::Known(word(false));
    let both = Evidence { confirmation: Fact::Known(word(false)), ..survivor() };
    for evidence in [confirmed, both] {
        assert_eq!(progress(first(Request::Monitor, &evidence)).phase, Phase::Announced);
        let plan = decide(Request::Monitor, &announced(evidence.clone()), &waiting(&evidence));
        assert_eq!((votes(&plan), why_restarted(&plan)), (false, Some(NoVoteProxy::NotProven)));
    }
    let unproven = Evidence { boot_memory: Fact::Absent, ..survivor() };
    assert!(is_harmless(&first(Request::Monitor, &unproven)));
    let forked = survivor().cib_with(|cib| cib.lineage = forks(1, "node2"));
    assert!(is_harmless(&first(Request::Monitor, &forked)));
}

#[test]
fn who_wants_a_restart_gets_one_and_who_trusts_every_release_a_vote_proxy() {
    let restarts = Evidence { recovery: Recovery::Restart, ..survivor() };
    let plan = first(Request::Monitor, &restarts);
    assert_eq!(progress(plan).phase, Phase::Announced);
    let plan = decide(Request::Monitor, &announced(restarts), &Progress::enter(Phase::Announced, 0));
    assert_eq!(plan.because, Reason::Step(ReasonStep::StopBeforeForce));
    let old = telling(|told| told.version = Version { minor: 5, patch: 0 });
    let trusts = Evidence { recovery: Recovery::VoteProxyUntested, ..old };
    assert!(votes(&decide(Request::Monitor, &announced(trusts.clone()), &waiting(&trusts))));
}

#[test]
fn a_term_that_moved_is_announced_anew_and_not_for_ever() {
    let moved = announced(telling(|told| told.term = TERM + 1));
    let plan = decide(Request::Monitor, &moved, &waiting(&moved));
    assert!(
        !votes(&plan) && matches!(&plan.effects[..], [Effect::PublishRecord(own)] if own.nonce.is_some()),
        "{plan:?}"
    );
    assert_eq!(progress(plan).phase, Phase::VoteProxy { nonce: moved.nonce, term: TERM + 1 });
    let plan = decide(Request::Monitor, &moved.clone().after(2_500), &waiting(&moved));
    assert_eq!(why_restarted(&plan), Some(NoVoteProxy::TermMoves));
}

#[test]
fn a_peer_that_comes_back_and_a_leader_call_the_vote_off() {
    let back = announced(survivor()).peer_is(PeerNode::Online, PeerAgent::Active);
    let led = Evidence { own_etcd: Fact::Known(etcd(ME, Some(PEER), &[ME, PEER], &[])), ..announced(survivor()) };
    for evidence in [back, led] {
        for phase in [waiting(&evidence), Progress::enter(Phase::StoodIn, 0)] {
            let plan = decide(Request::Monitor, &evidence, &phase);
            assert!(is_harmless(&plan) && !votes(&plan), "{plan:?}");
        }
    }
}

#[test]
fn etcd_is_restarted_where_a_vote_proxy_gave_up_half_way() {
    let cast = Progress::enter(Phase::StoodIn, 0);
    let plan = decide(Request::Monitor, &announced(survivor()), &cast);
    assert_eq!(why_restarted(&plan), Some(NoVoteProxy::InVain));
}

/// Asserts that the agent waits, and later restarts etcd, if the vote proxy was killed after its vote. The vote proxy was etcd's
/// only follower. Without it, etcd steps down after one or two election time-outs, and until then still reports itself as the
/// leader of two voters.
#[test]
fn given_up_after_the_vote_nothing_is_taken_back_and_it_is_restarted() {
    let cast = Progress::enter(Phase::StoodIn, 0);
    let leads = Evidence {
        peer_etcd: Fact::NotAsked,
        own_etcd: Fact::Known(etcd(ME, Some(ME), &[ME, PEER], &[])),
        own_leaderless: Fact::NotAsked,
        budget_ms: 23_000,
        ..announced(survivor())
    };
    // It took longer than any look.
    let plan = decide(Request::Monitor, &leads.clone().after(3_100), &cast);
    assert!(plan.effects.is_empty() && exit(&plan).is_none(), "{plan:?}");
    // A monitor of its own, which finds it so after its agent was killed.
    let plan = first(Request::Monitor, &leads);
    assert!(plan.effects.is_empty() && exit(&plan) == Some(Exit::Success), "{plan:?}");
    // Without the time for a restart the next action makes it, and does not try once more.
    let plan = decide(Request::Monitor, &leads.after(14_000), &cast);
    assert_eq!(exit(&plan), Some(Exit::Success));
    let [Effect::Remember(memory)] = &plan.effects[..] else { panic!("{plan:?}") };
    assert!(memory.in_vain && memory.voter.is_some());
    let next = Evidence { boot_memory: Fact::Known(memory.clone()), ..announced(survivor()) };
    assert_eq!(progress(first(Request::Monitor, &next)).phase, Phase::Announced);
    let plan = decide(Request::Monitor, &next, &Progress::enter(Phase::Announced, 0));
    assert_eq!(why_restarted(&plan), Some(NoVoteProxy::InVain));
    // Once it serves that is forgotten.
    let serves = next.running(Fact::Known(etcd(ME, Some(ME), &[ME], &[])));
    let effects = decide(Request::Monitor, &serves, &cast).effects;
    assert!(effects.iter().any(|effect| matches!(effect, Effect::Remember(memory) if !memory.in_vain)), "{effects:?}");
}

/// Asserts that one late answer does not make the agent stop an etcd that may serve. An etcd that serves again is slow, because
/// all clients query it at once.
#[test]
fn what_may_serve_is_not_stopped_for_one_slow_answer() {
    let silent = Evidence {
        own_etcd: Fact::Unknown("no answer".to_owned()),
        own_leaderless: Fact::Unknown("no answer".to_owned()),
        ..announced(survivor())
    };
    for phase in [Phase::StoodIn, waiting(&silent).phase] {
        let since = Progress::enter(phase, 0);
        let plan = decide(Request::Monitor, &silent, &since);
        assert!(plan.effects.is_empty() && exit(&plan).is_none(), "{plan:?}");
        let plan = decide(Request::Monitor, &silent.clone().after(11_000), &since);
        assert!(why_restarted(&plan).is_some(), "{plan:?}");
    }
}

#[test]
fn a_monitor_without_time_for_it_leaves_it_to_the_next() {
    let late = Evidence { budget_ms: 23_000, ..announced(survivor()) }.after(16_000);
    let plan = decide(Request::Monitor, &late, &waiting(&late));
    assert_eq!((votes(&plan), exit(&plan)), (false, Some(Exit::Success)));
}
