//! `monitor` asks etcd itself. It is also the backstop: what a notification missed is found and done here.

use super::alarm;
use super::cold_start::{Data, classify};
use super::fact::Fact;
use super::membership;
use super::others;
use super::peer::{PeerWord, peer_has_left, peer_has_nothing, peer_word};
use super::plan::{Effect, Exit, Phase, Plan, Progress};
use super::reason::{Health, Reason, Refusal, Wait};
use super::recover;
use super::roles;
use super::serve::{health, identity_as_seen, missing_claim, remember_voter, standalone_as_seen};
use super::snapshot::{Etcd, Snapshot};

/// How long one monitor keeps asking an etcd that does not answer, before it says so.
const PATIENCE_WITH_A_SILENT_ETCD_MS: u64 = 12_000;
/// How long one monitor watches a learner that is nearly there; the next one goes on.
const PATIENCE_WITH_A_LEARNER_MS: u64 = 5_000;

pub(super) fn decide(snapshot: &Snapshot, progress: &Progress) -> Plan {
    if progress.phase != Phase::Begin
        && let Some(plan) = recover::decide(snapshot, progress)
    {
        return plan;
    }
    if let Fact::Unknown(why) = &snapshot.container {
        return snapshot.refuse(Refusal::ContainerUnknown { why: why.clone() });
    }
    if !snapshot.container_may_run() {
        return Plan::exit(Vec::new(), Exit::NotRunning, Reason::Running(Health::NotRunning));
    }
    if let Some(why) = &snapshot.local.failed_check {
        return snapshot.refuse(Refusal::CheckFailed { why: why.clone() });
    }
    match &snapshot.own_etcd {
        Fact::Known(etcd) if etcd.leader.is_some() => with_a_leader(snapshot, progress, etcd),
        Fact::Known(_) => without_a_leader(snapshot, progress),
        Fact::Absent => silent(snapshot, progress, "nothing listens on its client port"),
        Fact::Unknown(_) | Fact::NotAsked => silent(snapshot, progress, snapshot.own_etcd.why_unknown()),
    }
}

/// A probe answers at once, and publishes this node's record, so that a peer that starts first need not wait for it.
pub(super) fn decide_probe(snapshot: &Snapshot) -> Plan {
    if let Fact::Unknown(why) = &snapshot.container {
        return snapshot.refuse(Refusal::ContainerUnknown { why: why.clone() });
    }
    if !snapshot.container_may_run() {
        let publish = snapshot.record().map(Effect::PublishRecord);
        return Plan::exit(publish.into_iter().collect(), Exit::NotRunning, Reason::Running(Health::NotRunning));
    }
    let health = snapshot.own_etcd.known().map_or_else(|| leaderless(snapshot), health);
    Plan::exit(Vec::new(), running_exit(snapshot), Reason::Running(health))
}

fn with_a_leader(snapshot: &Snapshot, progress: &Progress, etcd: &Etcd) -> Plan {
    if let Some(plan) = membership::remove_deleted_peer(snapshot, etcd) {
        return plan;
    }
    if snapshot.elapsed_ms < PATIENCE_WITH_A_LEARNER_MS
        && let Some(plan) = membership::promote_caught_up_learner(snapshot, progress, etcd)
    {
        return plan;
    }
    if etcd.is_voter_with_leader()
        && let Some(plan) = membership::stranger(snapshot, etcd)
    {
        return plan;
    }
    Plan::exit(upkeep(snapshot, etcd), running_exit(snapshot), Reason::Running(alarm::health(etcd)))
}

/// What a healthy member writes down, and only where it differs: a monitor runs often.
pub(super) fn upkeep(snapshot: &Snapshot, etcd: &Etcd) -> Vec<Effect> {
    let mut effects = Vec::new();
    if snapshot.container.known().is_some_and(|container| container.forces_new_cluster) {
        effects.push(Effect::SettleConfig);
    }
    effects.extend(identity_as_seen(snapshot, etcd));
    effects.extend(standalone_as_seen(snapshot, etcd));
    effects.extend(membership::name_listed_learner(snapshot, etcd));
    effects.extend(others::runs(snapshot, etcd));
    effects.extend(membership::lineage_as_known(snapshot, etcd));
    effects.extend(membership::settle(snapshot, etcd));
    effects.extend(claim_and_remember(snapshot, etcd));
    effects.extend(roles::score_as_seen(snapshot, etcd));
    effects.extend(alarm::as_seen(snapshot, etcd));
    effects
}

