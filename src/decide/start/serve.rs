//! An etcd that was started: it is to answer, and what others rely on is written down once it serves.

use super::{put_back, unstartable};
use crate::base::Fact;
use crate::decide::evidence::{Etcd, Evidence, Recovery};
use crate::decide::peer::{PeerStatus, peer_has_nothing, peer_word};
use crate::decide::plan::{Effect, Exit, Phase, Plan, Progress, RunMode};
use crate::decide::reason::{Reason, ReasonStep, Refusal, Rule, Wait};
use crate::decide::recovery::slow;
use crate::decide::running::upkeep::{Stage, missing_claim, settled_config, upkeep, upkeep_unseen};
use crate::decide::standing::{health, is_listed, unseen};
use crate::decide::timing::{
    LEFT_OUT_GRACE_S, LOOK_AGAIN_MS, LOOK_AT_ONCE_MS, LOOK_AT_THE_PEER_MS, LOOK_FOR_A_LEADER_MS, LOOK_FOR_A_WRITE_MS,
    PATIENCE_FOR_A_LEADER_MS, PATIENCE_WITH_A_STALE_RECORD_MS, PATIENCE_WITH_A_STARTING_PEER_MS, START_RESERVE_MS,
};

/// Decides after this agent or another program has launched the container, until its etcd serves.
pub(in crate::decide) fn started(evidence: &Evidence, progress: &Progress, mode: &RunMode) -> Plan {
    if !evidence.container_may_run() {
        return ended(evidence, progress, mode);
    }
    match &evidence.own_etcd {
        Fact::Known(etcd) if etcd.leader.is_some() => serving(evidence, progress, mode, etcd),
        Fact::Known(_) => await_leader(evidence, progress, mode, Wait::OwnLeader),
        Fact::Unknown(_) if evidence.serves_unseen() => serving_unseen(evidence, mode),
        Fact::Absent | Fact::Unknown(_) | Fact::NotAsked => {
            let why = evidence.own_silence().to_owned();
            await_leader(evidence, progress, mode, Wait::OwnAnswer { why })
        }
    }
}

/// Decides for an etcd that was started and has ended by itself.
///
/// An etcd ends with success if its member was removed, for example while the peer was slow to answer. In that case this start
/// waits for the peer's answer, and decides again what to do with its data. A failed start would be worse, because Pacemaker
/// counts it and stops the resource first.
fn ended(evidence: &Evidence, progress: &Progress, mode: &RunMode) -> Plan {
    let container = evidence.container.known();
    let effects = unstartable::counted(evidence, mode).into_iter().collect();
    if *mode == RunMode::Normally && has_time(evidence) {
        if is_left_out(evidence) {
            return begin_again(evidence, effects);
        }
        let patience_ms = slow::patience_ms(evidence, PATIENCE_WITH_A_STARTING_PEER_MS);
        let has_patience = progress.in_phase_ms(evidence.elapsed_ms) <= patience_ms;
        let removed = container.is_some_and(|container| container.removed);
        if removed && has_patience && !peer_is_lost(evidence) {
            let because = Reason::Waiting(Wait::PeerToServe { peer: evidence.peer_name().to_owned() });
            return Plan::then_look(effects, LOOK_AT_THE_PEER_MS, progress.clone(), because);
        }
    }
    let exit = container.and_then(|container| container.exit.clone());
    let last_words = exit.unwrap_or_else(|| "the container is gone".to_owned());
    Plan { effects, ..evidence.refuse(Refusal::EtcdExited { last_words }) }
}

/// Begins this start again from its first step, because the peer serves in a cluster that does not list this member.
fn begin_again(evidence: &Evidence, effects: Vec<Effect>) -> Plan {
    let because = evidence.rule(Rule::PeerServesAndThisDataIsNotIts);
    Plan::then_look(effects, LOOK_AT_ONCE_MS, Progress::default(), because)
}

/// Returns whether a start has time left to wait.
fn has_time(evidence: &Evidence) -> bool {
    evidence.elapsed_ms + START_RESERVE_MS <= evidence.budget_ms
}

/// Returns whether the peer is lost, is confirmed down, or has no data. Such a peer will neither list this node nor send it data.
/// While this action runs, Pacemaker does not even fence a lost peer.
fn peer_is_lost(evidence: &Evidence) -> bool {
    matches!(peer_word(evidence), PeerStatus::Lost | PeerStatus::Down) || peer_has_nothing(evidence)
}

