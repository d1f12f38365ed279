//! `monitor` asks etcd itself. It is also the backstop: what a notification missed is found and done here.

use super::alarm;
use super::hand_over;
use super::membership;
use super::partition;
use super::upkeep::{Stage, kept, upkeep_unseen};
use crate::base::Fact;
use crate::decide::evidence::{Cib, Etcd, Evidence, PublishedState};
use crate::decide::peer::{PeerStatus, peer_has_left, peer_has_nothing, peer_word};
use crate::decide::plan::{Effect, Exit, Next, Phase, Plan, Progress};
use crate::decide::reason::{Health, Reason, Refusal, Wait};
use crate::decide::recovery::announce::may_be_announced;
use crate::decide::recovery::proof;
use crate::decide::recovery::recover;
use crate::decide::recovery::slow;
use crate::decide::standing::{Standing, classify, health, running_exit, unseen};
use crate::decide::start::published_state::joining_record;
use crate::decide::timing::{
    LOOK_FOR_A_RETURN_MS, MONITOR_RESERVE_MS, PATIENCE_OF_A_MONITOR_WITH_A_LEARNER_MS, PATIENCE_WITH_A_RESTART_MS,
    PATIENCE_WITH_A_SILENT_ETCD_MS,
};

pub(in crate::decide) fn decide(evidence: &Evidence, progress: &Progress) -> Plan {
    if progress.phase != Phase::Begin
        && let Some(plan) = recover::decide(evidence, progress)
    {
        return as_asked(evidence, plan);
    }
    if let Fact::Unknown(why) = &evidence.container {
        return evidence.refuse(Refusal::ContainerUnknown { why: why.clone() });
    }
    if !evidence.container_may_run() {
        return await_a_restart(evidence, progress)
            .unwrap_or_else(|| Plan::exit(Vec::new(), Exit::NotRunning, Reason::Running(Health::NotRunning)));
    }
    if let Some(why) = failed_check(evidence) {
        return check_failed(evidence, progress, why);
    }
    match &evidence.own_etcd {
        Fact::Known(etcd) if etcd.leader.is_some() => with_a_leader(evidence, progress, etcd),
        Fact::Known(_) => without_a_leader(evidence, progress),
        Fact::Unknown(_) if evidence.serves_unseen() => serves_unseen(evidence),
        Fact::Unknown(_) if evidence.own_refuses.is_some() => without_a_leader(evidence, progress),
        Fact::Absent | Fact::Unknown(_) | Fact::NotAsked => silent(evidence, progress, evidence.own_silence()),
    }
}

/// Returns the error of a check that a serving etcd failed; `None` without a leader. No check can succeed without a leader, so
/// other rules decide in that case.
fn failed_check(evidence: &Evidence) -> Option<&str> {
    evidence.local.failed_check.as_deref().filter(|_| evidence.has_a_leader())
}

/// Fails a monitor because of a failed check, but only after a wait. For up to an election time-out, an etcd may report a leader
/// that has died, or lead without the other voter. Such a failure needs a recovery, and a restart would obstruct it.
fn check_failed(evidence: &Evidence, progress: &Progress, why: &str) -> Plan {
    let patience_ms = slow::patience_ms(evidence, PATIENCE_WITH_A_SILENT_ETCD_MS);
    if evidence.elapsed_ms < of_a_monitor_ms(evidence, patience_ms) {
        return slow::await_answer(why, progress);
    }
    evidence.refuse(Refusal::CheckFailed { why: why.to_owned() })
}

/// Returns the wait `ms`, shortened if a monitor would otherwise have no time left for its result.
fn of_a_monitor_ms(evidence: &Evidence, ms: u64) -> u64 {
    ms.min(evidence.budget_ms.saturating_sub(MONITOR_RESERVE_MS))
}

/// Returns `plan` with the result that Pacemaker expects of a monitor. A recovery reports success as a start does, but a monitor of a
/// promoted instance must report that it is promoted.
fn as_asked(evidence: &Evidence, plan: Plan) -> Plan {
    match plan.next {
        Next::Exit(Exit::Success) => Plan { next: Next::Exit(running_exit(evidence)), ..plan },
        _ => plan,
    }
}

