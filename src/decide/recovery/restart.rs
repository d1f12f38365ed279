//! The way of a recovery that is always left: etcd is stopped, the CIB read behind a write of our own, the commit index
//! advanced, and a new cluster forced from the data.

use super::announce::{announced_record, announcement_is_seen, came_back, carried_out, may_be_announced};
use super::proof::{
    is_confirmed, note_unreadable, operator_confirmed, peer_is_out_of_the_way, proves_that_the_peer_did_not_go_on,
    told_to, votes_among_many, without_proof,
};
use super::slow;
use super::vote;
use crate::decide::evidence::{DataDir, Evidence, PublishedState};
use crate::decide::peer::{PeerStatus, peer_word};
use crate::decide::plan::{Effect, Exit, Phase, Plan, Progress, RunMode};
use crate::decide::reason::{NoVoteProxy, Reason, ReasonStep, Refusal, Rule, Wait};
use crate::decide::standing::{Standing, database_is_ahead, history_position, plain_start};
use crate::decide::start::cold_start::{self, Chosen, Cluster, ColdStart};
use crate::decide::start::serve;
use crate::decide::timing::{
    FORCE_GRACE_S, LOOK_AFTER_A_CHANGE_MS, LOOK_AT_ONCE_MS, LOOK_FOR_A_WRITE_MS, PATIENCE_WITH_THE_CIB_MS,
};

/// Returns whether this agent forced the running etcd to be the only voter, and etcd has not served since. Until etcd serves, its
/// configuration file contains the force. If the durable note cannot be read, the function assumes that this agent forced etcd.
pub(super) fn was_forced(evidence: &Evidence) -> bool {
    let forces = evidence.container.known().is_some_and(|container| container.running && container.forces_new_cluster);
    forces && may_be_announced(evidence)
}

/// Decides the next step after this node has announced that it will run standalone, while etcd still runs. The agent stops etcd
/// only once the announcement is visible in the CIB.
pub(in crate::decide) fn decide_announced(evidence: &Evidence, progress: &Progress) -> Plan {
    restart_instead(evidence, progress, vote::vote(evidence).err().unwrap_or(NoVoteProxy::NotWanted))
}

/// Restarts etcd, because no vote proxy may vote. `why` is the reason. A restart is possible wherever a vote proxy is not.
pub(super) fn restart_instead(evidence: &Evidence, progress: &Progress, why: NoVoteProxy) -> Plan {
    let step =
        if why == NoVoteProxy::NotWanted { ReasonStep::StopBeforeForce } else { ReasonStep::RestartInstead { why } };
    stop_before_force(evidence, &Progress { phase: Phase::Announced, ..progress.clone() }, step)
}

fn stop_before_force(evidence: &Evidence, progress: &Progress, because: ReasonStep) -> Plan {
    let Some(note) = evidence.last_note() else { return evidence.refuse(note_unreadable(evidence)) };
    if !announcement_is_seen(evidence) {
        return await_own_write(evidence, progress, "the announcement does not appear in it");
    }
    let runs = evidence.container_may_run();
    if let Some(plan) = called_off(evidence).filter(|_| runs) {
        return plan;
    }
    if runs && slow::may_serve_alone(evidence) {
        return slow::ask_again(evidence, progress);
    }
    if runs && !slow::has_time_to_stop_and_launch(evidence) {
        return slow::go_on_later(evidence);
    }
    let nonce = evidence.nonce;
    let record = announced_record(evidence, &note, Some(nonce));
    if !runs && record.is_none() {
        return evidence.refuse(Refusal::DiskUnreadable { why: evidence.disk.why_unknown().to_owned() });
    }
    // Without a record to write, which a running etcd may cause, the next round tries again.
    let phase = if record.is_some() { Phase::Barrier { nonce } } else { Phase::Announced };
    let stop = runs.then_some(Effect::StopContainer { grace_s: FORCE_GRACE_S });
    let effects = stop.into_iter().chain(record).collect();
    Plan::then_look(effects, LOOK_AT_ONCE_MS, Progress::enter(phase, evidence.elapsed_ms), Reason::Step(because))
}

/// Calls off a recovery if the peer has come back and may vote, if a third voter votes, or if this node's etcd has a leader. The
/// agent neither stops etcd nor uses a vote proxy. The CIB still records a forced new cluster, which does not count: see
/// `proof::is_newest`.
pub(super) fn called_off(evidence: &Evidence) -> Option<Plan> {
    (evidence.has_a_leader() || votes_among_many(evidence) || !peer_is_out_of_the_way(evidence)).then(look_anew)
}