/// Waits for a leader, because etcd answers clients only once it has had one. A plain start without the peer's vote succeeds
/// without a leader, after a wait. Its etcd keeps running. The peer votes once it starts, which may happen only after this start
/// has ended.
fn await_leader(evidence: &Evidence, progress: &Progress, mode: &RunMode, wait: Wait) -> Plan {
    let waited_ms = progress.in_phase_ms(evidence.elapsed_ms);
    if *mode == RunMode::Normally && waited_ms > PATIENCE_WITH_A_STALE_RECORD_MS && is_left_out(evidence) {
        return begin_again(evidence, vec![Effect::StopContainer { grace_s: LEFT_OUT_GRACE_S }]);
    }
    let needs_the_peer = *mode == RunMode::Normally && !peer_leads(evidence);
    if needs_the_peer && waited_ms > PATIENCE_FOR_A_LEADER_MS {
        let wait = Wait::PeerVote { peer: evidence.peer_name().to_owned() };
        return Plan::exit(Vec::new(), Exit::Success, Reason::Waiting(wait));
    }
    if matches!(mode, RunMode::JoinAsLearner { .. }) && peer_is_lost(evidence) {
        return evidence.refuse(Refusal::PeerLostWhileJoining);
    }
    if !has_time(evidence) {
        return evidence.refuse(Refusal::EtcdDoesNotAnswer { why: wait.to_string() });
    }
    Plan::then_look(Vec::new(), LOOK_FOR_A_LEADER_MS, progress.clone(), Reason::Waiting(wait))
}

/// Returns whether the peer serves without the member that this start launched. This start was decided from the peer's record of
/// that time. The peer has replaced the record since, for example by that of a restored snapshot, and no member will ever vote
/// for the launched one.
fn is_left_out(evidence: &Evidence) -> bool {
    let Fact::Known(cib) = &evidence.cib else { return false };
    // An etcd of another cluster at the peer's address has left nothing out.
    let is_the_peers =
        |etcd: &&Etcd| etcd.is_voter_with_leader() && put_back::another_cluster(evidence, etcd, cib).is_none();
    let peer = evidence.peer_etcd.known().filter(is_the_peers);
    cib.own_record.as_ref().zip(peer).is_some_and(|(record, peer)| !is_listed(&record.disk, peer))
}

fn peer_leads(evidence: &Evidence) -> bool {
    evidence.peer_etcd.known().is_some_and(|etcd| etcd.leader.is_some())
}

/// Records facts about an etcd that serves, on which later decisions rely, and ends the start.
fn serving(evidence: &Evidence, progress: &Progress, mode: &RunMode, etcd: &Etcd) -> Plan {
    if let Some(plan) = await_the_cib(evidence, progress, mode) {
        return plan;
    }
    claim(evidence, progress, mode, etcd).unwrap_or_else(|| {
        let effects = upkeep(evidence, etcd, Stage::Starts(mode));
        let because = match mode {
            // Unless the operator excluded the other way, the log has to show which one it was.
            RunMode::ForceNewCluster if evidence.recovery != Recovery::Restart => {
                Reason::Step(ReasonStep::TookOver { restarted: true, ms: evidence.elapsed_ms })
            }
            _ => Reason::Running(health(etcd)),
        };
        Plan::exit(effects, Exit::Success, because)
    })
}

/// Ends the start of an etcd that serves clients while its auth rejects this agent.
fn serving_unseen(evidence: &Evidence, mode: &RunMode) -> Plan {
    let effects = upkeep_unseen(evidence, Stage::Starts(mode));
    Plan::exit(effects, Exit::Success, Reason::Running(unseen(evidence)))
}

/// Publishes a voter's claim to run standalone, and waits until the CIB shows it: see [`PublishedState::claims`]. Other decisions
/// rely on the claim.
fn claim(evidence: &Evidence, progress: &Progress, mode: &RunMode, etcd: &Etcd) -> Option<Plan> {
    let claim = missing_claim(evidence, etcd)?;
    let effects = settled_config(evidence).into_iter().chain([claim]).collect();
    let progress = as_started(evidence, progress, mode);
    Some(Plan::then_look(effects, LOOK_FOR_A_WRITE_MS, progress, Reason::Waiting(Wait::OwnRecord)))
}

/// Waits until the CIB answers. The CIB shows this node's claim to run standalone, and the requests of other programs to this start. No
/// monitor clears such a request later (`others::runs`), so the start reads the CIB repeatedly as long as it has time.
fn await_the_cib(evidence: &Evidence, progress: &Progress, mode: &RunMode) -> Option<Plan> {
    (evidence.cib.known().is_none() && has_time(evidence)).then(|| {
        let effects = settled_config(evidence).into_iter().collect();
        let progress = as_started(evidence, progress, mode);
        Plan::then_look(effects, LOOK_AGAIN_MS, progress, Reason::Waiting(Wait::OwnRecord))
    })
}

fn as_started(evidence: &Evidence, progress: &Progress, mode: &RunMode) -> Progress {
    match progress.phase {
        Phase::Started(_) => progress.clone(),
        _ => Progress::enter(Phase::Started(mode.clone()), evidence.elapsed_ms),
    }
}
