//! The parameter `two_histories=primary`: which history continues where both nodes ran standalone and no operator chose.

use super::world::*;
use crate::base::Fact;
use crate::decide::evidence::{
    Cib, DataDir, DurableState, Evidence, Lineage, LogPosition, Member, PeerAgent, PeerNode, PublishedState, Reached,
};
use crate::decide::plan::{Effect, Phase, Progress, Request, RunMode};
use crate::decide::reason::{Reason, Refusal, Rule};
use crate::decide::start::cold_start::{Chosen, Cluster, ColdStart, answer};

fn cluster(names: [&'static str; 2]) -> Cluster<'static> {
    Cluster { names, ..super::put_back::cluster(Chosen::Nobody) }
}

/// Returns the result of the table of cold starts on each node, node1's first. `first` is node1's record, and `second` is
/// node2's.
fn both(first: &PublishedState, second: &PublishedState) -> (ColdStart, ColdStart) {
    (answer(first, second, &cluster(["node1", "node2"])), answer(second, first, &cluster(["node2", "node1"])))
}

/// Returns the record of a node that has `disk` and parameters that prefer the history of the node `name`.
fn of(name: &str, disk: DataDir) -> PublishedState {
    PublishedState { prefers: Some(name.to_owned()), lineage: forks(1, "node3"), ..record(disk) }
}

fn sole(me: u64) -> DataDir {
    history(me, &[me], &[])
}

const REFUSED: (ColdStart, ColdStart) =
    (ColdStart::Refuse(Refusal::HistoriesSplit), ColdStart::Refuse(Refusal::HistoriesSplit));
const FIRST: (ColdStart, ColdStart) =
    (ColdStart::ForceNewCluster(Rule::PrimaryIsKept), ColdStart::FollowThePeer(Rule::PeerIsKept));

#[test]
fn only_two_records_that_agree_keep_a_history() {
    let both_of = |first: Option<&str>, second: Option<&str>| {
        let named = |name: Option<&str>, disk| PublishedState { prefers: name.map(str::to_owned), ..of("", disk) };
        both(&named(first, sole(ME)), &named(second, sole(PEER)))
    };
    assert_eq!(both_of(Some("node1"), Some("node1")), FIRST);
    assert_eq!(both_of(Some("node2"), Some("node2")), (FIRST.1, FIRST.0));
    for (first, second) in
        [(Some("node1"), None), (None, Some("node1")), (Some("node1"), Some("node2")), (Some("node3"), Some("node3"))]
    {
        assert_eq!(both_of(first, second), REFUSED, "{first:?} {second:?}");
    }
}

#[test]
fn an_operators_choice_goes_before_a_parameter() {
    let (first, second) = (of("node1", sole(ME)), of("node1", sole(PEER)));
    let chosen = Cluster { chosen: Chosen::ThePeer, ..cluster(["node1", "node2"]) };
    assert_eq!(answer(&first, &second, &chosen), ColdStart::FollowThePeer(Rule::PeerIsChosenPrimary));
}

#[test]
fn a_parameter_keeps_no_learners_data_and_none_of_a_member_that_may_have_left() {
    let strangers = |me: DataDir| both(&of("node1", me), &of("node1", history(PEER, &[PEER, 8], &[])));
    assert_eq!(strangers(history(ME, &[ME, 7], &[])), FIRST);
    assert_eq!(strangers(history(ME, &[7], &[ME])), REFUSED);
    let left = PublishedState { left: true, ..of("node1", sole(ME)) };
    assert_eq!(both(&left, &of("node1", sole(PEER))), REFUSED);
}

#[test]
fn a_parameter_keeps_no_history_that_is_known_to_be_old() {
    let other = of("node1", sole(PEER));
    let newer = PublishedState { lineage: forks(2, "node2"), ..other.clone() };
    assert_eq!(both(&of("node1", sole(ME)), &newer), REFUSED, "node2 ran standalone once more");
    let kept = of("node1", sole(ME));
    assert_eq!(both(&PublishedState { lineage: forks(2, "node1"), ..kept.clone() }, &other), FIRST);
    let known = Cluster { forks: 2, ..cluster(["node1", "node2"]) };
    assert_eq!(answer(&kept, &other, &known), REFUSED.0, "a fork is recorded that neither has");
    let position = LogPosition { term: 3, index: 1_001 };
    let reached = Reached { cluster_id: CLUSTER, forks: 1, position, is_redundant: false };
    let known = Cluster { reached: Some(&reached), ..cluster(["node1", "node2"]) };
    assert_eq!(answer(&kept, &other, &known), REFUSED.0, "it ends before what was reached");
    let lost = forks(3, "node1");
    let known = Cluster { recorded_of_me: Some(&lost), ..cluster(["node1", "node2"]) };
    assert_eq!(answer(&kept, &other, &known), REFUSED.0, "it lacks a fork of its own");
}

#[test]
fn a_parameter_gives_no_history_up_that_claims_to_serve() {
    let kept = of("node1", sole(ME));
    let claims = PublishedState { claims: true, ..of("node1", sole(PEER)) };
    assert_eq!(both(&kept, &claims), REFUSED);
    // The kept one may: it continues with what it has.
    let claims = PublishedState { claims: true, ..kept };
    assert_eq!(both(&claims, &of("node1", sole(PEER))), FIRST);
}

/// Returns a pair in which each node has a history of its own. The parameters of both nodes prefer the history of the node
/// `name`.
pub(super) fn split(name: &str) -> Evidence {
    let mut split = at_rest().both_start();
    split.leading = Some(Box::new(crate::decide::evidence::Leading {
        primary: Some(name.to_owned()),
        keeps_its_history: true,
        ..Default::default()
    }));
    split.note = Fact::Known(DurableState {
        lineage: forks(1, "node1"),
        alone_since: Some(LogPosition::default()),
        of: Some(mine()),
        without: Some(PEER),
        ..DurableState::default()
    });
    let peer = PublishedState { lineage: forks(1, "node2"), ..of(name, sole(PEER)) };
    split.with_disk(sole(ME)).cib_with(|cib| {
        cib.peer_record = Some(peer);
        cib.lineage = forks(1, "node2");
        (cib.own_lineage, cib.peer_lineage) = (Some(forks(1, "node1")), Some(forks(1, "node2")));
    })
}

fn refusal(evidence: &Evidence) -> Option<Refusal> {
    match first(Request::Start, evidence).because {
        Reason::Refused { refusal, .. } => Some(refusal),
        _ => None,
    }
}

#[test]
fn the_primary_announces_and_the_other_node_waits_for_it() {
    let plan = first(Request::Start, &split("node1"));
    assert_eq!(plan.because, split("node1").rule(Rule::PrimaryIsKept));
    assert!(plan.effects.contains(&Effect::PublishLineage(forks(2, "node1"))), "{plan:?}");
    assert!(matches!(first(Request::Start, &split("node2")).because, Reason::Waiting(_)));
    let differ = split("node1").cib_with(|cib| cib.peer_record.iter_mut().for_each(|peer| peer.prefers = None));
    assert_eq!(refusal(&differ), Some(Refusal::HistoriesSplit));
}

#[test]
fn a_node_publishes_what_its_parameters_name() {
    let split = split("node2");
    assert_eq!(split.published_state().unwrap().prefers.as_deref(), Some("node2"));
    let stale = split.clone().cib_with(|cib| cib.own_record.iter_mut().for_each(|own| own.prefers = None));
    let plan = first(Request::Start, &stale);
    assert!(matches!(&plan.effects[..], [Effect::PublishRecord(record)] if record.prefers.is_some()), "{plan:?}");
    // So does one that serves, once: after that nothing is written.
    let serving = Evidence { leading: split.leading.clone(), ..at_rest().seen_voting() };
    let serving = serving.running(Fact::Known(etcd(ME, Some(ME), &[ME, PEER], &[])));
    let names = |evidence: &Evidence| {
        let plan = first(Request::Monitor, evidence);
        plan.effects.iter().any(|effect| matches!(effect, Effect::PublishRecord(record) if record.prefers.is_some()))
    };
    assert!(names(&serving));
    let published = serving.cib_with(|cib| {
        cib.own_record.iter_mut().for_each(|own| own.prefers = Some("node2".to_owned()));
    });
    assert!(!names(&published));
}

#[test]
fn a_record_that_differs_by_its_revision_alone_is_not_published_again() {
    let split = split("node1").cib_with(|cib| cib.own_record.iter_mut().for_each(|own| own.revision = Some(812)));
    assert_eq!(first(Request::Start, &split).because, split.rule(Rule::PrimaryIsKept));
}

#[test]
fn a_parameter_keeps_nothing_while_the_peers_etcd_may_serve() {
    for silent in [Fact::Unknown("it is silent".to_owned()), Fact::NotAsked] {
        let split = Evidence { peer_etcd: silent, ..split("node1") };
        assert_eq!(refusal(&split), Some(Refusal::HistoriesSplit));
    }
    // A history that serves: its node is not the primary.
    let serving = Evidence { peer_etcd: Fact::Known(etcd(PEER, Some(PEER), &[PEER], &[])), ..split("node1") };
    assert_eq!(refusal(&serving), Some(Refusal::HistoriesSplit));
}

/// Asserts that this node keeps its history aside and joins the serving peer if the parameters of both nodes prefer the peer's
/// history. Both histories count equally many forced new clusters.
#[test]
fn a_history_beside_the_primarys_that_serves_is_kept_aside_for_it() {
    let serving = |name: &str, change: fn(&mut Cib)| {
        let mut members = etcd(PEER, Some(PEER), &[PEER], &[ME]);
        members.members[1] = Member { id: 9, name: String::new(), ..members.members[1].clone() };
        let split = Evidence { peer_etcd: Fact::Known(members), ..split(name) };
        split.cib_with(|cib| {
            cib.peer_record.iter_mut().for_each(|peer| peer.claims = true);
            change(cib);
        })
    };
    let aside = first(Request::Start, &serving("node2", |_| ()));
    assert_eq!(aside.effects[0], Effect::MoveHistoryAside);
    // That it is the longer one ranks neither.
    let mut longer = serving("node2", |_| ());
    if let Fact::Known(DataDir::Present(history)) = &mut longer.disk {
        (history.last_index, history.commit_index) = (5_000, 5_000);
    }
    let record = longer.published_state();
    let longer = longer.cib_with(|cib| cib.own_record = record);
    assert_eq!(first(Request::Start, &longer).effects[0], Effect::MoveHistoryAside);
    assert_eq!(refusal(&serving("node1", |_| ())), Some(Refusal::HistoriesSplit), "it serves");
    let differ = |cib: &mut Cib| cib.peer_record.iter_mut().for_each(|peer| peer.prefers = None);
    assert_eq!(refusal(&serving("node2", differ)), Some(Refusal::HistoriesSplit));
    let left = |cib: &mut Cib| cib.peer_record.iter_mut().for_each(|peer| peer.left = true);
    assert_eq!(refusal(&serving("node2", left)), Some(Refusal::HistoriesSplit));
    let behind = |cib: &mut Cib| {
        cib.peer_record.iter_mut().for_each(|peer| peer.lineage = Lineage::default());
    };
    assert_eq!(refusal(&serving("node2", behind)), Some(Refusal::HistoriesSplit));
}

type Change = fn(&mut Cib);

/// Asserts that a start reads the peer's record again after its own write. Each node may have decided from an outdated record,
/// and the two nodes' parameters may differ.
#[test]
fn what_kept_a_history_is_read_again_behind_the_last_write() {
    let announced = |change: fn(&mut Cib)| {
        let mut evidence = split("node1");
        let note = DurableState {
            lineage: forks(2, "node1"),
            alone_since: Some(LogPosition { term: 3, index: 1_000 }),
            of: Some(mine()),
            ..DurableState::default()
        };
        evidence.note = Fact::Known(note);
        let record = evidence.published_state().unwrap();
        let Progress { phase: Phase::Barrier { nonce }, .. } = barrier() else { panic!("another phase") };
        let evidence = evidence.cib_with(|cib| {
            cib.own_record = Some(PublishedState { claims: true, nonce: Some(nonce), ..record });
            cib.standalone_node = Some("node1".to_owned());
            (cib.lineage, cib.own_lineage) = (forks(2, "node1"), Some(forks(2, "node1")));
            change(cib);
        });
        decide(Request::Start, &evidence, &barrier())
    };
    let starts = |plan: &crate::decide::Plan| plan.effects.contains(&Effect::RunContainer(RunMode::Normally));
    assert!(starts(&announced(|_| ())));
    let changes: [(&str, Change); 5] = [
        ("it names the other one", |cib| {
            cib.peer_record.iter_mut().for_each(|peer| peer.prefers = Some("node2".to_owned()));
        }),
        ("it names none", |cib| cib.peer_record.iter_mut().for_each(|peer| peer.prefers = None)),
        ("it serves", |cib| cib.peer_record.iter_mut().for_each(|peer| peer.claims = true)),
        ("nothing is known of it", |cib| cib.peer_record = None),
        ("it is lost", |cib| {
            (cib.peer_node, cib.peer_agent) = (PeerNode::Lost, PeerAgent::NoHistory);
            cib.peer_record = None;
        }),
    ];
    for (name, change) in changes {
        let plan = announced(change);
        assert!(plan.effects.is_empty() && progress(plan).phase == Phase::Begin, "{name}");
    }
    // An operator's word needs no other one.
    assert!(starts(&announced(|cib| {
        cib.primary = Some("node1".to_owned());
        cib.peer_record.iter_mut().for_each(|peer| peer.prefers = None);
    })));
    assert!(starts(&announced(
        |cib| (cib.peer_node, cib.peer_agent, cib.peer_record) = (PeerNode::Down, PeerAgent::NoHistory, None)
    )));
}
