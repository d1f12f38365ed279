//! How a start ends: etcd runs, or something is awaited.

use crate::decide::evidence::{DataDir, Evidence};
use crate::decide::plan::{Effect, Phase, Plan, Progress, RunMode};
use crate::decide::reason::{Reason, Refusal, Rule, Wait};
use crate::decide::standing::{Standing, classify, database_is_ahead, plain_start};
use crate::decide::timing::{LOOK_AT_THE_PEER_MS, LOOK_FOR_A_LEADER_MS, START_RESERVE_MS};

pub(super) fn wait_or_refuse(
    evidence: &Evidence,
    progress: &Progress,
    patience_ms: u64,
    wait: Wait,
    refusal: Refusal,
) -> Plan {
    let patience_ms = patience_ms.min(evidence.budget_ms.saturating_sub(START_RESERVE_MS));
    if progress.in_phase_ms(evidence.elapsed_ms) > patience_ms {
        return evidence.refuse(unless_refused(evidence, refusal));
    }
    Plan::then_look(Vec::new(), LOOK_AT_THE_PEER_MS, progress.clone(), Reason::Waiting(wait))
}

/// Replaces the refusal for a peer that does not serve, if the peer's auth rejects this agent. Such a peer may serve all other
/// clients.
fn unless_refused(evidence: &Evidence, refusal: Refusal) -> Refusal {
    match &evidence.peer_refuses {
        Some(refuses) if refusal == Refusal::PeerDoesNotServe => Refusal::NoPermission { user: refuses.user.clone() },
        _ => refusal,
    }
}

pub(super) fn run_plainly(evidence: &Evidence, disk: &DataDir, rule: Rule) -> Plan {
    if let Some(refusal) = database_is_ahead(disk).filter(|_| classify(disk) == Standing::SoleVoter) {
        return evidence.refuse(refusal);
    }
    let progress = Progress::enter(Phase::Started(RunMode::Normally), evidence.elapsed_ms);
    Plan::then_look(plain_start(disk), LOOK_FOR_A_LEADER_MS, progress, evidence.rule(rule))
}

pub(super) fn run(evidence: &Evidence, mode: RunMode, rule: Rule) -> Plan {
    let progress = Progress::enter(Phase::Started(mode.clone()), evidence.elapsed_ms);
    Plan::then_look(vec![Effect::RunContainer(mode)], LOOK_FOR_A_LEADER_MS, progress, evidence.rule(rule))
}
