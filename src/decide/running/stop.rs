//! Stopping: a voter leaves first, where the peer can continue without a pause; the last voter never leaves, and two that
//! stop together both stay listed.

use super::others;
use super::reached;
use crate::base::Fact;
use crate::decide::evidence::{BootState, DataDir, DataEnd, DurableState, Etcd, Evidence, PublishedState};
use crate::decide::peer::{PeerStatus, peer_word};
use crate::decide::plan::{Effect, Exit, Notice, Phase, Plan, Progress, Via};
use crate::decide::reason::{Health, Reason, ReasonStep, Refusal, Wait};
use crate::decide::recovery::slow;
use crate::decide::standing::position;
use crate::decide::timing::{
    LOOK_AFTER_A_CHANGE_MS, LOOK_AGAIN_MS, LOOK_AT_ONCE_MS, LOOK_FOR_THE_END_MS, PATIENCE_WITH_LEAVING_MS,
    PATIENCE_WITH_THE_CIB_MS, PATIENCE_WITH_THE_HANDOVER_MS, QUICK_FAILURES, STOP_GRACE_S, STOP_RESERVE_MS,
};

pub(in crate::decide) fn decide(evidence: &Evidence, progress: &Progress) -> Plan {
    if is_gone(evidence, progress) {
        return await_the_cib(evidence, progress).unwrap_or_else(|| finish(evidence, progress));
    }
    if progress.phase == Phase::Stopped {
        return wait_for_the_end(evidence, progress);
    }
    match may_leave(evidence) {
        Some(etcd) if evidence.elapsed_ms < PATIENCE_WITH_LEAVING_MS => leave(evidence, progress, etcd),
        _ => stop_container(evidence),
    }
}

/// Returns whether etcd has ended, and no process of an earlier action is about to start it. podman reports whether etcd has
/// ended. If podman still does not answer after the agent ended etcd without it, no process may hold the data or listen on etcd's
/// port.
fn is_gone(evidence: &Evidence, progress: &Progress) -> bool {
    let podman_is_mute = matches!(evidence.container, Fact::Unknown(_));
    let nothing_lives = evidence.data_in_use == Fact::Known(false) && evidence.own_etcd.is_absent();
    let is_over =
        !evidence.container_may_run() || (progress.phase == Phase::Stopped && podman_is_mute && nothing_lives);
    is_over && !evidence.may_be_launching()
}

/// Returns this node's etcd if it may leave the member list. It may if it is one of two voters, and the other voter has started, serves
/// and is not being stopped.
fn may_leave(evidence: &Evidence) -> Option<&Etcd> {
    let own = evidence.own_etcd.known().filter(|etcd| etcd.is_voter_with_leader())?;
    let peer = evidence.peer.as_ref()?;
    let others = evidence.peer_etcd.known().filter(|etcd| etcd.is_voter_with_leader())?;
    // By the id that answers at the peer's address: the peer's member may have been given another URL.
    let entry = own.members.iter().find(|entry| entry.id == others.member_id && entry.id != own.member_id)?;
    let restarts = evidence.cib.known().is_some_and(|cib| cib.others.restart_no_leave);
    let both_vote = own.voters().count() == 2 && !entry.is_learner && entry.has_started();
    let peer_stays = match &evidence.notify {
        Some(notify) => !notify.stop.contains(&peer.name) && peer_word(evidence) == PeerStatus::Active,
        None => peer_word(evidence) == PeerStatus::Active,
    };
    // Leaving is written down in the note, in addition to what it contains already.
    let may_note = evidence.last_note().is_some();
    (!restarts && both_vote && peer_stays && may_note && others.cluster_id == own.cluster_id).then_some(own)
}

