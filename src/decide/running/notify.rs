//! Notifications: the moments at which Pacemaker informs a running member of what happens to the other one.

use super::membership;
use super::upkeep::kept;
use crate::base::Fact;
use crate::decide::evidence::{Evidence, Moment, Notify, Operation};
use crate::decide::plan::{Exit, Next, Phase, Plan, Progress};
use crate::decide::reason::{Health, Reason, Wait};
use crate::decide::recovery::proof;
use crate::decide::recovery::recover;
use crate::decide::recovery::slow;
use crate::decide::standing::health;
use crate::decide::timing::{
    LOOK_AT_A_LEARNER_MS, PATIENCE_OF_A_NOTIFICATION_WITH_A_LEARNER_MS, PATIENCE_WITH_A_JOINER_MS,
};

type Answer = fn(&Evidence, &Progress, &Notify) -> Plan;

/// Returns whether the agent may have to act on this notification. For all others the agent ends at once, without an observation.
/// On a slow machine an observation takes seconds, and Pacemaker sends two irrelevant notifications before the one that follows
/// fencing.
pub fn is_heeded(notify: &Notify) -> bool {
    answer_to(notify).is_some()
}

pub(in crate::decide) fn decide(evidence: &Evidence, progress: &Progress) -> Plan {
    let Some(notify) = &evidence.notify else { return nothing() };
    if progress.phase != Phase::Begin {
        return recover::decide(evidence, progress).map_or_else(nothing, as_notified);
    }
    answer_to(notify).map_or_else(nothing, |answer| answer(evidence, progress, notify))
}

fn answer_to(notify: &Notify) -> Option<Answer> {
    match (notify.moment, notify.operation) {
        (Moment::Pre, Operation::Start) => Some(before_start),
        (Moment::Post, Operation::Start) => Some(after_start),
        (Moment::Post, Operation::Stop) => Some(after_stop),
        // Pre-stop and pre-demote come before fencing, under a partition on both sides: they prove nothing.
        _ => None,
    }
}

/// Adds the peer to the member list before its start.
fn before_start(evidence: &Evidence, _: &Progress, notify: &Notify) -> Plan {
    let listed = match &evidence.own_etcd {
        Fact::Known(etcd) if notify.start.contains(evidence.peer_name()) => {
            membership::list_returning_peer(evidence, etcd).or_else(|| {
                let named = membership::name_listed_learner(evidence, etcd)?;
                Some(Plan::exit(vec![named], Exit::Success, Reason::NothingToDo))
            })
        }
        _ => None,
    };
    listed.unwrap_or_else(nothing)
}

/// Decides after the peer's start. If the peer is a learner, observes it until it can be promoted, so that it becomes a voter
/// soon.
fn after_start(evidence: &Evidence, progress: &Progress, _: &Notify) -> Plan {
    let Fact::Known(etcd) = &evidence.own_etcd else { return nothing() };
    let patience_ms = slow::patience_ms(evidence, PATIENCE_OF_A_NOTIFICATION_WITH_A_LEARNER_MS);
    if etcd.leader.is_none() || evidence.elapsed_ms > patience_ms {
        return nothing();
    }
    if let Some(plan) = membership::promote_caught_up_learner(evidence, progress, etcd) {
        return plan;
    }
    let joiner_is_silent =
        membership::started_learner(evidence, etcd).is_some() || membership::awaits_the_peer(evidence, etcd);
    if joiner_is_silent && evidence.elapsed_ms < PATIENCE_WITH_A_JOINER_MS || etcd.is_learner {
        return Plan::then_look(Vec::new(), LOOK_AT_A_LEARNER_MS, progress.clone(), Reason::Waiting(Wait::Learner));
    }
    kept(evidence, progress, etcd, Exit::Success, health(etcd))
}

/// Begins a recovery at once if this node's etcd lost its leader when the peer was stopped or fenced. Pacemaker reports a fencing
/// as a stop.
fn after_stop(evidence: &Evidence, progress: &Progress, notify: &Notify) -> Plan {
    if !notify.stop.contains(evidence.peer_name()) {
        return nothing();
    }
    recover::decide(evidence, progress)
        .map_or_else(|| Plan::exit(Vec::new(), Exit::Success, not_now(evidence)), as_notified)
}

/// Replaces the result of a promoted instance by plain success, because a notification reports no role.
fn as_notified(plan: Plan) -> Plan {
    match plan.next {
        Next::Exit(Exit::Promoted) => Plan { next: Next::Exit(Exit::Success), ..plan },
        _ => plan,
    }
}

/// Returns why this node does not come to run standalone after the peer's stop.
fn not_now(evidence: &Evidence) -> Reason {
    match &evidence.own_etcd {
        _ if !evidence.container_may_run() => Reason::Running(Health::NotRunning),
        Fact::Known(etcd) if etcd.leader.is_some() || etcd.is_learner => Reason::Running(health(etcd)),
        Fact::Known(_) | Fact::Unknown(_) if !proof::peer_is_out_of_the_way(evidence) => {
            Reason::Running(Health::LeaderlessPeerNotConfirmed { peer: evidence.peer_name().to_owned() })
        }
        Fact::Known(etcd) if !etcd.has_one_voter() => Reason::Refused {
            refusal: proof::without_proof(evidence, etcd.position()),
            peer: evidence.peer_name().to_owned(),
        },
        Fact::Known(_) => Reason::Waiting(Wait::OwnLeader),
        Fact::Absent | Fact::Unknown(_) | Fact::NotAsked => {
            Reason::Waiting(Wait::OwnAnswer { why: evidence.own_silence().to_owned() })
        }
    }
}

fn nothing() -> Plan {
    Plan::exit(Vec::new(), Exit::Success, Reason::NothingToDo)
}
