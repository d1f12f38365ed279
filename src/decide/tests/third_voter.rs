//! A third voter outside of the pair (`etcd_guest`): Raft's own majority decides then, and the pair's rules rest.

use super::recovery::{leaderless, post_stop, recovers};
use super::world::*;
use crate::base::Fact;
use crate::decide::Plan;
use crate::decide::evidence::*;
use crate::decide::plan::{Effect, Exit, Phase, Progress, Request, RunMode, Via};
use crate::decide::reason::{Health, Reason, Refusal, Rule};
use crate::decide::start::cold_start::{Chosen, Cluster, ColdStart, answer};

const THIRD_VOTER: u64 = 7;

fn third_voter() -> ThirdVoter {
    ThirdVoter { name: "node7".to_owned(), peer_url: "https://node7:2380".to_owned(), id: Some(THIRD_VOTER) }
}

fn named(evidence: Evidence) -> Evidence {
    evidence.cib_with(|cib| cib.third_voter = Some(third_voter()))
}

fn unnamed(evidence: Evidence) -> Evidence {
    evidence.cib_with(|cib| cib.third_voter = None)
}

fn down(evidence: Evidence) -> Evidence {
    evidence.peer_is(PeerNode::Down, PeerAgent::NoHistory)
}

/// Returns a voter without a leader while its peer is off. `voters` and `learners` are in its member list.
fn waits(voters: &[u64], learners: &[u64]) -> Evidence {
    down(at_rest().running(Fact::Known(etcd(ME, None, voters, learners))).seen_voting())
}

fn starts_plainly(plan: &Plan) -> bool {
    plan.effects == [Effect::RunContainer(RunMode::Normally)]
}

/// Asserts that the agent leaves this node and the third voter to Raft once the peer's disk is lost, because Pacemaker does not
/// fence the third voter's machine.
#[test]
fn a_node_and_the_third_voter_are_plain_raft() {
    for recovers_by in [Recovery::Restart, Recovery::VoteProxy] {
        let beside = Evidence { recovery: recovers_by, ..waits(&[ME, THIRD_VOTER], &[]) };
        assert!(recovers(Request::Monitor, &beside), "nobody has named it");
        let known = named(beside);
        assert_eq!(first(Request::Monitor, &known).effects, []);
        assert_eq!(first(Request::Notify, &post_stop(known.clone())).effects, []);
        let by_hand = known.cib_with(|cib| cib.third_voter = Some(ThirdVoter { id: None, ..third_voter() }));
        assert_eq!(first(Request::Monitor, &by_hand).effects, [], "its address tells as much while etcd runs");
        let moved = by_hand.cib_with(|cib| {
            cib.third_voter = Some(ThirdVoter { peer_url: "https://node8:2380".to_owned(), ..third_voter() });
        });
        assert_eq!(
            first(Request::Monitor, &moved).effects,
            [],
            "and so does its id where it has another address by now"
        );
    }
    let offline = || at_rest().with_disk(history(ME, &[ME, THIRD_VOTER], &[]));
    let told = |evidence: Evidence| evidence.cib_with(|cib| cib.others.force_on_me = true);
    let proven = down(at_rest().seen_voting()).with_disk(history(ME, &[ME, THIRD_VOTER], &[]));
    let cases = [
        ("the peer is off, and this boot voted", proven),
        ("an operator's word", Evidence { confirmation: Fact::Known(word(false)), ..down(offline()) }),
        ("the peer starts, and is blank", offline().both_start().with_peer_record(DataDir::Blank)),
        ("force_new_cluster", told(offline().peer_is(PeerNode::NeverSeen, PeerAgent::NoHistory))),
        ("the only node of the map", Evidence { peer: None, ..offline() }),
    ];
    for (name, evidence) in cases {
        let forced = first(Request::Start, &evidence);
        assert!(forced.effects.iter().any(|effect| matches!(effect, Effect::WriteNote(_))), "{name}: {forced:?}");
        let plan = first(Request::Start, &named(evidence));
        assert!(starts_plainly(&plan), "{name}: {plan:?}");
    }
    for machine in [PeerNode::Lost, PeerNode::Online] {
        let evidence = named(offline().peer_is(machine, PeerAgent::Active));
        assert!(starts_plainly(&first(Request::Start, &evidence)), "{machine:?}");
    }
}

