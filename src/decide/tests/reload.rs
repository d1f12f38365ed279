//! Parameters change while etcd runs: a node that serves continues, and a node that waits for an order that only a start
//! reads is restarted.

use super::world::*;
use crate::base::Fact;
use crate::decide::Plan;
use crate::decide::evidence::*;
use crate::decide::plan::{Effect, Exit, Notice, Request};
use crate::decide::reason::{Reason, Refusal};

fn reloaded(evidence: &Evidence) -> Plan {
    first(Request::Reload, evidence)
}

fn restarts(plan: &Plan, why: &Refusal) -> bool {
    let says = matches!(&plan.because, Reason::Refused { refusal, .. } if refusal == why);
    says && exit(plan) == Some(Exit::Retriable) && plan.effects.is_empty()
}

fn told(evidence: Evidence) -> Evidence {
    evidence.cib_with(|cib| cib.others.force_on_me = true)
}

fn runs(leader: Option<u64>, voters: &[u64]) -> Evidence {
    at_rest().running(Fact::Known(etcd(ME, leader, voters, &[]))).seen_voting()
}

fn without_leader() -> Evidence {
    runs(None, &[ME, PEER]).peer_is(PeerNode::Down, PeerAgent::Stopped)
}

#[test]
fn who_serves_runs_on_whatever_the_map_says_of_the_peer() {
    let alone = runs(Some(ME), &[ME]);
    for evidence in [runs(Some(ME), &[ME, PEER]), alone.clone(), Evidence { peer: None, ..alone }] {
        let plan = reloaded(&evidence);
        assert_eq!(exit(&plan), Some(Exit::Success), "{plan:?}");
        assert!(plan.effects.is_empty(), "{plan:?}");
    }
}

#[test]
fn nothing_is_restarted_where_nothing_runs() {
    let moved = Local { runs_at: Some("192.0.2.9".to_owned()), ..at_rest().local };
    assert_eq!(exit(&reloaded(&Evidence { local: moved, ..at_rest() })), Some(Exit::Success));
}

#[test]
fn who_has_another_address_now_is_restarted() {
    let mut evidence = runs(Some(ME), &[ME, PEER]);
    evidence.local.runs_at = Some("192.0.2.9".to_owned());
    let why = Refusal::AddressChanged { from: "192.0.2.9".to_owned(), to: evidence.local.ip.clone() };
    assert!(restarts(&reloaded(&evidence), &why));
}

#[test]
fn who_has_no_leader_is_restarted_where_a_start_would_go_on_and_nowhere_else() {
    assert_eq!(exit(&reloaded(&without_leader())), Some(Exit::Success), "nobody said so");
    assert!(restarts(&reloaded(&told(without_leader())), &Refusal::AskedToGoOn));
    assert!(restarts(&reloaded(&Evidence { peer: None, ..without_leader() }), &Refusal::AskedToGoOn));
    assert_eq!(exit(&reloaded(&told(runs(None, &[ME])))), Some(Exit::Success), "the only voter elects itself");
    let both = told(without_leader()).cib_with(|cib| cib.others.force_on_peer = true);
    assert_eq!(exit(&reloaded(&both)), Some(Exit::Success), "two words are none");
}

/// Asserts that a node that serves standalone clears `force_new_cluster`, because a later failure could apply it to stale data.
#[test]
fn who_serves_alone_takes_the_word_back() {
    let done = Effect::TellOthers(Notice::ForceDone);
    assert_eq!(reloaded(&told(runs(Some(ME), &[ME]))).effects, [done]);
    assert!(reloaded(&told(without_leader())).effects.is_empty(), "the start takes it back");
}
