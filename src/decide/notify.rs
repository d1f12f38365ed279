//! Notifications: the moments at which Pacemaker tells a running member what happens to the other one.

use super::fact::Fact;
use super::membership;
use super::plan::{Exit, Phase, Plan, Progress};
use super::proof;
use super::reason::{Health, Reason, Wait};
use super::recover;
use super::snapshot::{Moment, Notify, Snapshot};
use super::standing::health;
use super::timing::{LOOK_AT_A_LEARNER_MS, PATIENCE_OF_A_NOTIFICATION_WITH_A_LEARNER_MS, PATIENCE_WITH_A_JOINER_MS};
use super::upkeep::kept;

pub(super) fn decide(snapshot: &Snapshot, progress: &Progress) -> Plan {
    let Some(notify) = &snapshot.notify else { return nothing() };
    if progress.phase != Phase::Begin {
        return recover::decide(snapshot, progress).unwrap_or_else(nothing);
    }
    match (notify.moment, notify.operation.as_str()) {
        (Moment::Pre, "start") => before_start(snapshot, notify),
        (Moment::Post, "start") => after_start(snapshot, progress),
        (Moment::Post, "stop") => after_stop(snapshot, progress, notify),
        // Pre-stop and pre-demote come before fencing, under a partition on both sides: they prove nothing.
        _ => nothing(),
    }
}

/// The peer is about to start: it finds itself listed.
fn before_start(snapshot: &Snapshot, notify: &Notify) -> Plan {
    let listed = match &snapshot.own_etcd {
        Fact::Known(etcd) if notify.start.contains(snapshot.peer_name()) => {
            membership::list_returning_peer(snapshot, etcd).or_else(|| {
                let named = membership::name_listed_learner(snapshot, etcd)?;
                Some(Plan::exit(vec![named], Exit::Success, Reason::NothingToDo))
            })
        }
        _ => None,
    };
    listed.unwrap_or_else(nothing)
}

/// Somebody has started: a learner is watched until it votes, and the one who starts learns that it does.
fn after_start(snapshot: &Snapshot, progress: &Progress) -> Plan {
    let Fact::Known(etcd) = &snapshot.own_etcd else { return nothing() };
    if etcd.leader.is_none() || snapshot.elapsed_ms > PATIENCE_OF_A_NOTIFICATION_WITH_A_LEARNER_MS {
        return nothing();
    }
    if let Some(plan) = membership::promote_caught_up_learner(snapshot, progress, etcd) {
        return plan;
    }
    let joiner_is_silent =
        membership::started_learner(snapshot, etcd).is_some() || membership::awaits_the_peer(snapshot, etcd);
    if joiner_is_silent && snapshot.elapsed_ms < PATIENCE_WITH_A_JOINER_MS || etcd.is_learner {
        return Plan::then_look(Vec::new(), LOOK_AT_A_LEARNER_MS, progress.clone(), Reason::Waiting(Wait::Learner));
    }
    kept(snapshot, progress, etcd, Exit::Success, health(etcd))
}

/// The peer's instance is stopped, which also follows fencing: if that cost us the leader, go on alone at once.
fn after_stop(snapshot: &Snapshot, progress: &Progress, notify: &Notify) -> Plan {
    if !notify.stop.contains(snapshot.peer_name()) {
        return nothing();
    }
    recover::decide(snapshot, progress).unwrap_or_else(|| Plan::exit(Vec::new(), Exit::Success, not_now(snapshot)))
}

/// Why the one that is left does not go on alone now.
fn not_now(snapshot: &Snapshot) -> Reason {
    match &snapshot.own_etcd {
        _ if !snapshot.container_may_run() => Reason::Running(Health::NotRunning),
        Fact::Known(etcd) if etcd.leader.is_some() || etcd.is_learner => Reason::Running(health(etcd)),
        Fact::Known(_) | Fact::Unknown(_) if !proof::peer_is_out_of_the_way(snapshot) => {
            Reason::Running(Health::LeaderlessPeerNotConfirmed { peer: snapshot.peer_name().to_owned() })
        }
        Fact::Known(etcd) if !etcd.has_one_voter() => Reason::Refused {
            refusal: proof::without_proof(snapshot, etcd.position()),
            peer: snapshot.peer_name().to_owned(),
        },
        Fact::Known(_) => Reason::Waiting(Wait::OwnLeader),
        etcd => Reason::Waiting(Wait::OwnAnswer { why: etcd.why_unknown().to_owned() }),
    }
}

fn nothing() -> Plan {
    Plan::exit(Vec::new(), Exit::Success, Reason::NothingToDo)
}