/// Asserts that the agent treats the pair as without a third voter while the third voter is not listed or is a learner.
#[test]
fn a_third_voter_that_does_not_vote_costs_the_pair_nothing() {
    for learners in [&[][..], &[THIRD_VOTER]] {
        let survivor = named(waits(&[ME, PEER], learners));
        assert!(recovers(Request::Monitor, &survivor), "{learners:?}");
        assert!(recovers(Request::Notify, &post_stop(survivor)), "{learners:?}");
    }
    for (node, id) in [("node2", PEER), ("node1", ME)] {
        let mistaken = named(leaderless()).cib_with(|cib| {
            cib.third_voter =
                Some(ThirdVoter { peer_url: format!("https://{node}:2380"), id: Some(id), ..third_voter() });
        });
        assert!(recovers(Request::Monitor, &down(mistaken)), "{node} is no guest, whoever says so");
    }
}

/// Asserts that no agent stops or forces anything while there are three voters. If one host is cut off, the other two serve, or
/// wait for each other.
#[test]
fn with_three_voters_nobody_is_forced_and_no_etcd_is_stopped() {
    let three = named(waits(&[ME, PEER, THIRD_VOTER], &[]));
    for evidence in [three.clone(), unnamed(three.clone())] {
        let plan = first(Request::Monitor, &evidence);
        assert_eq!((&plan.effects[..], exit(&plan)), (&[][..], Some(Exit::Success)));
        assert_eq!(first(Request::Notify, &post_stop(evidence)).effects, []);
    }
    let others = Health::WithoutMajority { others: "node2 or node7".to_owned() };
    assert_eq!(first(Request::Monitor, &three).because, Reason::Running(others));
    // Announced while two voted, and the promotion is seen only now.
    let announced = Progress::enter(Phase::Announced, 0);
    let plan = decide(Request::Monitor, &three.clone().announced(), &announced);
    assert!(plan.effects.is_empty() && exit(&plan).is_none(), "{plan:?}");
    let blank = three.clone().peer_is(PeerNode::Online, PeerAgent::Starting).with_peer_record(DataDir::Blank);
    let plan = first(Request::Monitor, &blank);
    assert_eq!((&plan.effects[..], exit(&plan)), (&[][..], Some(Exit::Success)), "the guest's vote is awaited");
    let told = three.cib_with(|cib| cib.others.force_on_me = true);
    assert_eq!(exit(&first(Request::Reload, &told)), Some(Exit::Success));
    let two = waits(&[ME, PEER], &[]).cib_with(|cib| cib.others.force_on_me = true);
    assert_eq!(exit(&first(Request::Reload, &two)), Some(Exit::Retriable));
}

/// Asserts that an etcd of three voters is not restarted while it answers only at its peer port, as etcd 3.5 does without a
/// leader. The record may still name two voters, because the third one may have become a voter after the record was published.
#[test]
fn an_etcd_that_waits_for_a_majority_is_not_restarted() {
    let told = |voters: &[u64]| Leaderless {
        cluster_id: CLUSTER,
        member_id: ME,
        term: 3,
        applied: 1000,
        version: Version { minor: 5, patch: 16 },
        members: etcd(ME, None, voters, &[]).members,
    };
    let silent = |voters: &[u64]| Evidence {
        own_etcd: Fact::Unknown("no answer".to_owned()),
        own_leaderless: Fact::Known(told(voters)),
        recovery: Recovery::VoteProxy,
        ..named(waits(&[ME, PEER], &[]))
    };
    assert!(recovers(Request::Monitor, &silent(&[ME, PEER])));
    let three = silent(&[ME, PEER, THIRD_VOTER]);
    for elapsed_ms in [0, 60_000] {
        let plan = first(Request::Monitor, &three.clone().after(elapsed_ms));
        assert_eq!((&plan.effects[..], exit(&plan)), (&[][..], Some(Exit::Success)), "{plan:?}");
    }
    let fails = post_stop(three.clone().peer_is(PeerNode::Online, PeerAgent::Stopped));
    let fails = fails.with_peer_record(history(PEER, &[ME, PEER, THIRD_VOTER], &[]));
    assert_eq!(
        first(Request::Notify, &fails).effects,
        [],
        "the peer's etcd broke down before this node remembered three"
    );
    let hangs = Evidence { own_leaderless: Fact::Unknown("no answer".to_owned()), ..three };
    let hangs = hangs.cib_with(|cib| cib.own_record = Some(record(history(ME, &[ME, PEER, THIRD_VOTER], &[]))));
    assert_eq!(exit(&first(Request::Monitor, &hangs.after(60_000))), Some(Exit::Retriable));
}

