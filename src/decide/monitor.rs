//! `monitor` asks etcd itself. It is also the backstop: what a notification missed is found and done here.

use super::alarm;
use super::fact::Fact;
use super::membership;
use super::peer::{PeerWord, peer_has_left, peer_has_nothing, peer_word};
use super::plan::{Effect, Exit, Next, Phase, Plan, Progress};
use super::proof;
use super::reason::{Health, Reason, Refusal, Wait};
use super::record::joining_record;
use super::recover;
use super::snapshot::{Etcd, Record, Snapshot};
use super::standing::{Data, classify, health, running_exit, unseen};
use super::timing::{
    LOOK_AGAIN_MS, LOOK_FOR_A_RETURN_MS, MONITOR_RESERVE_MS, PATIENCE_OF_A_MONITOR_WITH_A_LEARNER_MS,
    PATIENCE_WITH_A_RESTART_MS, PATIENCE_WITH_A_SILENT_ETCD_MS,
};
use super::upkeep::{Stage, kept, upkeep_unseen};

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
        return await_a_restart(snapshot, progress)
            .unwrap_or_else(|| Plan::exit(Vec::new(), Exit::NotRunning, Reason::Running(Health::NotRunning)));
    }
    if let Some(why) = &snapshot.local.failed_check {
        return snapshot.refuse(Refusal::CheckFailed { why: why.clone() });
    }
    match &snapshot.own_etcd {
        Fact::Known(etcd) if etcd.leader.is_some() => with_a_leader(snapshot, progress, etcd),
        Fact::Known(_) => without_a_leader(snapshot, progress),
        Fact::Absent => silent(snapshot, progress, "nothing listens on its client port"),
        Fact::Unknown(_) if snapshot.serves_unseen() => serves_unseen(snapshot),
        Fact::Unknown(_) if snapshot.own_refuses.is_some() => without_a_leader(snapshot, progress),
        Fact::Unknown(_) | Fact::NotAsked => silent(snapshot, progress, snapshot.own_etcd.why_unknown()),
    }
}

/// OpenShift's watcher of certificates sets `restart_no_leave` and restarts the container by itself.
fn await_a_restart(snapshot: &Snapshot, progress: &Progress) -> Option<Plan> {
    let is_restarted = snapshot.cib.known().is_some_and(|cib| cib.others.restart_no_leave);
    let patience_ms = PATIENCE_WITH_A_RESTART_MS.min(snapshot.budget_ms.saturating_sub(MONITOR_RESERVE_MS));
    (is_restarted && snapshot.elapsed_ms < patience_ms)
        .then(|| Plan::then_look(Vec::new(), LOOK_FOR_A_RETURN_MS, progress.clone(), Reason::Waiting(Wait::Restart)))
}

/// A probe answers at once, and publishes this node's record, so that a peer that starts first need not wait for it.
pub(super) fn decide_probe(snapshot: &Snapshot) -> Plan {
    if let Fact::Unknown(why) = &snapshot.container {
        return snapshot.refuse(Refusal::ContainerUnknown { why: why.clone() });
    }
    if !snapshot.container_may_run()
        && let Fact::Unknown(why) = &snapshot.launching
    {
        return snapshot.refuse(Refusal::ContainerUnknown { why: why.clone() });
    }
    if !snapshot.container_may_run() {
        let publish = snapshot.record().map(Effect::PublishRecord);
        let effects = membership::fork_of_the_peer(snapshot).into_iter().chain(publish).collect();
        return Plan::exit(effects, Exit::NotRunning, Reason::Running(Health::NotRunning));
    }
    let health = match snapshot.own_etcd.known() {
        Some(etcd) => health(etcd),
        None if snapshot.serves_unseen() => unseen(snapshot),
        None => leaderless(snapshot),
    };
    let told = still_joins(snapshot).map(Effect::PublishRecord).or_else(|| membership::fork_of_this_node(snapshot));
    Plan::exit(told.into_iter().collect(), running_exit(snapshot), Reason::Running(health))
}

/// Pacemaker has come back beside an etcd that runs, and with its former life went what this node said when it joined. A sole
/// voter that waits until its peer has given up what it once announced waits for that.
fn still_joins(snapshot: &Snapshot) -> Option<Record> {
    let says_nothing = snapshot.cib.known().is_some_and(|cib| cib.own_record.is_none());
    let joins = snapshot.note.known().is_some_and(|note| note.joins);
    let lineage = snapshot.own_lineage().filter(|_| says_nothing && joins)?;
    Some(joining_record(snapshot, lineage))
}