fn leave(evidence: &Evidence, progress: &Progress, own: &Etcd) -> Plan {
    let peer = evidence.peer_name().to_owned();
    let handed_over_for_ms = progress.in_phase_ms(evidence.elapsed_ms);
    let trying = progress.phase == Phase::HandedOver;
    if own.leads() && !(trying && handed_over_for_ms > PATIENCE_WITH_THE_HANDOVER_MS) {
        let to = evidence.peer_etcd.known().map(|etcd| etcd.member_id).unwrap_or_default();
        let effects = if trying { Vec::new() } else { vec![Effect::MoveLeader { to }] };
        let progress = if trying { progress.clone() } else { Progress::enter(Phase::HandedOver, evidence.elapsed_ms) };
        return Plan::then_look(
            effects,
            LOOK_AFTER_A_CHANGE_MS,
            progress,
            Reason::Step(ReasonStep::HandOverLeadership { peer }),
        );
    }
    // A node that may leave knows its note.
    let note = evidence.last_note().unwrap_or_default();
    // From here on the peer may be the one that runs standalone; what this node announced and did not do is taken back.
    let (left_at, of) = (Some(own.position()), evidence.own_data());
    let note = DurableState { alone_since: None, alone_revision: None, without: None, left_at, of, ..note };
    let lock = Effect::TellOthers(Notice::Leaving);
    let effects = vec![Effect::WriteNote(note), lock, Effect::RemoveMember { id: own.member_id, via: Via::Peer }];
    let progress = Progress::enter(Phase::Left, evidence.elapsed_ms);
    Plan::then_look(effects, LOOK_AT_ONCE_MS, progress, Reason::Step(ReasonStep::LeaveBeforeStop { peer }))
}

fn stop_container(evidence: &Evidence) -> Plan {
    let left_s = evidence.budget_ms.saturating_sub(evidence.elapsed_ms + STOP_RESERVE_MS) / 1000;
    let effects = vec![Effect::StopContainer { grace_s: STOP_GRACE_S.min(left_s) }];
    Plan::then_look(
        effects,
        LOOK_AT_ONCE_MS,
        Progress::enter(Phase::Stopped, evidence.elapsed_ms),
        Reason::Step(ReasonStep::StopEtcd),
    )
}

/// Waits until etcd has ended, because `stop` may succeed only when no etcd process of this resource is alive.
fn wait_for_the_end(evidence: &Evidence, progress: &Progress) -> Plan {
    if evidence.elapsed_ms + STOP_RESERVE_MS > evidence.budget_ms {
        return match (&evidence.container, &evidence.launching) {
            (Fact::Unknown(why), _) | (_, Fact::Unknown(why)) => {
                evidence.refuse(Refusal::ContainerUnknown { why: why.clone() })
            }
            _ => evidence.refuse(Refusal::StillRunning),
        };
    }
    if progress.in_phase_ms(evidence.elapsed_ms) > STOP_GRACE_S * 1000 {
        return stop_container(evidence);
    }
    Plan::then_look(Vec::new(), LOOK_FOR_THE_END_MS, progress.clone(), Reason::Waiting(Wait::EtcdToStop))
}

/// Waits for a CIB that answers, because it shows the claim to run standalone that a stop keeps or gives up. Waits only as long
/// as time permits. `None` if [`BootState::voter`] is not set, because the node has no claim in that case.
fn await_the_cib(evidence: &Evidence, progress: &Progress) -> Option<Plan> {
    let remembers = evidence.boot_state().is_some_and(|memory| memory.voter.is_some());
    let has_time = evidence.elapsed_ms + STOP_RESERVE_MS <= evidence.budget_ms
        && progress.in_phase_ms(evidence.elapsed_ms) < slow::patience_ms(evidence, PATIENCE_WITH_THE_CIB_MS);
    (evidence.cib.known().is_none() && remembers && has_time)
        .then(|| Plan::then_look(Vec::new(), LOOK_AGAIN_MS, progress.clone(), Reason::Waiting(Wait::OwnRecord)))
}