#[test]
fn a_graceful_stop_of_one_of_three_leaves_it_listed() {
    let stops = |voters: &[u64]| {
        let mut evidence = at_rest().seen_voting().running(Fact::Known(etcd(ME, Some(PEER), voters, &[])));
        evidence.peer_etcd = Fact::Known(etcd(PEER, Some(PEER), voters, &[]));
        let evidence = evidence.peer_is(PeerNode::Online, PeerAgent::Active);
        first(Request::Stop, &named(Evidence { notify: None, ..evidence }))
    };
    let leaves = |plan: &Plan| plan.effects.iter().any(|effect| matches!(effect, Effect::RemoveMember { .. }));
    assert!(leaves(&stops(&[ME, PEER])));
    let plan = stops(&[ME, PEER, THIRD_VOTER]);
    assert!(matches!(plan.effects.as_slice(), [Effect::StopContainer { .. }]), "{plan:?}");
}

/// Asserts that a [`BootState`] from the time of three voters proves nothing once two voters are left. At that time, the other
/// two could acknowledge writes without this one.
#[test]
fn what_three_acknowledged_is_no_proof_for_two() {
    let among_many = |mut evidence: Evidence| {
        if let Fact::Known(BootState { voter: Some(voter), .. }) = &mut evidence.boot_memory {
            voter.among_many = true;
        }
        evidence
    };
    let survivor = down(leaderless());
    assert!(recovers(Request::Monitor, &survivor));
    assert!(!recovers(Request::Monitor, &among_many(survivor)));
    let follows = |voters: &[u64], leader: Etcd| {
        let evidence = at_rest().seen_voting().running(Fact::Known(etcd(ME, Some(PEER), voters, &[])));
        let evidence = Evidence { peer_etcd: Fact::Known(leader), ..among_many(evidence) };
        remembered(&first(Request::Monitor, &evidence.peer_is(PeerNode::Online, PeerAgent::Active)))
    };
    let leads = |voters: &[u64], index: u64| Etcd { index, ..etcd(PEER, Some(PEER), voters, &[]) };
    let two = [ME, PEER];
    assert_eq!(follows(&two, leads(&two, 1001)), Remembered::Nobody, "it lacks an entry");
    assert_eq!(
        follows(&two, leads(&[ME, PEER, THIRD_VOTER], 1000)),
        Remembered::Nobody,
        "its leader acknowledges without it"
    );
    assert_eq!(follows(&two, leads(&two, 1000)), Remembered::OneOfTwo);
    let removes_itself = Etcd { leader: Some(THIRD_VOTER), ..leads(&two, 1000) };
    assert_eq!(
        follows(&two, removes_itself),
        Remembered::Nobody,
        "its leader is a third one, which may have acknowledged more"
    );
    let three =
        named(at_rest().running(Fact::Known(etcd(ME, Some(THIRD_VOTER), &[ME, PEER, THIRD_VOTER], &[])))).seen_voting();
    assert_eq!(remembered(&first(Request::Monitor, &three)), Remembered::AmongMany, "whoever leads");
    let new = Evidence { boot_memory: Fact::Absent, ..three.clone() };
    assert_eq!(remembered(&first(Request::Monitor, &new)), Remembered::AmongMany, "whatever it holds");
    let unclaimed = three.cib_with(|cib| cib.own_record = Some(record(history(ME, &[ME, PEER], &[]))));
    let plan = first(Request::Monitor, &unclaimed);
    assert!(
        matches!(plan.effects[..], [.., Effect::PublishRecord(_)]) && exit(&plan).is_none(),
        "then it remembers: {plan:?}"
    );
}