/// Waits for a restart by OpenShift's certificate watcher, which sets `restart_no_leave` and restarts the container itself. If the CIB does
/// not answer, that attribute may be set, so this waits too.
fn await_a_restart(evidence: &Evidence, progress: &Progress) -> Option<Plan> {
    let wait = match &evidence.cib {
        Fact::Known(cib) if cib.others.restart_no_leave => Wait::Restart,
        Fact::Known(_) => return None,
        unread => {
            let why = unread.why_unknown();
            Wait::OwnAnswer {
                why: format!("it does not run, and the CIB would say whether another program restarts it: {why}"),
            }
        }
    };
    (evidence.elapsed_ms < of_a_monitor_ms(evidence, PATIENCE_WITH_A_RESTART_MS))
        .then(|| Plan::then_look(Vec::new(), LOOK_FOR_A_RETURN_MS, progress.clone(), Reason::Waiting(wait)))
}

/// Ends a probe at once, and publishes this node's record. So a peer that starts before this node does not have to wait for the
/// record.
pub(in crate::decide) fn decide_probe(evidence: &Evidence) -> Plan {
    if let Fact::Unknown(why) = &evidence.container {
        return evidence.refuse(Refusal::ContainerUnknown { why: why.clone() });
    }
    if !evidence.container_may_run()
        && let Fact::Unknown(why) = &evidence.launching
    {
        return evidence.refuse(Refusal::ContainerUnknown { why: why.clone() });
    }
    if !evidence.container_may_run() {
        // The CIB has this node's claim, and the agent gives none up unread.
        let publish = evidence.cib.known().and_then(|_| evidence.published_state()).map(Effect::PublishRecord);
        let effects = membership::fork_of_the_peer(evidence).into_iter().chain(publish).collect();
        return Plan::exit(effects, Exit::NotRunning, Reason::Running(Health::NotRunning));
    }
    let health = match evidence.own_etcd.known() {
        Some(etcd) => health(etcd),
        None if evidence.serves_unseen() => unseen(evidence),
        None => leaderless(evidence),
    };
    let told = still_joins(evidence).map(Effect::PublishRecord).or_else(|| membership::fork_of_this_node(evidence));
    Plan::exit(told.into_iter().collect(), running_exit(evidence), Reason::Running(health))
}

/// Returns the record of a joining node. Pacemaker lost the record when it restarted next to a running etcd. The peer, a sole
/// voter, may wait for this record, which shows that this node no longer runs standalone.
fn still_joins(evidence: &Evidence) -> Option<PublishedState> {
    let says_nothing = evidence.cib.known().is_some_and(|cib| cib.own_record.is_none());
    let joins = evidence.note.known().is_some_and(|note| note.joins);
    let lineage = evidence.own_lineage().filter(|_| says_nothing && joins)?;
    Some(joining_record(evidence, lineage))
}

fn with_a_leader(evidence: &Evidence, progress: &Progress, etcd: &Etcd) -> Plan {
    // A vote proxy was given up after its vote: a leader of two without its follower is about to step down, and the
    // announcement is not taken back for that.
    let is_alone = matches!(evidence.peer_etcd, Fact::Absent | Fact::NotAsked) && evidence.peer.is_some();
    let are_two = etcd.voters().count() == 2 && !evidence.is_left_to_raft(&etcd.members);
    if may_be_announced(evidence) && is_alone && etcd.leads() && are_two {
        return Plan::exit(Vec::new(), running_exit(evidence), Reason::Waiting(Wait::OwnLeader));
    }
    if let Some(plan) = membership::remove_deleted_peer(evidence, etcd) {
        return plan;
    }
    if evidence.elapsed_ms < slow::patience_ms(evidence, PATIENCE_OF_A_MONITOR_WITH_A_LEARNER_MS)
        && let Some(plan) = membership::promote_caught_up_learner(evidence, progress, etcd)
    {
        return plan;
    }
    if etcd.is_voter_with_leader()
        && let Some(plan) = membership::stranger(evidence, etcd)
            .or_else(|| membership::list_absent_peer(evidence, etcd))
            .or_else(|| membership::list_starting_peer(evidence, etcd))
    {
        return plan;
    }
    let kept = kept(evidence, progress, etcd, running_exit(evidence), alarm::health(etcd));
    // What others rely on comes first.
    let is_at_rest = kept.effects.is_empty() && matches!(kept.next, Next::Exit(_));
    let hand_over = || hand_over::decide(evidence, progress, etcd, running_exit(evidence));
    is_at_rest.then(hand_over).flatten().unwrap_or(kept)
}