/// Ends a stop once etcd has ended. Records what later decisions on both nodes rely on, such as the position at which this node's
/// data ends.
fn finish(evidence: &Evidence, progress: &Progress) -> Plan {
    let voter = evidence.remembered_voter().cloned().filter(|_| keeps_its_claim(evidence));
    let claims = voter.is_some();
    // What is kept unseen is not said anew, either: whatever the CIB has of it counts.
    let is_unseen = claims && evidence.cib.known().is_none();
    let memory = evidence.boot_state().cloned().unwrap_or_default();
    let boot_id = evidence.boot_id.clone();
    let ended_at = ended_at(evidence, progress);
    // The other half of a restart has no leader, either.
    let leaderless_since_s = memory.leaderless_since_s.filter(|_| claims);
    let memory = BootState { boot_id, voter, promoted: false, ended_at, hand_over: None, leaderless_since_s, ..memory };
    let mut effects = vec![Effect::Remember(memory)];
    // Where note or data cannot be read, the published record stays, except for the claim. A node that gave its claim up
    // only in memory would keep a peer waiting for it without end.
    let said_before = || evidence.cib.known().and_then(|cib| cib.own_record.clone());
    if let Some(record) = evidence.published_state().or_else(said_before).filter(|_| !is_unseen) {
        effects.push(Effect::PublishRecord(PublishedState { claims: claims && record.claims, ..record }));
    }
    effects.extend(others::revision(evidence));
    effects.extend(reached::at_the_end(evidence));
    let learner = evidence.cib.known().and_then(|cib| cib.learner_node.as_ref());
    if learner == Some(&evidence.me.name) {
        effects.push(Effect::SetLearner(None));
    }
    if evidence.promotable {
        effects.push(Effect::SetPromotionScore(None));
    }
    if evidence.cib.known().is_some_and(|cib| cib.own_alarm.is_some()) {
        effects.push(Effect::SetAlarm(None));
    }
    if evidence.cib.known().is_some_and(|cib| cib.own_image.is_some()) {
        effects.push(Effect::PublishImage(None));
    }
    Plan::exit(effects, Exit::Success, Reason::Running(Health::Stopped))
}

/// Returns the position at which this node's data ends. The next start in this boot compares it with the data that it finds.
///
/// If the data ended further at an earlier stop, the function returns that earlier end. No etcd has served since that stop
/// (`upkeep`), so the data was put back between the two stops.
fn ended_at(evidence: &Evidence, progress: &Progress) -> Option<DataEnd> {
    let before = evidence.boot_state().and_then(|memory| memory.ended_at.clone());
    let Some(DataDir::Present(history)) = evidence.disk.known() else { return before };
    let (cluster_id, member_id) = (history.cluster_id, history.member_id);
    let died = before.is_none() && progress.phase == Phase::Begin && evidence.remembered_voter().is_some();
    let found_dead = died || before.as_ref().is_some_and(|before| before.found_dead);
    let now = DataEnd { cluster_id, member_id, position: position(history), found_dead };
    let is_further = |before: &DataEnd| {
        (before.cluster_id, before.member_id) == (cluster_id, member_id) && before.position > now.position
    };
    Some(before.filter(is_further).unwrap_or(now))
}

/// Returns whether a stop keeps this node's claim to run standalone. It keeps the claim in two cases: the stop is half of a
/// restart, or the peer's machine has left the membership and cannot see the stop. Every other stop gives up the claim, so that
/// the peer may continue without this node.
///
/// Two stops give up the claim in any case: one after this member asked the peer to remove it, and the one in a restart after
/// several starts in vain.
fn keeps_its_claim(evidence: &Evidence) -> bool {
    let is_restart = evidence.notify.as_ref().is_some_and(|notify| notify.start.contains(&evidence.me.name));
    let restarts = is_restart && !starts_in_vain(evidence);
    let said_so = evidence.cib.known().is_some_and(|cib| cib.others.restart_no_leave);
    (restarts || said_so || matches!(peer_word(evidence), PeerStatus::Down | PeerStatus::Lost))
        && !evidence.may_have_left()
}

/// Returns whether etcd fails to start here. It does if [`QUICK_FAILURES`] or more starts have failed since etcd last served.
fn starts_in_vain(evidence: &Evidence) -> bool {
    let before = evidence.boot_state().map_or(0, |memory| memory.start_failures);
    let counted = evidence.cib.known().map_or(0, |cib| cib.own_start_failures);
    counted.saturating_sub(before) >= QUICK_FAILURES
}
