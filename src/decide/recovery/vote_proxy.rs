//! Running standalone without a restart: etcd runs on, and a vote proxy casts the vote of the member that is confirmed off.
//! The announcement is the same as before a force. It comes back from the CIB before the first vote, because from then on
//! acknowledged writes are on this node only. Where a condition is not met, the agent restarts etcd instead.
//!
//! Before a force, etcd is stopped and then the announcement is published once more: after that no member can win our vote.
//! Here etcd runs on, and its term shows that no member has won it. The term is observed before the announcement is
//! published. It has to be the same once the vote proxy's streams are in the peer's place, because from then on our etcd's
//! vote reaches no other member.

use super::announce::{announced_record, came_back};
use super::proof::{note_unreadable, peer_is_out_of_the_way};
use super::restart;
use super::slow;
use super::vote;
use crate::decide::evidence::{BootState, Evidence};
use crate::decide::plan::{Effect, Next, Phase, Plan, Progress};
use crate::decide::reason::{NoVoteProxy, Reason, ReasonStep, Wait};
use crate::decide::running::upkeep::kept;
use crate::decide::standing::{health, running_exit};
use crate::decide::timing::{
    LOOK_AT_ONCE_MS, LOOK_FOR_A_LEADER_MS, LOOK_FOR_A_WRITE_MS, PATIENCE_AFTER_A_VOTE_MS, PATIENCE_WITH_A_TERM_MS,
    STOP_AND_LAUNCH_NEED_MS, VOTE_PROXY_NEEDS_MS,
};

/// Decides whether a vote proxy casts the dead member's vote. This node has announced that it will run standalone, and etcd keeps
/// running.
pub(super) fn decide_announced(evidence: &Evidence, progress: &Progress, nonce: u64, term: u64) -> Plan {
    let Some(note) = evidence.last_note() else { return evidence.refuse(note_unreadable(evidence)) };
    if let Some(plan) = restart::called_off(evidence) {
        return plan;
    }
    let patience_ms = slow::patience_ms(evidence, PATIENCE_WITH_A_TERM_MS);
    let has_patience = progress.in_phase_ms(evidence.elapsed_ms) < patience_ms;
    let vote = match vote::vote(evidence) {
        Ok(vote) => vote,
        // One observation may miss what the next one finds, and another one costs less than a restart.
        Err(NoVoteProxy::NotTold { .. }) if has_patience && evidence.container_may_run() => {
            let wait = Reason::Waiting(Wait::OwnLeader);
            return Plan::then_look(Vec::new(), LOOK_FOR_A_LEADER_MS, progress.clone(), wait);
        }
        Err(why) => return restart::restart_instead(evidence, progress, why),
    };
    if !came_back(evidence, nonce) {
        return restart::await_own_write(evidence, progress, "the announcement does not appear in it");
    }
    if !slow::has_time_for(evidence, VOTE_PROXY_NEEDS_MS) {
        return slow::go_on_later(evidence);
    }
    if vote.term == term {
        let because = Reason::Step(ReasonStep::VoteProxy { peer: evidence.peer_name().to_owned() });
        let progress = Progress::enter(Phase::StoodIn, evidence.elapsed_ms);
        return Plan::then_look(vec![Effect::VoteProxy(vote)], LOOK_AT_ONCE_MS, progress, because);
    }
    // Without pre-vote a member without a leader raises its term once in a while; its last word is then said once more.
    let record = announced_record(evidence, &note, Some(evidence.nonce));
    match record.filter(|_| has_patience) {
        Some(record) => {
            let phase = Phase::VoteProxy { nonce: evidence.nonce, term: vote.term };
            let progress = Progress { phase, ..progress.clone() };
            Plan::then_look(vec![record], LOOK_FOR_A_WRITE_MS, progress, Reason::Waiting(Wait::OwnRecord))
        }
        None => restart::restart_instead(evidence, progress, NoVoteProxy::TermMoves),
    }
}

/// Decides after the vote proxy has voted, or has failed to. If this node's etcd then leads as the only voter, the recovery is
/// complete. Otherwise the agent restarts etcd.
pub(super) fn decide_stood_in(evidence: &Evidence, progress: &Progress) -> Plan {
    let own = evidence.own_etcd.known().filter(|etcd| etcd.leader.is_some());
    if let Some(etcd) = own.filter(|etcd| etcd.has_one_voter()) {
        let mut plan = kept(evidence, progress, etcd, running_exit(evidence), health(etcd));
        if matches!(plan.next, Next::Exit(_)) {
            plan.because = Reason::Step(ReasonStep::TookOver { restarted: false, ms: evidence.elapsed_ms });
        }
        return plan;
    }
    if evidence.serves_unseen() || !peer_is_out_of_the_way(evidence) {
        return restart::look_anew();
    }
    // The vote proxy was given up after the vote: without its follower the leader steps down after an election time-out or
    // two. Or etcd does not report its state, which proves nothing: a stop may end an etcd that serves.
    let is_silent = evidence.own_etcd.known().is_none() && evidence.own_leaderless.known().is_none();
    let patience_ms = slow::patience_ms(evidence, PATIENCE_AFTER_A_VOTE_MS);
    let has_patience = progress.in_phase_ms(evidence.elapsed_ms) < patience_ms;
    if evidence.container_may_run() && (own.is_some() || (is_silent && has_patience)) {
        if slow::has_time_for(evidence, STOP_AND_LAUNCH_NEED_MS) {
            let wait = Reason::Waiting(Wait::OwnLeader);
            return Plan::then_look(Vec::new(), LOOK_FOR_A_LEADER_MS, progress.clone(), wait);
        }
        return in_vain(evidence, slow::go_on_later(evidence));
    }
    let plan = restart::restart_instead(evidence, progress, NoVoteProxy::InVain);
    if matches!(plan.next, Next::Exit(_)) { in_vain(evidence, plan) } else { plan }
}

/// Adds an effect to the plan: the agent stores for this boot that a vote proxy voted in vain ([`BootState::in_vain`]). Without
/// this, the next action would try a vote proxy again, and would have no time left for the restart.
fn in_vain(evidence: &Evidence, mut plan: Plan) -> Plan {
    let memory = evidence.boot_state().map(|memory| BootState { in_vain: true, ..memory.clone() });
    plan.effects.extend(memory.map(Effect::Remember));
    plan
}