pub(super) fn look_anew() -> Plan {
    Plan::then_look(Vec::new(), LOOK_AT_ONCE_MS, Progress::default(), Reason::Waiting(Wait::OwnLeader))
}

/// Decides what to start once etcd is stopped and this node's own CIB contains the record that the agent published after the
/// stop.
///
/// Pacemaker applies writes in one order on all nodes, so a CIB with that record is newer than the stop. After the stop, no peer
/// gets a leader without this node's vote.
///
/// A voter needs two things to run standalone. It first publishes its claim, and then stores for this boot that it votes
/// (`upkeep::claim_and_remember`). So a peer that has no claim in this CIB cannot run standalone. In an older CIB, the claim of a
/// running peer could be missing, and both nodes would run standalone.
pub(in crate::decide) fn decide_at_the_barrier(
    evidence: &Evidence,
    progress: &Progress,
    nonce: u64,
    has_time: bool,
) -> Plan {
    if was_forced(evidence) {
        // podman was cut short, or failed after all: what it launched runs.
        let mode = RunMode::ForceNewCluster;
        let progress = Progress::enter(Phase::Started(mode.clone()), evidence.elapsed_ms);
        return serve::started(evidence, &progress, &mode);
    }
    if evidence.container_may_run() {
        return evidence.refuse(Refusal::StillRunning);
    }
    if evidence.own_lineage().is_none() {
        return evidence.refuse(note_unreadable(evidence));
    }
    if !came_back(evidence, nonce) {
        return await_own_write(evidence, progress, "the last word before running standalone does not appear in it");
    }
    if !has_time {
        return slow::go_on_with_a_start();
    }
    decide_stopped(evidence)
}

pub(super) fn await_own_write(evidence: &Evidence, progress: &Progress, in_vain: &str) -> Plan {
    if progress.in_phase_ms(evidence.elapsed_ms) > slow::patience_ms(evidence, PATIENCE_WITH_THE_CIB_MS) {
        return evidence.refuse(Refusal::CibUnreadable { why: in_vain.to_owned() });
    }
    Plan::then_look(Vec::new(), LOOK_FOR_A_WRITE_MS, progress.clone(), Reason::Waiting(Wait::OwnRecord))
}

const FORCE: [Effect; 2] = [Effect::AdvanceCommit, Effect::RunContainer(RunMode::ForceNewCluster)];

/// Decides once etcd has ended. The agent now reads etcd's data, and checks again whether it may force a new cluster from it.
fn decide_stopped(evidence: &Evidence) -> Plan {
    let Some(disk) = evidence.disk.known() else {
        return evidence.refuse(Refusal::DiskUnreadable { why: evidence.disk.why_unknown().to_owned() });
    };
    let kind = evidence.standing(disk);
    let forces = matches!(kind, Standing::VoterBeside(_)) && !peer_came_back(evidence);
    if forces && !may_force(evidence, disk) {
        return refuse_at_the_barrier(evidence, disk);
    }
    if let Some(refusal) = database_is_ahead(disk).filter(|_| forces || kind == Standing::SoleVoter) {
        return evidence.refuse(refusal);
    }
    let (effects, mode, because) = match kind {
        Standing::VoterBeside(_) if forces => (
            carried_out(evidence).into_iter().chain(FORCE).collect(),
            RunMode::ForceNewCluster,
            Reason::Step(ReasonStep::AdvanceAndForce),
        ),
        Standing::VoterBeside(_) => {
            (vec![Effect::RunContainer(RunMode::Normally)], RunMode::Normally, evidence.rule(Rule::PeerCameBack))
        }
        Standing::SoleVoter if lost_what_kept_it(evidence, disk) => return look_whose_is_kept(evidence),
        Standing::SoleVoter => (plain_start(disk), RunMode::Normally, evidence.rule(Rule::SoleVoter)),
        Standing::VoterAmongMany => {
            // A third one was promoted meanwhile: what was announced is called off, and the peer is to know (`proof::was_called_off`).
            let told = evidence.published_state().map(Effect::PublishRecord);
            let effects = told.into_iter().chain([Effect::RunContainer(RunMode::Normally)]).collect();
            (effects, RunMode::Normally, evidence.rule(Rule::MoreThanTwoVoters))
        }
        Standing::Nothing | Standing::Learner | Standing::Departed => return evidence.refuse(Refusal::NoVotersData),
    };
    let progress = Progress::enter(Phase::Started(mode), evidence.elapsed_ms);
    Plan::then_look(effects, LOOK_AFTER_A_CHANGE_MS, progress, because)
}