/// Kind of voter in the [`BootState`] that a plan writes.
#[derive(Debug, PartialEq, Eq)]
enum Remembered {
    Nobody,
    OneOfTwo,
    AmongMany,
}

fn remembered(plan: &Plan) -> Remembered {
    let memory = plan.effects.iter().find_map(|effect| match effect {
        Effect::Remember(memory) => Some(memory),
        _ => None,
    });
    match &memory.expect("a plan that remembers").voter {
        None => Remembered::Nobody,
        Some(voter) if voter.among_many => Remembered::AmongMany,
        Some(_) => Remembered::OneOfTwo,
    }
}

/// Asserts that outdated data does not start next to a third voter. Together they would be a majority, and would serve the
/// outdated data after another node continued from it.
#[test]
fn old_data_does_not_serve_with_a_third_vote() {
    let many = || down(at_rest().with_disk(history(ME, &[ME, PEER, THIRD_VOTER], &[])));
    assert!(starts_plainly(&first(Request::Start, &many())));
    let behind = many().cib_with(|cib| cib.lineage = forks(1, "node2"));
    let refused = first(Request::Start, &behind).because;
    assert!(matches!(refused, Reason::Refused { refusal: Refusal::PeerWentOnWithoutUs { .. }, .. }), "{refused:?}");
    let given_up = Evidence { confirmation: Fact::Known(word(true)), ..behind };
    assert!(starts_plainly(&first(Request::Start, &given_up)));

    let cluster = |forks| Cluster { forks, ..recorded(None) };
    let me = record(history(ME, &[ME, PEER, THIRD_VOTER], &[]));
    let sole = PublishedState { lineage: forks(1, "node2"), ..record(history(PEER, &[PEER], &[])) };
    assert_eq!(answer(&me, &sole, &cluster(1)), ColdStart::FollowThePeer(Rule::PeerWentOnAlone));
    let alone = record(history(ME, &[ME], &[]));
    let many = PublishedState { lineage: forks(1, "node2"), ..record(history(PEER, &[ME, PEER, THIRD_VOTER], &[])) };
    assert_eq!(answer(&alone, &many, &cluster(1)), ColdStart::Refuse(Refusal::HistoriesSplit));
    let lost = ColdStart::Refuse(Refusal::PeerWentOnAloneAndLostItsData { peer_forks: 1 });
    assert_eq!(answer(&me, &record(DataDir::Blank), &cluster(1)), lost);
    let plainly = ColdStart::StartNormally(Rule::MoreThanTwoVoters);
    assert_eq!(answer(&me, &record(DataDir::Blank), &cluster(0)), plainly);
}

/// Asserts that a recovery is called off if this node's log, once etcd is stopped, contains the third voter's promotion. It is unknown
/// whether that entry is committed. Also asserts that a node that comes back starts plainly, because otherwise two of three nodes would
/// wait for each other.
#[test]
fn what_was_announced_before_a_promotion_was_seen_is_called_off() {
    let three = |me: u64| history(me, &[ME, PEER, THIRD_VOTER], &[]);
    let survivor = named(down(at_rest().seen_voting())).at_the_barrier();
    let plan = decide(Request::Monitor, &Evidence { disk: Fact::Known(three(ME)), ..survivor }, &barrier());
    let told = PublishedState { lineage: forks(1, "node1"), claims: true, ..record(three(ME)) };
    let told = PublishedState { boot_id: "boot1".to_owned(), ..told };
    assert_eq!(plan.effects, [Effect::PublishRecord(told), Effect::RunContainer(RunMode::Normally)]);

    let said = PublishedState { lineage: forks(1, "node2"), claims: true, ..record(three(PEER)) };
    let returns = |said: PublishedState, forks: Lineage| {
        let evidence = at_rest().with_disk(three(ME)).peer_is(PeerNode::Online, PeerAgent::Active);
        let evidence = evidence.cib_with(|cib| {
            (cib.peer_record, cib.peer_lineage, cib.lineage) = (Some(said), Some(forks.clone()), forks);
        });
        first(Request::Start, &named(evidence))
    };
    assert!(starts_plainly(&returns(said.clone(), forks(1, "node2"))));
    let before = PublishedState { disk: history(PEER, &[ME, PEER], &[THIRD_VOTER]), ..said.clone() };
    assert!(starts_plainly(&returns(before, forks(1, "node2"))), "the promotion is in this node's log only");
    let cases = [
        ("it is about to go on alone", PublishedState { nonce: Some(1), ..said.clone() }, 1),
        ("it is the only voter", PublishedState { disk: history(PEER, &[PEER], &[]), ..said.clone() }, 1),
        ("this node does not", PublishedState { disk: history(PEER, &[PEER, THIRD_VOTER], &[]), ..said.clone() }, 1),
        ("it is of an earlier fork", said, 2),
    ];
    for (name, said, count) in cases {
        let refused = returns(said, forks(count, "node2")).because;
        let is_refused = matches!(refused, Reason::Refused { refusal: Refusal::PeerWentOnWithoutUs { .. }, .. });
        assert!(is_refused, "{name}: {refused:?}");
    }
}

