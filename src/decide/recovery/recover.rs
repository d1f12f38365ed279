//! A survivor that may come to run standalone (rule R3 and the force of R2): whether, and by which way.

use super::announce::announce;
use super::proof::{has_proof, is_confirmed, peer_is_out_of_the_way, votes_among_many};
use super::restart::{decide_announced, decide_at_the_barrier, r2_rule_of_a_force, was_forced};
use super::slow;
use super::vote::leaderless_voter;
use super::vote_proxy;
use crate::base::Fact;
use crate::decide::evidence::{Etcd, Evidence, Recovery};
use crate::decide::plan::{Phase, Plan, Progress};
use crate::decide::reason::{Reason, ReasonStep, Refusal, Rule, Wait};
use crate::decide::standing::running_exit;
use crate::decide::start::serve;
use crate::decide::timing::{FORCE_RESERVE_MS, LOOK_FOR_A_RETURN_MS, STOP_AND_LAUNCH_NEED_MS};

/// Decides whether and how a running etcd comes to run standalone; `None` if there is nothing to recover. The notification after
/// the peer's stop calls this. Each monitor calls it too, for the case that the notification had no effect.
pub(in crate::decide) fn decide(evidence: &Evidence, progress: &Progress) -> Option<Plan> {
    match &progress.phase {
        Phase::Announced => Some(decide_announced(evidence, progress)),
        Phase::VoteProxy { nonce, term } => Some(vote_proxy::decide_announced(evidence, progress, *nonce, *term)),
        Phase::StoodIn => Some(vote_proxy::decide_stood_in(evidence, progress)),
        Phase::Barrier { nonce } => {
            let has_time = slow::has_time_to_launch(evidence);
            Some(not_undone(evidence, decide_at_the_barrier(evidence, progress, *nonce, has_time)))
        }
        Phase::Started(mode) => Some(not_undone(evidence, serve::started(evidence, progress, mode))),
        Phase::Begin | Phase::HandedOver | Phase::Left | Phase::Stopped => begin(evidence, progress),
    }
}

fn begin(evidence: &Evidence, progress: &Progress) -> Option<Plan> {
    // While an earlier launch may be under way, the force could not be launched either: do not begin.
    if !peer_is_out_of_the_way(evidence) || votes_among_many(evidence) || evidence.may_be_launching() {
        return None;
    }
    let because = reason_to_go_on(evidence).filter(|_| !slow::may_serve_alone(evidence))?;
    if was_forced(evidence) {
        return Some(await_what_was_forced(evidence, progress));
    }
    // A vote proxy needs less than a launch; should it be in vain, that is when the launch is asked for.
    let has_time = match evidence.recovery {
        Recovery::Restart => slow::has_time_to_stop_and_launch(evidence),
        Recovery::VoteProxy | Recovery::VoteProxyUntested => slow::has_time_for(evidence, STOP_AND_LAUNCH_NEED_MS),
    };
    if !has_time || !slow::has_time_to_announce(evidence) {
        return Some(slow::go_on_later(evidence));
    }
    Some(announce(evidence, because))
}

/// Waits for a forced etcd to serve. If the recovery began again, it would stop that etcd.
fn await_what_was_forced(evidence: &Evidence, progress: &Progress) -> Plan {
    let why = "it was started as the only voter and does not serve yet".to_owned();
    if slow::has_time_for(evidence, FORCE_RESERVE_MS) {
        return Plan::then_look(
            Vec::new(),
            LOOK_FOR_A_RETURN_MS,
            progress.clone(),
            Reason::Waiting(Wait::OwnAnswer { why }),
        );
    }
    evidence.refuse(Refusal::EtcdDoesNotAnswer { why })
}

/// Replaces the failure in `plan` by a monitor's success if etcd does not answer but may still run after this recovery launched
/// it. Pacemaker would stop this etcd after a failed monitor. The next monitor observes it again.
fn not_undone(evidence: &Evidence, plan: Plan) -> Plan {
    match plan.because {
        Reason::Refused { refusal: Refusal::EtcdDoesNotAnswer { why }, .. } if evidence.container_may_run() => {
            Plan::exit(Vec::new(), running_exit(evidence), Reason::Waiting(Wait::OwnAnswer { why }))
        }
        _ => plan,
    }
}

/// Returns the reason for which a running member may come to run standalone; `None` if it may not.
fn reason_to_go_on(evidence: &Evidence) -> Option<Reason> {
    if leaderless_voter(evidence).is_some_and(|voter| has_proof(evidence, voter.cluster_id, voter.member_id)) {
        let position = evidence.own_etcd.known().map(Etcd::position).unwrap_or_default();
        let peer = evidence.peer_name().to_owned();
        return Some(Reason::Step(ReasonStep::AnnounceGoingOnAlone { peer, position }));
    }
    if !leaderless(evidence) {
        return None;
    }
    if is_confirmed(evidence) {
        return Some(evidence.rule(Rule::OperatorConfirmed));
    }
    r2_rule_of_a_force(evidence).map(|rule| evidence.rule(rule))
}

/// Returns whether this node's member runs, has no leader, and does not report that it is a learner.
fn leaderless(evidence: &Evidence) -> bool {
    match &evidence.own_etcd {
        Fact::Known(etcd) => etcd.leader.is_none() && !etcd.is_learner,
        Fact::Unknown(_) => !evidence.serves_unseen(),
        Fact::Absent | Fact::NotAsked => false,
    }
}
