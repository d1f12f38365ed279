//! A record that is gone from the CIB alone.

use super::world::*;
use crate::base::Fact;
use crate::decide::evidence::*;
use crate::decide::plan::{Effect, Exit, Plan, Progress, Request};
use crate::decide::reason::{Reason, ReasonStep};

const REQUESTS: [Request; 8] = [
    Request::Start,
    Request::Stop,
    Request::Monitor,
    Request::Probe,
    Request::Notify,
    Request::Promote,
    Request::Demote,
    Request::Reload,
];

/// Returns a voter of two with a fenced peer, after Pacemaker has erased the voter's published record from the CIB.
fn survivor() -> Evidence {
    let voter = at_rest().running(Fact::Known(etcd(ME, None, &[ME, PEER], &[]))).seen_voting();
    let fenced = voter.peer_is(PeerNode::Down, PeerAgent::NoHistory);
    fenced.cib_with(|cib| (cib.own_record, cib.keeps_own_record) = (None, true))
}

fn restores(plan: &Plan) -> bool {
    plan.effects == [Effect::RestoreRecord]
        && plan.because == Reason::Step(ReasonStep::RestoreRecord)
        && exit(plan).is_none()
}

#[test]
fn an_erased_record_is_restored_before_anything_is_decided() {
    for request in REQUESTS {
        assert!(restores(&first(request, &survivor())), "{request}");
        let launching = Evidence { launching: Fact::Known(true), ..survivor() };
        assert!(restores(&first(request, &launching)), "{request}, beside an earlier action");
    }
    let back = survivor().seen_voting();
    let plan = decide(Request::Monitor, &back, &progress(first(Request::Monitor, &survivor())));
    assert!(matches!(plan.effects.first(), Some(Effect::WriteNote(_))), "the survivor runs standalone: {plan:?}");
}

#[test]
fn a_record_that_went_with_pacemakers_former_life_is_not_restored() {
    let ended = survivor().cib_with(|cib| cib.keeps_own_record = false);
    assert!(!restores(&first(Request::Monitor, &ended)));
    let rebooted = Evidence { boot_id: "boot2".to_owned(), ..survivor() };
    assert!(!restores(&first(Request::Start, &rebooted)), "another boot's record proves nothing");
    let unread = Evidence { cib: Fact::Unknown("cibadmin hangs".to_owned()), ..survivor() };
    assert!(!restores(&first(Request::Monitor, &unread)));
}

#[test]
fn a_record_that_does_not_come_back_is_given_up_after_ten_looks() {
    let (mut now, mut looks) = (Progress::default(), 0);
    let last = loop {
        let plan = decide(Request::Monitor, &survivor(), &now);
        if !restores(&plan) {
            break plan;
        }
        looks += 1;
        now = progress(plan);
    };
    assert_eq!(looks, 10);
    assert_eq!(last, first(Request::Monitor, &survivor().cib_with(|cib| cib.keeps_own_record = false)));
}

/// Asserts that a monitor fails if the CIB has lost this node's record, which shows that its fork (forced new cluster) was called
/// off. Without the record, the peer does not start next to that fork.
#[test]
fn a_silent_etcd_whose_record_is_gone_beside_its_own_fork_starts_anew() {
    let own_fork = forks(1, &at_rest().me.name);
    let silent = at_rest().running(Fact::Unknown("no answer".to_owned())).peer_is(PeerNode::Online, PeerAgent::Stopped);
    let lost = silent.cib_with(|cib| (cib.own_record, cib.lineage) = (None, own_fork));
    assert_eq!(exit(&first(Request::Monitor, &lost)), Some(Exit::Retriable));
    let waits = |evidence: &Evidence| exit(&first(Request::Monitor, evidence)) == Some(Exit::Success);
    let has_record = lost.clone().cib_with(|cib| cib.own_record = Some(record(history(ME, &[ME, PEER], &[]))));
    assert!(waits(&has_record), "the peer reads there that the fork was called off");
    let of_the_peer = forks(1, lost.peer_name());
    assert!(waits(&lost.clone().cib_with(|cib| cib.lineage = of_the_peer)), "the peer knows its own fork");
    assert!(
        waits(&lost.peer_is(PeerNode::Online, PeerAgent::Active)),
        "the peer's etcd runs, and no record keeps it from that"
    );
}