/// Returns the facts that the table of cold starts uses in addition to the two records. Only the third voter differs.
fn recorded(third_voter: Option<&ThirdVoter>) -> Cluster<'_> {
    Cluster {
        names: ["node1", "node2"],
        recorded: true,
        forks: 0,
        chosen: Chosen::Nobody,
        reached: None,
        recorded_of_me: None,
        recorded_of_peer: None,
        third_voter,
    }
}

/// Asserts that a voter starts plainly if both nodes were lost at once and the third voter was not.
#[test]
fn two_nodes_that_come_back_together_start_plainly_beside_the_third_voter() {
    let named = third_voter();
    let cluster = recorded(Some(&named));
    let plainly = ColdStart::StartNormally(Rule::MoreThanTwoVoters);
    let three = |me| record(history(me, &[ME, PEER, THIRD_VOTER], &[]));
    assert_eq!(answer(&three(ME), &three(PEER), &cluster), plainly);
    let beside = record(history(ME, &[ME, THIRD_VOTER], &[]));
    assert_eq!(answer(&beside, &record(DataDir::Blank), &cluster), plainly);
    let unknown = Cluster { third_voter: None, ..cluster };
    let forced = ColdStart::ForceNewCluster(Rule::PeerHasNoData);
    assert_eq!(answer(&beside, &record(DataDir::Blank), &unknown), forced);
    let follows = ColdStart::FollowThePeer(Rule::PeerHasTheVotersData);
    assert_eq!(answer(&record(DataDir::Blank), &beside, &cluster), follows);
}

#[test]
fn the_third_voter_is_no_stranger_and_gives_way_to_a_peer_that_returns() {
    let learns =
        |evidence: Evidence| evidence.running(Fact::Known(etcd(ME, Some(ME), &[ME], &[THIRD_VOTER]))).seen_voting();
    let gone = Effect::RemoveMember { id: THIRD_VOTER, via: Via::Own };
    let away = down(learns(at_rest()));
    assert_eq!(first(Request::Monitor, &away).effects, std::slice::from_ref(&gone), "nobody has named it");
    let away = named(away);
    let changes = |plan: &Plan| {
        plan.effects.iter().any(|effect| matches!(effect, Effect::RemoveMember { .. } | Effect::AddLearner { .. }))
    };
    assert!(!changes(&first(Request::Monitor, &away)), "the peer is off: the guest goes on learning");
    let returns = away.clone().notified(Moment::Pre, Operation::Start, &["node2"], &[]);
    let returns = returns.peer_is(PeerNode::Online, PeerAgent::Stopped);
    assert_eq!(first(Request::Notify, &returns).effects, std::slice::from_ref(&gone));
    let missed = away.clone().peer_is(PeerNode::Online, PeerAgent::Starting);
    assert_eq!(first(Request::Monitor, &missed).effects, [gone], "where the notification was missed");
    let only = Evidence { peer: None, ..away };
    assert!(!changes(&first(Request::Monitor, &only)));

    // The node that returns does it, too.
    let joins = |third_voter: Option<ThirdVoter>| {
        let evidence =
            Evidence { peer_etcd: Fact::Known(etcd(PEER, Some(PEER), &[PEER], &[THIRD_VOTER])), ..at_rest() };
        first(Request::Start, &evidence.with_disk(DataDir::Blank).cib_with(|cib| cib.third_voter = third_voter)).effects
    };
    assert_eq!(joins(Some(third_voter())), [Effect::RemoveMember { id: THIRD_VOTER, via: Via::Peer }]);
    assert!(matches!(joins(None).first(), Some(Effect::AddLearner { .. })));
    // From etcd 3.6 on there may be room for two.
    let mut both = etcd(PEER, Some(PEER), &[PEER], &[THIRD_VOTER, ME]);
    both.members.iter_mut().filter(|member| member.id == ME).for_each(|member| member.name.clear());
    let listed = named(Evidence { peer_etcd: Fact::Known(both), ..at_rest() }.with_disk(DataDir::Blank));
    assert!(!changes(&first(Request::Start, &listed)));
}