/// A learner that was promoted since its start claims (visibly, in one monitor) and then remembers (in the next).
fn claim_and_remember(snapshot: &Snapshot, etcd: &Etcd) -> Option<Effect> {
    let promoted = snapshot.memory().is_some_and(|memory| memory.promoted);
    let wanted = remember_voter(snapshot, etcd, promoted);
    if Effect::Remember(snapshot.memory().cloned().unwrap_or_default()) == wanted {
        return None;
    }
    Some(missing_claim(snapshot, etcd).unwrap_or(wanted))
}

/// The answer of a monitor whose upkeep failed: what could not be written down does not make a serving etcd fail, as
/// Pacemaker would restart it.
pub(super) fn decide_after_failed_upkeep(snapshot: &Snapshot) -> Exit {
    if snapshot.own_etcd.known().is_some() { running_exit(snapshot) } else { Exit::Retriable }
}

fn without_a_leader(snapshot: &Snapshot, progress: &Progress) -> Plan {
    let recovery = recover::decide(snapshot, progress).or_else(|| without_proof(snapshot));
    if let Some(plan) = recovery.or_else(|| waits_in_vain(snapshot)) {
        return plan;
    }
    Plan::exit(Vec::new(), running_exit(snapshot), Reason::Running(leaderless(snapshot)))
}

/// A voter that never had a leader in this boot, and whose peer is confirmed down: it waits for an operator, and that
/// is to be seen. A learner only waits for its voter.
fn without_proof(snapshot: &Snapshot) -> Option<Plan> {
    let learner = snapshot.own_etcd.known().is_some_and(|etcd| etcd.is_learner);
    if learner || peer_word(snapshot) != PeerWord::Down {
        return None;
    }
    let position = snapshot.own_etcd.known().map(Etcd::position).unwrap_or_default();
    Some(snapshot.refuse(recover::without_proof(snapshot, position)))
}

/// Who waits for the vote of a peer that has lost its data, or has left, waits for nobody. This member may have become a
/// voter since it said what it holds, or the only one, or have missed that its peer went on alone: it fails, as its next
/// start reads its data again, and goes on alone or says what an operator can do. A sole voter needs no vote, and is slow.
fn waits_in_vain(snapshot: &Snapshot) -> Option<Plan> {
    let own_record = snapshot.cib.known()?.own_record.as_ref();
    let is_sole = own_record.is_some_and(|record| classify(&record.disk) == Data::SoleVoter);
    let peer_waits = matches!(peer_word(snapshot), PeerWord::Stopped | PeerWord::Starting);
    let what = if peer_has_nothing(snapshot) { "has lost its data" } else { "has left" };
    let why = format!("{}, whose vote it waits for, {what}", snapshot.peer_name());
    let is_in_vain = peer_has_nothing(snapshot) || peer_has_left(snapshot);
    (peer_waits && is_in_vain && !is_sole).then(|| snapshot.refuse(Refusal::EtcdDoesNotAnswer { why }))
}

fn leaderless(snapshot: &Snapshot) -> Health {
    Health::LeaderlessPeerNotConfirmed { peer: snapshot.peer_name().to_owned() }
}

/// No answer. An etcd that has never had a leader answers nobody and is fine; one that served and fell silent is not.
fn silent(snapshot: &Snapshot, progress: &Progress, why: &str) -> Plan {
    if let Some(plan) = recover::decide(snapshot, progress) {
        return plan;
    }
    let served = snapshot.memory().is_some_and(|memory| memory.voter.is_some());
    let listens = !snapshot.own_etcd.is_absent();
    if !served && let Some(plan) = without_proof(snapshot).or_else(|| waits_in_vain(snapshot)) {
        return plan;
    }
    if !served && listens {
        let wait = Wait::PeerVote { peer: snapshot.peer_name().to_owned() };
        return Plan::exit(Vec::new(), running_exit(snapshot), Reason::Waiting(wait));
    }
    if snapshot.elapsed_ms < PATIENCE_WITH_A_SILENT_ETCD_MS {
        let wait = Wait::OwnAnswer { why: why.to_owned() };
        return Plan::then_look(Vec::new(), 500, progress.clone(), Reason::Waiting(wait));
    }
    snapshot.refuse(Refusal::EtcdDoesNotAnswer { why: why.to_owned() })
}

/// Promoted is what Pacemaker made of this instance; the vote is etcd's. A monitor answers what Pacemaker asked.
fn running_exit(snapshot: &Snapshot) -> Exit {
    let promoted = snapshot.memory().is_some_and(|memory| memory.promoted);
    if snapshot.promotable && promoted { Exit::Promoted } else { Exit::Success }
}
