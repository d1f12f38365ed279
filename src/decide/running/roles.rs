//! Roles of a promotable clone: Promoted is a voting member, Unpromoted a learner (or a voter that is not promoted yet).

use super::membership::{has_caught_up, lag_behind, polls_caught_up};
use super::reached;
use super::upkeep::remember_voter;
use crate::base::Fact;
use crate::decide::evidence::{BootState, Evidence, NoPermission};
use crate::decide::plan::{Effect, Exit, Plan, Progress, Via};
use crate::decide::reason::{Health, Reason, ReasonStep, Refusal, Wait};
use crate::decide::recovery::slow;
use crate::decide::standing::{health, unseen};
use crate::decide::timing::{LOOK_AT_A_LEARNER_MS, PATIENCE_WITH_A_VOTE_MS, PROMOTION_RESERVE_MS};

/// Promotes the instance of a voter. A learner first asks the peer to make it a voter.
pub(in crate::decide) fn decide_promote(evidence: &Evidence, progress: &Progress) -> Plan {
    if let Some(refuses) = &evidence.own_refuses {
        return promote_unseen(evidence, refuses);
    }
    let Fact::Known(etcd) = &evidence.own_etcd else { return promote_unanswered(evidence, progress) };
    if !etcd.is_learner {
        // Where the memory cannot record whether this voter may run standalone, it still records that the voter is promoted.
        let as_before = || promoted_as_before(evidence);
        let memory = remember_voter(evidence, etcd, true, None).unwrap_or_else(as_before);
        return Plan::exit(vec![memory], Exit::Success, Reason::Running(health(etcd)));
    }
    if evidence.machine_is_deleted() {
        return evidence.refuse(Refusal::MachineIsDeleted);
    }
    if evidence.elapsed_ms > slow::patience_ms(evidence, PATIENCE_WITH_A_VOTE_MS) {
        return evidence.refuse(Refusal::NotAVoterYet);
    }
    // The learner's cluster needs no check of ids: the peer's etcd promotes no member that it does not list.
    let leader = evidence.peer_etcd.known();
    let lag = leader.map(|leader| lag_behind(leader, etcd));
    let polls = polls_caught_up(evidence, progress, lag);
    let promotion = Effect::PromoteMember { id: etcd.member_id, via: Via::Peer };
    let position = leader.and_then(|leader| reached::before_a_promotion(evidence, leader));
    let effects = if has_caught_up(polls) { position.into_iter().chain([promotion]).collect() } else { Vec::new() };
    let because = Reason::Step(ReasonStep::AskPeerToPromote { peer: evidence.peer_name().to_owned() });
    Plan::then_look(effects, LOOK_AT_A_LEARNER_MS, Progress { polls_caught_up: polls, ..progress.clone() }, because)
}

/// Promotes the instance while etcd's auth rejects this agent, if the agent saw etcd vote earlier in this boot. Pacemaker would
/// stop etcd after a failed promotion.
fn promote_unseen(evidence: &Evidence, refuses: &NoPermission) -> Plan {
    match evidence.boot_state().filter(|memory| memory.voter.is_some()) {
        Some(memory) => {
            let promoted = Effect::Remember(BootState { promoted: true, ..memory.clone() });
            Plan::exit(vec![promoted], Exit::Success, Reason::Running(unseen(evidence)))
        }
        None => evidence.refuse(Refusal::NoPermission { user: refuses.user.clone() }),
    }
}

/// Promotes the instance of an etcd that does not answer. First the agent queries etcd until little time is left. If etcd is still
/// silent, but was seen as a voter in this boot, the promotion succeeds. Pacemaker would stop etcd if the promotion failed. If etcd is
/// silent because the peer is lost, later monitors act.
fn promote_unanswered(evidence: &Evidence, progress: &Progress) -> Plan {
    let why = evidence.own_silence().to_owned();
    let runs = evidence.container_may_run();
    if runs && evidence.elapsed_ms + PROMOTION_RESERVE_MS < evidence.budget_ms {
        return slow::ask_again(evidence, progress);
    }
    let listens = !evidence.own_etcd.is_absent();
    match evidence.boot_state().filter(|memory| runs && listens && memory.voter.is_some()) {
        Some(memory) => {
            let promoted = Effect::Remember(BootState { promoted: true, ..memory.clone() });
            Plan::exit(vec![promoted], Exit::Success, Reason::Waiting(Wait::OwnAnswer { why }))
        }
        None => evidence.refuse(Refusal::EtcdDoesNotAnswer { why }),
    }
}

fn promoted_as_before(evidence: &Evidence) -> Effect {
    let memory = evidence.boot_state().cloned().unwrap_or_default();
    Effect::Remember(BootState { boot_id: evidence.boot_id.clone(), promoted: true, ..memory })
}

/// Demotes the instance. The member keeps its vote, because only a `stop` removes it from the member list.
pub(in crate::decide) fn decide_demote(evidence: &Evidence) -> Plan {
    let memory = evidence.boot_state().cloned().unwrap_or_default();
    let effects = vec![Effect::Remember(BootState { boot_id: evidence.boot_id.clone(), promoted: false, ..memory })];
    if evidence.container_may_run() {
        return Plan::exit(effects, Exit::Success, Reason::NothingToDo);
    }
    Plan::exit(effects, Exit::NotRunning, Reason::Running(Health::NotRunning))
}
