//! Leadership that moves while both nodes are well: to the configured primary, or away from a node that users do not reach.

use super::world::*;
use crate::base::Fact;
use crate::decide::evidence::*;
use crate::decide::plan::{Effect, Exit, Next, OnFailure, Plan, Progress, Request};
use crate::decide::reason::{Held, Reason, ReasonStep, Wait};
use crate::decide::{Outlook, may_be_handed_leadership, outlook};

const DELAY_S: u64 = 60;

fn leader() -> Etcd {
    etcd(ME, Some(ME), &[ME, PEER], &[])
}

fn follower() -> Etcd {
    etcd(PEER, Some(ME), &[ME, PEER], &[])
}

fn leading(ready_for_s: Option<u64>) -> Leading {
    let primary = Some("node2".to_owned());
    Leading { primary, failback: true, delay_s: DELAY_S, ready_for_s, boot_s: 1_000, ..Leading::default() }
}

/// Returns a healthy pair: node1 leads, and node2, the configured primary, follows. No hand-over is due yet.
fn healthy() -> Evidence {
    let voter = at_rest().running(Fact::Known(leader())).seen_voting().peer_is(PeerNode::Online, PeerAgent::Active);
    Evidence {
        peer_etcd: Fact::Known(follower()),
        leading: Some(Box::new(leading(None))),
        notify: None,
        budget_ms: 23_000,
        ..voter
    }
}

/// Returns a healthy pair in which the hand-over `due` has been due for `ready_for_s` seconds.
fn counting(due: HandOver, ready_for_s: u64) -> Evidence {
    let mut evidence = healthy();
    if let Fact::Known(memory) = &mut evidence.boot_memory {
        memory.hand_over = Some(due);
    }
    Evidence { leading: Some(Box::new(leading(Some(ready_for_s)))), ..evidence }
}

const fn due(cause: Cause, tries: u8) -> HandOver {
    HandOver { cause, since_s: 900, tries }
}

/// Returns a healthy pair in which the delay before a hand-over is over.
fn ready() -> Evidence {
    counting(due(Cause::Primary, 0), DELAY_S)
}

/// Returns the plan of a monitor's second observation, after the first one has found the peer close to the leader.
fn second(evidence: &Evidence) -> Plan {
    decide(Request::Monitor, evidence, &Progress { polls_caught_up: 1, ..Progress::default() })
}

fn moves(plan: &Plan) -> bool {
    plan.effects.contains(&Effect::MoveLeader { to: PEER })
}

/// Returns the hand-over in the [`BootState`] that the plan writes; `None` if the plan writes none.
#[expect(clippy::option_option, reason = "nothing is remembered, nothing is due, something is")]
fn remembered(plan: &Plan) -> Option<Option<HandOver>> {
    plan.effects.iter().find_map(|effect| match effect {
        Effect::Remember(memory) => Some(memory.hand_over),
        _ => None,
    })
}

/// Returns `evidence` with a change to the state of the peer's etcd.
fn peer(evidence: Evidence, change: impl FnOnce(&mut Etcd)) -> Evidence {
    let mut answer = follower();
    change(&mut answer);
    Evidence { peer_etcd: Fact::Known(answer), ..evidence }
}

/// Returns `evidence` with a change to the state of this node's etcd.
fn own(evidence: Evidence, change: impl FnOnce(&mut Etcd)) -> Evidence {
    let mut answer = leader();
    change(&mut answer);
    Evidence { own_etcd: Fact::Known(answer), ..evidence }
}

fn peer_reach(cib: &mut Cib, peer: Fact<bool>) {
    cib.reach = Some(Box::new(Reach { own: Fact::Absent, peer }));
}

fn alarm(etcd: &mut Etcd) {
    etcd.alarms = vec!["memberID:2 alarm:NOSPACE".to_owned()];
}

#[test]
fn the_lead_goes_back_to_the_primary_once_it_was_well_for_the_delay() {
    let begins = first(Request::Monitor, &healthy());
    assert_eq!(remembered(&begins), Some(Some(HandOver { cause: Cause::Primary, since_s: 1_000, tries: 0 })));
    assert!(!moves(&begins));
    // F4: until then a monitor finds nothing to do.
    let waits = counting(due(Cause::Primary, 0), DELAY_S - 1);
    assert_eq!((first(Request::Monitor, &waits).effects, second(&waits).effects), (Vec::new(), Vec::new()));
    // F2: two looks.
    let looks = first(Request::Monitor, &ready());
    assert_eq!(looks.because, Reason::Waiting(Wait::SecondLook { peer: "node2".to_owned() }));
    assert!(
        looks.effects.is_empty()
            && matches!(&looks.next, Next::Reobserve { progress, .. } if progress.polls_caught_up == 1)
    );
    let hands_over = second(&ready());
    assert!(moves(&hands_over));
    assert_eq!(exit(&hands_over), Some(Exit::Success));
    let because = ReasonStep::GiveLeadership { peer: "node2".to_owned(), cause: Cause::Primary };
    assert_eq!(hands_over.because, Reason::Step(because));
}