/// Returns whether `two_histories=primary` no longer keeps the history of this sole voter. That is so if no operator decided for
/// this history, and the peer's record is missing or makes it one of two histories. The agent has read that record again after
/// this node's own write.
fn lost_what_kept_it(evidence: &Evidence, disk: &DataDir) -> bool {
    let (Some(cib), Some(me)) = (evidence.cib.known(), evidence.published_state()) else { return false };
    let DataDir::Present(history) = disk else { return false };
    let is_kept = evidence.preferred() == Some(&evidence.me.name) && evidence.peer.is_some();
    let is_vouched_for = Chosen::seen_in(evidence, cib) == Chosen::Me
        || told_to(evidence)
        || operator_confirmed(evidence, history)
        || peer_word(evidence) == PeerStatus::Down;
    let split = ColdStart::Refuse(Refusal::HistoriesSplit);
    let answer = |peer| cold_start::answer_here(evidence, &me, peer, &Cluster::seen_in(evidence, cib));
    is_kept && !is_vouched_for && cib.peer_record.as_ref().is_none_or(|peer| answer(peer) == split)
}

/// Begins the action again. The rules of a start then decide which of two histories continues.
fn look_whose_is_kept(evidence: &Evidence) -> Plan {
    let because = Reason::Waiting(Wait::PeerRecord { peer: evidence.peer_name().to_owned() });
    Plan::then_look(Vec::new(), LOOK_AT_ONCE_MS, Progress::default(), because)
}

/// Refuses to force a new cluster, because this node no longer has a proof that its data is complete. Deletes an operator's
/// confirmation that was given for other data. With that confirmation, each later start would prepare a force and stop etcd in
/// vain.
fn refuse_at_the_barrier(evidence: &Evidence, disk: &DataDir) -> Plan {
    let position = history_position(disk);
    if !is_confirmed(evidence) {
        return evidence.refuse(without_proof(evidence, position));
    }
    let refusal = Refusal::ConfirmationIsOutdated { position };
    let because = Reason::Refused { refusal, peer: evidence.peer_name().to_owned() };
    Plan::exit(vec![Effect::ConsumeConfirmation], Exit::Retriable, because)
}

/// Returns whether the peer has come back and may hold data. In that case a plain start is right, because this member is one of
/// two voters.
fn peer_came_back(evidence: &Evidence) -> bool {
    // `force_new_cluster` on this node overrides a peer that is online, too, as long as its etcd does not answer.
    let answers = evidence.peer_etcd.known().is_some() || evidence.peer_refuses.is_some();
    let given_up = told_to(evidence) && !answers;
    evidence.peer.is_some() && !peer_is_out_of_the_way(evidence) && !r2_says_force(evidence) && !given_up
}

fn r2_says_force(evidence: &Evidence) -> bool {
    r2_rule_of_a_force(evidence).is_some()
}

/// Returns the rule by which the table of cold starts (R2) makes this node force a new cluster; `None` if the table has another
/// result.
///
/// Also returns `None` if the peer may be running: it claims to run standalone, is lost, or is in an unknown state. While etcd
/// runs, the agent does not read its data, and takes the voters from this node's published record. It checks the data before the
/// force.
pub(super) fn r2_rule_of_a_force(evidence: &Evidence) -> Option<Rule> {
    let (cib, note) = (evidence.cib.known()?, evidence.last_note()?);
    // What was published before this node joined is of data that it has backed up since. For the rest the note is
    // newer: it knows of the fork that we announced ourselves, and of those that we took over.
    let published = cib.own_record.clone().filter(|_| !note.joins);
    let left = note.left_at.is_some();
    let published = published.map(|record| PublishedState { lineage: note.lineage.clone(), left, ..record });
    let own = evidence.published_state().or(published);
    let (me, peer) = (own?, cib.peer_record.as_ref()?);
    let may_run = matches!(peer_word(evidence), PeerStatus::Lost | PeerStatus::Unknown(_));
    match cold_start::answer_here(evidence, &me, peer, &Cluster::seen_in(evidence, cib)) {
        ColdStart::ForceNewCluster(rule) if !may_run && !peer.claims => Some(rule),
        _ => None,
    }
}

/// Returns whether the reason to force a new cluster also holds for this node's data. The agent could read the data only once
/// etcd had ended.
fn may_force(evidence: &Evidence, disk: &DataDir) -> bool {
    let DataDir::Present(history) = disk else { return false };
    evidence.peer.is_none()
        || r2_says_force(evidence)
        || proves_that_the_peer_did_not_go_on(evidence, history)
        || operator_confirmed(evidence, history)
        || told_to(evidence)
}