/// Returns the result of a monitor that ran out of time; `None` if the monitor fails. It succeeds if etcd serves, because
/// unfinished work is no failure of etcd. It also succeeds if an etcd that a recovery launched may run. Pacemaker would stop
/// either etcd after a failed monitor.
pub(in crate::decide) fn decide_out_of_time(evidence: &Evidence, plan: &Plan) -> Option<Exit> {
    let launches = plan.effects.iter().any(|effect| matches!(effect, Effect::RunContainer(_)));
    let phase = match &plan.next {
        Next::Reobserve { progress, .. } => &progress.phase,
        Next::Exit(_) => &Phase::Begin,
    };
    let runs = match phase {
        Phase::Started(_) => launches || evidence.container_may_run(),
        Phase::Announced | Phase::VoteProxy { .. } | Phase::StoodIn => evidence.container_may_run(),
        Phase::Begin if failed_check(evidence).is_some() => false,
        Phase::Begin => answers(evidence) || slow::may_answer_yet(evidence),
        _ => false,
    };
    runs.then(|| running_exit(evidence))
}

/// Returns the result of a monitor that failed to write a file or an attribute. A serving etcd does not count as failed for that
/// reason, because Pacemaker would restart it.
pub(in crate::decide) fn decide_after_failed_upkeep(evidence: &Evidence) -> Exit {
    if answers(evidence) { running_exit(evidence) } else { Exit::Retriable }
}

fn answers(evidence: &Evidence) -> bool {
    evidence.own_etcd.known().is_some() || evidence.own_refuses.is_some()
}

fn without_a_leader(evidence: &Evidence, progress: &Progress) -> Plan {
    let recovery = || recover::decide(evidence, progress).or_else(|| without_hope(evidence));
    if let Some(plan) = recovery().or_else(|| partition::decide(evidence, progress)) {
        return plan;
    }
    let counted = partition::counted(evidence).into_iter().collect();
    Plan::exit(counted, running_exit(evidence), Reason::Running(leaderless(evidence)))
}

/// Fails a monitor if the vote that etcd lacks will not come without a restart. Does not fail it while etcd may only be slow to
/// answer and still serve.
fn without_hope(evidence: &Evidence) -> Option<Plan> {
    if slow::may_answer_yet(evidence) {
        return None;
    }
    without_proof(evidence).or_else(|| waits_in_vain(evidence)).or_else(|| without_record(evidence))
}

/// Fails a monitor if the CIB records a fork (forced new cluster) of this node, but lacks this node's record. Only the record can
/// show that the fork was called off, and until then the peer does not start. Only a start can make the record again, because it
/// reads the data.
fn without_record(evidence: &Evidence) -> Option<Plan> {
    let cib = evidence.cib.known()?;
    let is_of_this_node = cib.lineage.forks > 0 && cib.lineage.by == evidence.me.name;
    let peer_waits = matches!(peer_word(evidence), PeerStatus::Stopped | PeerStatus::Starting);
    let why = || "the CIB has lost this node's record, and only a start makes it again".to_owned();
    (cib.own_record.is_none() && is_of_this_node && peer_waits)
        .then(|| evidence.refuse(Refusal::EtcdDoesNotAnswer { why: why() }))
}

/// Refuses for a voter that has had no leader in this boot while the peer is confirmed down. The refusal shows the operator that
/// etcd waits. A learner is not refused, because it only waits for its voter.
fn without_proof(evidence: &Evidence) -> Option<Plan> {
    let learner = evidence.own_etcd.known().is_some_and(|etcd| etcd.is_learner);
    if learner || proof::votes_among_many(evidence) || peer_word(evidence) != PeerStatus::Down {
        return None;
    }
    let position = evidence.own_etcd.known().map(Etcd::position).unwrap_or_default();
    Some(evidence.refuse(proof::without_proof(evidence, position)))
}