/// Asserts for each condition of rules F1 to F3 that leadership does not move while the condition is not met, and that the delay
/// then begins again.
#[test]
fn whatever_stands_in_the_way_ends_the_delay() {
    for (what, evidence, by) in in_the_way() {
        for plan in [first(Request::Monitor, &evidence), second(&evidence)] {
            assert!(!moves(&plan), "{what}: {plan:?}");
            // What the agent cannot remember without the CIB it does not remember wrongly.
            let is_forgotten = remembered(&plan) == Some(None);
            assert!(is_forgotten || matches!(evidence.cib, Fact::Unknown(_)), "{what}: {plan:?}");
        }
        if let Some(by) = by {
            assert_eq!(outlook(&evidence), Some(Outlook::Held { cause: Cause::Primary, by }), "{what}");
        }
    }
}

type InTheWay = (&'static str, Evidence, Option<Held>);

fn in_the_way() -> Vec<InTheWay> {
    let members = |etcd: &mut Etcd, voters: &[u64], learners: &[u64]| {
        etcd.members = Etcd::of_test(ME, Some(ME), voters, learners).members;
    };
    let mut f1_f2 = f1_and_f2();
    f1_f2.extend(vec![
        ("F3: an alarm", own(ready(), alarm), Some(Held::Alarm)),
        ("F3: an alarm that the peer alone reports", peer(ready(), alarm), Some(Held::Alarm)),
        ("F3: its agent stops", ready().peer_is(PeerNode::Online, PeerAgent::Stopping), Some(Held::NotActive)),
        ("F3: its machine is lost", ready().peer_is(PeerNode::Lost, PeerAgent::Active), Some(Held::NotActive)),
        ("F3: standby", ready().cib_with(|cib| cib.peer_leaves = true), Some(Held::Leaves)),
        ("F3: maintenance", ready().cib_with(|cib| cib.in_maintenance = true), Some(Held::Maintenance)),
        ("F3: a learner", own(ready(), |own| members(own, &[ME, PEER], &[3])), Some(Held::MembersChange)),
        (
            "F3: a member that has not started",
            own(ready(), |own| {
                members(own, &[ME, PEER, 3], &[]);
                own.members[2].name = String::new();
            }),
            Some(Held::MembersChange),
        ),
        ("F3: the two disagree", peer(ready(), |peer| members(peer, &[ME, PEER, 3], &[])), Some(Held::MembersChange)),
        (
            "F3: its Machine is deleted",
            Evidence { local: Local { machine_is_deleted: Fact::Known(true), ..ready().local }, ..ready() },
            Some(Held::MembersChange),
        ),
    ]);
    f1_f2
}

fn f1_and_f2() -> Vec<InTheWay> {
    let primary = |primary: Option<&str>, failback| {
        let leading = Leading { primary: primary.map(str::to_owned), failback, ..leading(Some(DELAY_S)) };
        Evidence { leading: Some(Box::new(leading)), ..ready() }
    };
    vec![
        (
            "F1: this node does not lead",
            own(peer(ready(), |peer| peer.leader = Some(PEER)), |own| own.leader = Some(PEER)),
            None,
        ),
        ("F1: this node is the primary", primary(Some("node1"), true), None),
        ("F1: no primary", primary(None, false), None),
        ("F1: no failback", primary(Some("node2"), false), None),
        ("F1: the peer is a learner", peer(ready(), |peer| peer.is_learner = true), Some(Held::NoVoter)),
        (
            "F1: the peer's member is no voter here",
            own(ready(), |own| own.members = Etcd::of_test(ME, Some(ME), &[ME, 3], &[]).members),
            Some(Held::NoVoter),
        ),
        ("F2: no answer", Evidence { peer_etcd: Fact::Unknown("too late".to_owned()), ..ready() }, Some(Held::Silent)),
        ("F2: no leader", peer(ready(), |peer| peer.leader = None), Some(Held::AnotherLeader)),
        ("F2: another leader", peer(ready(), |peer| peer.leader = Some(PEER)), Some(Held::AnotherLeader)),
        ("F2: another cluster", peer(ready(), |peer| peer.cluster_id = 9), Some(Held::AnotherLeader)),
        ("F2: it lags", peer(ready(), |peer| peer.index = 899), Some(Held::Lags { lag: 101 })),
        (
            "F2: users do not reach it",
            ready().cib_with(|cib| peer_reach(cib, Fact::Known(false))),
            Some(Held::NotReached),
        ),
        ("no CIB", Evidence { cib: Fact::Unknown("no answer".to_owned()), ..ready() }, Some(Held::CibUnknown)),
    ]
}

#[test]
fn it_lacks_at_most_what_a_learner_may_lack_and_an_unknown_reach_holds_nothing_up() {
    assert!(moves(&second(&peer(ready(), |peer| peer.index = 900))));
    for reach in [Fact::Absent, Fact::Known(true)] {
        assert!(moves(&second(&ready().cib_with(|cib| peer_reach(cib, reach.clone())))));
    }
}

/// Asserts rule F5: the leader makes one attempt after each delay, and three in all.
#[test]
fn a_try_counts_before_it_is_made_and_the_third_is_the_last_one() {
    for (tries, follows) in [(0, true), (1, true), (2, true), (3, false), (9, false)] {
        let plan = second(&counting(due(Cause::Primary, tries), DELAY_S));
        assert_eq!(moves(&plan), follows, "{tries}");
        let next = follows.then_some(Some(HandOver { cause: Cause::Primary, since_s: 1_000, tries: tries + 1 }));
        assert_eq!(remembered(&plan), next, "{tries}");
        if follows {
            assert!(matches!(plan.effects[..], [Effect::Remember(_), Effect::MoveLeader { .. }]), "{plan:?}");
        }
        let later = counting(due(Cause::Primary, tries + 1), DELAY_S - 1);
        assert!(!moves(&second(&later)), "{tries}: the delay begins anew");
    }
    let rests = counting(due(Cause::Primary, 3), 10 * DELAY_S);
    assert_eq!(outlook(&rests), Some(Outlook::Rests { cause: Cause::Primary }));
    // What stood in the way once ends that, too.
    let once = peer(rests, |peer| peer.index = 0);
    assert_eq!(remembered(&first(Request::Monitor, &once)), Some(None));
}

/// Asserts that the old leader shows its change in the action that hands over, and after the hand-over, because an effect that fails
/// ends the plan.
#[test]
fn the_old_leader_shows_at_once_that_it_leads_no_longer() {
    let effects = |leads| {
        let shown = ShownRole { leads, ..ShownRole::default() };
        second(&ready().cib_with(|cib| cib.own_shown = Some(shown))).effects
    };
    for before in [Some(true), None] {
        let found = effects(before);
        assert!(
            matches!(found[..], [Effect::Remember(_), Effect::MoveLeader { .. }, Effect::ShowLeader(Some(false))]),
            "{found:?}"
        );
    }
    assert!(matches!(effects(Some(false))[..], [Effect::Remember(_), Effect::MoveLeader { .. }]));
}

/// Asserts that the node that leadership is to move to observes its etcd in each monitor, and that no other node does.
#[test]
fn a_node_expects_leadership_while_it_follows_as_the_primary_or_as_the_one_that_users_reach() {
    let of = |primary: Option<&str>, failback, leader: Option<u64>, reach: Option<(bool, bool)>| {
        let leading = Leading { primary: primary.map(str::to_owned), failback, ..leading(None) };
        let evidence = own(healthy(), |own| own.leader = leader);
        let reach = reach.map(|(own, peer)| Box::new(Reach { own: Fact::Known(own), peer: Fact::Known(peer) }));
        may_be_handed_leadership(
            &Evidence { leading: Some(Box::new(leading)), ..evidence }.cib_with(|cib| cib.reach = reach),
        )
    };
    assert!(of(Some("node1"), true, Some(PEER), None));
    assert!(of(None, false, Some(PEER), Some((true, false))));
    assert!(of(Some("node2"), true, Some(PEER), Some((true, false))));
    for (primary, failback, leader, reach) in [
        (Some("node1"), true, Some(ME), None),
        (Some("node1"), true, None, None),
        (Some("node1"), false, Some(PEER), None),
        (Some("node2"), true, Some(PEER), None),
        (None, false, Some(PEER), Some((true, true))),
        (None, false, Some(PEER), Some((false, false))),
        (None, false, Some(ME), Some((true, false))),
    ] {
        assert!(!of(primary, failback, leader, reach), "{primary:?} {failback} {leader:?} {reach:?}");
    }
    assert!(!may_be_handed_leadership(&Evidence { leading: None, ..own(healthy(), |own| own.leader = Some(PEER)) }));
}

/// Asserts rule F6: if a hand-over fails, etcd keeps its leader, and the monitor succeeds.
#[test]
fn a_try_that_fails_is_no_failure_of_the_monitor() {
    assert_eq!(on_failure(Request::Monitor, &ready()), OnFailure::Answer(Exit::Success));
    let decision =
        crate::decide::decide(Request::Monitor, &ready(), &Progress { polls_caught_up: 1, ..Progress::default() });
    assert!(moves(&decision.plan));
    assert_eq!(decision.on_failure, OnFailure::Answer(Exit::Success));
}

/// Asserts rule F7: a leader that users cannot reach for ten seconds hands over, whichever node is the configured primary.
#[test]
fn a_leader_that_users_do_not_reach_hands_over_to_a_peer_that_they_reach() {
    let cut_off = |own: Fact<bool>, peer: Fact<bool>, cause, ready_for_s| {
        let mut evidence = counting(due(cause, 0), ready_for_s);
        evidence.leading = Some(Box::new(Leading { primary: Some("node1".to_owned()), ..leading(Some(ready_for_s)) }));
        evidence.cib_with(|cib| cib.reach = Some(Box::new(Reach { own, peer })))
    };
    let [yes, no] = [true, false].map(Fact::Known);
    assert!(moves(&second(&cut_off(no.clone(), yes.clone(), Cause::Reach, 10))));
    assert!(!moves(&second(&cut_off(no.clone(), yes.clone(), Cause::Reach, 9))));
    for (own, peer) in
        [(no.clone(), no.clone()), (no.clone(), Fact::Absent), (yes.clone(), yes.clone()), (Fact::Absent, yes.clone())]
    {
        let plan = second(&cut_off(own.clone(), peer.clone(), Cause::Reach, 100));
        assert!(!moves(&plan) && remembered(&plan) == Some(None), "{own:?} {peer:?}");
    }
    // A delay that was counted for another reason counts for nothing.
    let anew = second(&cut_off(no.clone(), yes.clone(), Cause::Primary, 100));
    assert_eq!(remembered(&anew), Some(Some(HandOver { cause: Cause::Reach, since_s: 1_000, tries: 0 })));
    assert!(!moves(&anew));
    // The same conditions hold.
    let lags = peer(cut_off(no, yes, Cause::Reach, 10), |peer| peer.index = 0);
    assert!(!moves(&second(&lags)));
}

#[test]
fn only_a_monitor_hands_over_and_only_where_nothing_else_is_to_be_done() {
    let notified = ready().notified(Moment::Post, Operation::Start, &["node2"], &[]);
    assert!(!moves(&second(
        &Evidence { notify: notified.notify.clone(), ..ready() }
            .cib_with(|cib| cib.standalone_node = Some("x".to_owned()))
    )));
    for polls_caught_up in [0, 1] {
        let progress = Progress { polls_caught_up, ..Progress::default() };
        for request in [Request::Notify, Request::Start, Request::Probe, Request::Promote, Request::Reload] {
            assert!(!moves(&decide(request, &notified, &progress)), "{request}");
        }
    }
    // One that has spent its time on something else leaves it to the next one.
    assert!(!moves(&second(&ready().after(5_000))));
}

#[test]
fn a_stop_forgets_it_and_so_does_a_start() {
    let stopped = Evidence { container: Fact::Absent, own_etcd: Fact::Absent, ..ready() };
    assert_eq!(remembered(&first(Request::Stop, &stopped)), Some(None));
    assert_eq!(remembered(&first(Request::Start, &ready())), Some(None));
}

/// Returns each state of a hand-over with the sentence that operators read in that state.
fn told_situations() -> Vec<(Evidence, &'static str)> {
    let primary = |primary: &str, failback, evidence: Evidence| {
        let leading = Leading { primary: Some(primary.to_owned()), failback, ..leading(None) };
        Evidence { leading: Some(Box::new(leading)), ..evidence }
    };
    let follows = || own(healthy(), |own| own.leader = Some(PEER));
    vec![
        (counting(due(Cause::Primary, 0), 18), "leadership goes back to node2 in 42 s"),
        (healthy(), "leadership goes back to node2 in 60 s"),
        (peer(ready(), |peer| peer.index = 0), "leadership goes back to node2 later: node2 lacks 1000 entries"),
        (counting(due(Cause::Primary, 3), 0), "leadership does not go back to node2: 3 tries were in vain"),
        (primary("node1", true, healthy()), "it leads"),
        (primary("node2", true, follows()), "it leads"),
        (primary("node1", true, follows()), "node2 hands leadership back once this node has been well for 60 s"),
        (primary("node2", false, healthy()), "it follows, and gets no leadership back: failback_to_primary is off"),
    ]
}

#[test]
fn people_are_told_who_is_to_lead_and_when() {
    for (evidence, sentence) in told_situations() {
        let told = outlook(&evidence).map(|outlook| outlook.sentence("node1", "node2"));
        assert_eq!(told.as_deref(), Some(sentence));
    }
    assert_eq!(outlook(&Evidence { leading: None, ..healthy() }), None);
}