/// Asserts that the peer is listed again after it has lost its disk, while this node and the third voter vote.
#[test]
fn a_peer_is_listed_beside_the_third_voter_and_stays_named() {
    let sole = |learners: &[u64]| {
        let mut own = etcd(ME, Some(ME), &[ME, THIRD_VOTER], learners);
        own.members.iter_mut().filter(|member| member.id == PEER).for_each(|member| member.name.clear());
        named(at_rest().running(Fact::Known(own)).seen_voting()).peer_is(PeerNode::Online, PeerAgent::Stopped)
    };
    let returns = sole(&[]).notified(Moment::Pre, Operation::Start, &["node2"], &[]);
    let listed = Effect::AddLearner { peer_url: "https://node2:2380".to_owned(), via: Via::Own };
    assert_eq!(first(Request::Notify, &returns).effects.first(), Some(&listed));
    assert_eq!(first(Request::Notify, &unnamed(returns)).effects.first(), None, "two voters are the pair's");
    let leads = Evidence { peer_etcd: Fact::Absent, ..sole(&[]).announced() };
    let because = first(Request::Monitor, &leads).because;
    assert!(matches!(because, Reason::Running(_)), "the guest follows it: {because:?}");
    let waits = sole(&[PEER]).cib_with(|cib| cib.learner_node = Some("node2".to_owned()));
    assert!(!first(Request::Monitor, &waits).effects.contains(&Effect::SetLearner(None)));
}

/// Asserts that a replaced node's learner is removed next to a third voter. etcd allows one learner, so this one would keep the
/// new node out.
#[test]
fn a_stranger_gives_way_to_the_peer_beside_the_third_voter() {
    const STRANGER: u64 = 9;
    let listed = |voters: &[u64]| {
        let own = etcd(ME, Some(ME), voters, &[STRANGER]);
        named(down(at_rest().running(Fact::Known(own)).seen_voting()))
    };
    let gone = Effect::RemoveMember { id: STRANGER, via: Via::Own };
    let beside = listed(&[ME, THIRD_VOTER]);
    assert_eq!(first(Request::Monitor, &beside).effects, std::slice::from_ref(&gone));
    let returns = beside.clone().notified(Moment::Pre, Operation::Start, &["node2"], &[]);
    let returns = returns.peer_is(PeerNode::Online, PeerAgent::Stopped);
    assert_eq!(first(Request::Notify, &returns).effects, std::slice::from_ref(&gone));
    for keeps in [unnamed(beside), listed(&[ME, PEER, THIRD_VOTER])] {
        assert!(!first(Request::Monitor, &keeps).effects.contains(&gone), "two voters of the pair: somebody adds it");
    }
}

/// Asserts that no learner is removed if the property that names the third voter cannot be parsed.
#[test]
fn a_property_that_is_not_understood_keeps_a_learner_all_the_same() {
    let learns = down(at_rest().running(Fact::Known(etcd(ME, Some(ME), &[ME], &[THIRD_VOTER]))).seen_voting());
    let badly = learns.cib_with(|cib| cib.third_voter = Some(ThirdVoter::parse("node7")));
    let removes = |effect: &Effect| matches!(effect, Effect::RemoveMember { .. });
    assert!(!first(Request::Monitor, &badly).effects.iter().any(removes));
}