fn with_a_leader(snapshot: &Snapshot, progress: &Progress, etcd: &Etcd) -> Plan {
    if let Some(plan) = membership::remove_deleted_peer(snapshot, etcd) {
        return plan;
    }
    if snapshot.elapsed_ms < PATIENCE_OF_A_MONITOR_WITH_A_LEARNER_MS
        && let Some(plan) = membership::promote_caught_up_learner(snapshot, progress, etcd)
    {
        return plan;
    }
    if etcd.is_voter_with_leader()
        && let Some(plan) =
            membership::stranger(snapshot, etcd).or_else(|| membership::list_absent_peer(snapshot, etcd))
    {
        return plan;
    }
    kept(snapshot, progress, etcd, running_exit(snapshot), alarm::health(etcd))
}

/// The answer of a monitor whose time is over in the middle of a recovery: what it launched may run, and is looked at by the
/// next one; a monitor that fails has Pacemaker stop it. `None` where nothing was launched, and etcd does not run.
pub(super) fn decide_out_of_time(snapshot: &Snapshot, plan: &Plan) -> Option<Exit> {
    let launches = plan.effects.iter().any(|effect| matches!(effect, Effect::RunContainer(_)));
    let phase = match &plan.next {
        Next::Reobserve { progress, .. } => &progress.phase,
        Next::Exit(_) => &Phase::Begin,
    };
    let runs = match phase {
        Phase::Started(_) => launches || snapshot.container_may_run(),
        Phase::Announced => snapshot.container_may_run(),
        _ => false,
    };
    runs.then(|| running_exit(snapshot))
}

/// The answer of a monitor whose upkeep failed: what could not be written down does not make a serving etcd fail, as
/// Pacemaker would restart it.
pub(super) fn decide_after_failed_upkeep(snapshot: &Snapshot) -> Exit {
    let answers = snapshot.own_etcd.known().is_some() || snapshot.own_refuses.is_some();
    if answers { running_exit(snapshot) } else { Exit::Retriable }
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
    if learner || proof::votes_among_many(snapshot) || peer_word(snapshot) != PeerWord::Down {
        return None;
    }
    let position = snapshot.own_etcd.known().map(Etcd::position).unwrap_or_default();
    Some(snapshot.refuse(proof::without_proof(snapshot, position)))
}

/// Who waits for the vote of a peer that has lost its data, or has left, waits for nobody. This member may have become a
/// voter since it said what it holds, or the only one, or have missed that its peer went on alone: it fails, as its next
/// start reads its data again, and goes on alone or says what an operator can do. A sole voter needs no vote, and is slow.
fn waits_in_vain(snapshot: &Snapshot) -> Option<Plan> {
    let own_record = snapshot.cib.known()?.own_record.as_ref();
    let needs_no_vote = |record| matches!(classify(record), Data::SoleVoter | Data::VoterAmongMany);
    let is_sole = own_record.is_some_and(|record| needs_no_vote(&record.disk));
    let peer_waits = matches!(peer_word(snapshot), PeerWord::Stopped | PeerWord::Starting);
    let what = if peer_has_nothing(snapshot) { "has lost its data" } else { "has left" };
    let why = format!("{}, whose vote it waits for, {what}", snapshot.peer_name());
    let is_in_vain = peer_has_nothing(snapshot) || peer_has_left(snapshot);
    (peer_waits && is_in_vain && !is_sole).then(|| snapshot.refuse(Refusal::EtcdDoesNotAnswer { why }))
}

fn leaderless(snapshot: &Snapshot) -> Health {
    Health::LeaderlessPeerNotConfirmed { peer: snapshot.peer_name().to_owned() }
}

/// An answer that refuses us is an answer: etcd serves, and a restart would only end that. It is told once, as an alarm is.
fn serves_unseen(snapshot: &Snapshot) -> Plan {
    let effects = upkeep_unseen(snapshot, Stage::Runs);
    Plan::exit(effects, running_exit(snapshot), Reason::Running(unseen(snapshot)))
}

/// No answer. An etcd that has never had a leader answers nobody and is fine; one that served and fell silent is not.
fn silent(snapshot: &Snapshot, progress: &Progress, why: &str) -> Plan {
    if let Some(plan) = recover::decide(snapshot, progress) {
        return plan;
    }
    let served = snapshot.memory().is_some_and(|memory| memory.voter.is_some());
    let listens = !snapshot.own_etcd.is_absent();
    if snapshot.running_voter().is_none()
        && let Some(plan) = without_proof(snapshot).or_else(|| waits_in_vain(snapshot))
    {
        return plan;
    }
    if !served && listens {
        let wait = Wait::PeerVote { peer: snapshot.peer_name().to_owned() };
        return Plan::exit(Vec::new(), running_exit(snapshot), Reason::Waiting(wait));
    }
    if snapshot.elapsed_ms < PATIENCE_WITH_A_SILENT_ETCD_MS {
        let wait = Wait::OwnAnswer { why: why.to_owned() };
        return Plan::then_look(Vec::new(), LOOK_AGAIN_MS, progress.clone(), Reason::Waiting(wait));
    }
    snapshot.refuse(Refusal::EtcdDoesNotAnswer { why: why.to_owned() })
}