/// Fails the monitor of a voter that waits for a vote that never comes, because the peer has lost its data or has left.
///
/// This node's published record may be outdated. The node may have become a voter or the sole voter since, or may have missed
/// that its peer ran standalone. The node's next start reads its data. It then runs standalone or reports what an operator can
/// do. The monitor of a sole voter does not fail, because a sole voter needs no vote and is only slow.
fn waits_in_vain(evidence: &Evidence) -> Option<Plan> {
    if proof::votes_among_many(evidence) {
        return None;
    }
    let own_record = evidence.cib.known()?.own_record.as_ref();
    let is_sole = own_record.is_some_and(|record| classify(&record.disk) == Standing::SoleVoter);
    let peer_waits = matches!(peer_word(evidence), PeerStatus::Stopped | PeerStatus::Starting);
    let what = if peer_has_nothing(evidence) { "has lost its data" } else { "has left" };
    let why = format!("{}, whose vote it waits for, {what}", evidence.peer_name());
    let is_in_vain = peer_has_nothing(evidence) || peer_has_left(evidence);
    (peer_waits && is_in_vain && !is_sole).then(|| evidence.refuse(Refusal::EtcdDoesNotAnswer { why }))
}

fn leaderless(evidence: &Evidence) -> Health {
    if proof::votes_among_many(evidence) {
        return Health::WithoutMajority { others: others(evidence) };
    }
    let peer = evidence.peer_name().to_owned();
    let keeps = |cib: &Cib| cib.peer_record.as_ref().is_some_and(|record| record.claims);
    // A stop that is half of a restart keeps its claim, and the other half may never come: a standby, a ban or a health agent takes it back.
    if peer_word(evidence) == PeerStatus::Stopped && evidence.cib.known().is_some_and(keeps) {
        return Health::LeaderlessPeerKeepsItsClaim { peer };
    }
    Health::LeaderlessPeerNotConfirmed { peer }
}

/// Returns the names of the members of which one has to return for a majority.
fn others(evidence: &Evidence) -> String {
    let third_voter = evidence.third_voter().map(|third_voter| format!(" or {}", third_voter.name)).unwrap_or_default();
    format!("{}{third_voter}", evidence.peer_name())
}

/// Ends a monitor successfully while etcd's auth rejects this agent. That etcd serves, and a restart would interrupt its service.
/// The rejection is published once, like an alarm.
fn serves_unseen(evidence: &Evidence) -> Plan {
    let effects = upkeep_unseen(evidence, Stage::Runs);
    Plan::exit(effects, running_exit(evidence), Reason::Running(unseen(evidence)))
}

/// Decides for an etcd that does not answer. If etcd has had no leader in this boot, its silence is normal. If it served before,
/// it has failed.
fn silent(evidence: &Evidence, progress: &Progress, why: &str) -> Plan {
    if let Some(plan) = recover::decide(evidence, progress) {
        return plan;
    }
    let served = evidence.boot_state().is_some_and(|memory| memory.voter.is_some());
    let listens = !evidence.own_etcd.is_absent();
    // etcd lives and answers without a leader. It lacks a majority, which may come from outside of the pair, and no restart
    // brings it.
    if proof::votes_among_many(evidence) && evidence.own_leaderless.known().is_some() {
        return Plan::exit(Vec::new(), running_exit(evidence), Reason::Running(leaderless(evidence)));
    }
    if evidence.running_voter().is_none()
        && let Some(plan) = without_hope(evidence)
    {
        return plan;
    }
    if let Some(plan) = partition::decide(evidence, progress) {
        return plan;
    }
    let counted = || partition::counted(evidence).into_iter().collect();
    if !served && listens {
        let wait = Wait::PeerVote { peer: evidence.peer_name().to_owned() };
        return Plan::exit(counted(), running_exit(evidence), Reason::Waiting(wait));
    }
    if evidence.elapsed_ms < PATIENCE_WITH_A_SILENT_ETCD_MS || slow::may_answer_yet(evidence) {
        return slow::ask_again(evidence, progress);
    }
    // The stop that follows keeps what is counted, as the other half of a restart.
    Plan { effects: counted(), ..evidence.refuse(Refusal::EtcdDoesNotAnswer { why: why.to_owned() }) }
}
