//! Extensions of the times in `timing.rs` for a slow machine. On a fast one nothing here differs from them.

use crate::decide::evidence::{Evidence, PeerAgent};
use crate::decide::plan::{Exit, Plan, Progress};
use crate::decide::reason::{Reason, Refusal, Wait};
use crate::decide::standing::running_exit;
use crate::decide::timing::{
    FORCE_GRACE_S, LAUNCH_NEEDS_MS, LOOK_AGAIN_MS, PATIENCE_WITH_AN_EARLIER_ACTION_MS, STOP_AND_LAUNCH_NEED_MS,
};

/// Least number of observations in a wait. With fewer, a slow machine would not see what it waits for.
const LOOKS_AT_LEAST: u64 = 3;
/// Greatest number of consecutive actions that may postpone a recovery to the next action. The notification after fencing may be the
/// second of them, and has twice a monitor's time. If that is not enough either, only a start has the time to restart etcd.
const POSTPONED_AT_MOST: u64 = 3;

/// Returns the wait `ms`, or a longer one on a machine so slow that it would have too few observations in that time.
pub(in crate::decide) fn patience_ms(evidence: &Evidence, ms: u64) -> u64 {
    ms.max(evidence.pace.look_ms.saturating_mul(LOOKS_AT_LEAST))
}

/// Returns whether an etcd that accepts connections has left too few queries unanswered to count as dead. On a busy machine etcd may serve
/// its clients and still answer late, and a failed monitor would restart it. If a monitor's time ends before that, the next monitor
/// continues.
pub(in crate::decide) fn may_answer_yet(evidence: &Evidence) -> bool {
    (1..LOOKS_AT_LEAST).contains(&evidence.pace.unanswered)
}

/// Observes again, because this node's etcd has not answered.
pub(in crate::decide) fn ask_again(evidence: &Evidence, progress: &Progress) -> Plan {
    await_answer(evidence.own_silence(), progress)
}

/// Observes again, because this node's etcd has not answered for the reason `why`.
pub(in crate::decide) fn await_answer(why: &str, progress: &Progress) -> Plan {
    let wait = Wait::OwnAnswer { why: why.to_owned() };
    Plan::then_look(Vec::new(), LOOK_AGAIN_MS, progress.clone(), Reason::Waiting(wait))
}

/// Returns whether an etcd that answers late may be serving standalone, so that it must not be stopped. After a stop in good order the peer
/// has normally left the member list. After a fencing this returns false, unless etcd's auth hides the voters from this agent.
pub(super) fn may_serve_alone(evidence: &Evidence) -> bool {
    let has_left = || evidence.cib.known().is_some_and(|cib| cib.peer_agent == PeerAgent::Stopped);
    may_answer_yet(evidence) && (evidence.own_refuses.is_some() || has_left())
}

/// Returns how many milliseconds to wait for an earlier action that still launches the container, because ending it would leave the
/// container half made. Half of this action's time is kept for what follows.
pub(in crate::decide) fn patience_with_an_earlier_action_ms(evidence: &Evidence) -> u64 {
    evidence.pace.launch_ms.min(evidence.budget_ms / 2).max(PATIENCE_WITH_AN_EARLIER_ACTION_MS)
}

/// Returns whether the action has `needed_ms` milliseconds left. Of a short time-out at most half is required, because otherwise the action
/// would never begin.
pub(super) fn has_time_for(evidence: &Evidence, needed_ms: u64) -> bool {
    evidence.elapsed_ms + needed_ms.min(evidence.budget_ms / 2) <= evidence.budget_ms
}

/// Returns whether a launch of the container would end within this action. A launch that is cut short leaves the container half made, and a
/// start may follow this action.
pub(super) fn has_time_to_launch(evidence: &Evidence) -> bool {
    has_time_for(evidence, LAUNCH_NEEDS_MS) && evidence.elapsed_ms + evidence.pace.launch_ms <= evidence.budget_ms
}

/// Returns whether a start has the time to launch the container. A start requires less time than other actions do, because no later action
/// has more.
pub(in crate::decide) fn has_time_to_launch_at_last(evidence: &Evidence) -> bool {
    has_time_for(evidence, evidence.pace.launch_ms.max(LAUNCH_NEEDS_MS))
}

/// Returns whether this action has the time to begin a recovery: to write it down, publish it and observe again. At first this is true
/// without a check. Once several consecutive actions ended in the middle of a recovery, the measured time has to be left.
pub(super) fn has_time_to_announce(evidence: &Evidence) -> bool {
    let needed_ms = evidence.pace.look_ms.saturating_mul(2).saturating_add(STOP_AND_LAUNCH_NEED_MS);
    evidence.pace.postponed < POSTPONED_AT_MOST || evidence.elapsed_ms + needed_ms <= evidence.budget_ms
}

/// Returns whether the action has the time to end etcd, wait for the CIB and launch etcd.
pub(super) fn has_time_to_stop_and_launch(evidence: &Evidence) -> bool {
    has_time_for(evidence, STOP_AND_LAUNCH_NEED_MS)
        && evidence.elapsed_ms + stop_and_launch_ms(evidence) <= evidence.budget_ms
}

/// Returns the measured milliseconds for ending etcd, waiting for the CIB and launching etcd. The CIB takes two observations: one writes
/// the record, and the next one reads it.
fn stop_and_launch_ms(evidence: &Evidence) -> u64 {
    let stop_ms = STOP_AND_LAUNCH_NEED_MS - LAUNCH_NEEDS_MS;
    let slow_stop_ms = FORCE_GRACE_S * 1_000 + evidence.pace.look_ms.saturating_mul(2);
    match evidence.pace.launch_ms {
        0 => 0,
        launch_ms => launch_ms.saturating_add(stop_ms.max(slow_stop_ms)),
    }
}

/// Postpones a recovery to the next monitor, which has its whole time a few seconds later. Until then, etcd stays as it is. If
/// [`POSTPONED_AT_MOST`] actions have postponed the recovery already, fails the action. Pacemaker then stops and starts etcd, and a start
/// has enough time.
pub(super) fn go_on_later(evidence: &Evidence) -> Plan {
    if evidence.pace.postponed >= POSTPONED_AT_MOST {
        let needed_ms = stop_and_launch_ms(evidence).max(STOP_AND_LAUNCH_NEED_MS);
        return evidence.refuse(Refusal::NoTimeToGoOn { needed_ms });
    }
    Plan::exit(Vec::new(), running_exit(evidence), Reason::Waiting(Wait::MoreTime))
}

/// Fails this action, because etcd is stopped and the time is short. The start that follows continues the recovery with its whole time.
pub(super) fn go_on_with_a_start() -> Plan {
    Plan::exit(Vec::new(), Exit::Retriable, Reason::Waiting(Wait::MoreTime))
}
