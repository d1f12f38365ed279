//! Extensions of the times in `timing.rs` for a slow machine. On a fast one nothing here differs from them.

use crate::decide::evidence::{Evidence, PeerAgent};
use crate::decide::plan::{Exit, Plan, Progress};
use crate::decide::reason::{Reason, Refusal, Wait};
use crate::decide::standing::running_exit;
use crate::decide::timing::{
    FORCE_GRACE_S, LAUNCH_NEEDS_MS, LOOK_AGAIN_MS, PATIENCE_WITH_AN_EARLIER_ACTION_MS, STOP_AND_LAUNCH_NEED_MS,
};

/// A patience that ends before so many looks is none: what is waited for would never be seen.
const LOOKS_AT_LEAST: u64 = 3;
/// The number of actions in a row that leave a recovery to the next one. The notification that follows fencing has twice a
/// monitor's time and may come behind a monitor; where it does not have enough either, a start is to follow.
const POSTPONED_AT_MOST: u64 = 3;

/// Returns this patience, or a longer one where it would hold too few observations.
pub(in crate::decide) fn patience_ms(evidence: &Evidence, ms: u64) -> u64 {
    ms.max(evidence.pace.look_ms.saturating_mul(LOOKS_AT_LEAST))
}

/// Returns whether an etcd that takes connections was asked in vain too seldom to be called dead. A busy machine may keep it
/// from its answer while it serves its clients, and a failed monitor would restart it. A monitor's time may not hold so many
/// observations; the next one has all of its own.
pub(in crate::decide) fn may_answer_yet(evidence: &Evidence) -> bool {
    (1..LOOKS_AT_LEAST).contains(&evidence.pace.unanswered)
}

/// Asks our etcd once more, which has not answered.
pub(in crate::decide) fn ask_again(evidence: &Evidence, progress: &Progress) -> Plan {
    await_answer(evidence.own_silence(), progress)
}

/// Looks again for an answer of our etcd, which is missing for this reason.
pub(in crate::decide) fn await_answer(why: &str, progress: &Progress) -> Plan {
    let wait = Wait::OwnAnswer { why: why.to_owned() };
    Plan::then_look(Vec::new(), LOOK_AGAIN_MS, progress.clone(), Reason::Waiting(wait))
}

/// Returns whether an etcd that is late may serve standalone. A peer that was stopped in good order has left, as a rule, and
/// an etcd that serves is not stopped for one late answer. After a fencing nothing is waited for, unless etcd's auth keeps
/// the voters from this agent.
pub(super) fn may_serve_alone(evidence: &Evidence) -> bool {
    let has_left = || evidence.cib.known().is_some_and(|cib| cib.peer_agent == PeerAgent::Stopped);
    may_answer_yet(evidence) && (evidence.own_refuses.is_some() || has_left())
}

/// Returns the patience with an earlier action that still launches the container: ending it would leave a container that was
/// half made. Half of our own time is for what follows.
pub(in crate::decide) fn patience_with_an_earlier_action_ms(evidence: &Evidence) -> u64 {
    evidence.pace.launch_ms.min(evidence.budget_ms / 2).max(PATIENCE_WITH_AN_EARLIER_ACTION_MS)
}

/// Returns whether so much time is left. Of a short budget not more than half is asked for, because an action that never has
/// enough would never begin.
pub(super) fn has_time_for(evidence: &Evidence, needed_ms: u64) -> bool {
    evidence.elapsed_ms + needed_ms.min(evidence.budget_ms / 2) <= evidence.budget_ms
}

/// Returns whether a launch ends in this action, after which a start may follow. A launch that is cut short leaves a
/// container that was half made.
pub(super) fn has_time_to_launch(evidence: &Evidence) -> bool {
    has_time_for(evidence, LAUNCH_NEEDS_MS) && evidence.elapsed_ms + evidence.pace.launch_ms <= evidence.budget_ms
}

/// Returns the same for a start, because no later action has more time.
pub(in crate::decide) fn has_time_to_launch_at_last(evidence: &Evidence) -> bool {
    has_time_for(evidence, evidence.pace.launch_ms.max(LAUNCH_NEEDS_MS))
}

/// Returns whether this action has the time to begin a recovery: to write it down, publish it and observe again. It has,
/// until that many actions in a row ended in the middle of one. From then on the measured time has to be left.
pub(super) fn has_time_to_announce(evidence: &Evidence) -> bool {
    let needed_ms = evidence.pace.look_ms.saturating_mul(2).saturating_add(STOP_AND_LAUNCH_NEED_MS);
    evidence.pace.postponed < POSTPONED_AT_MOST || evidence.elapsed_ms + needed_ms <= evidence.budget_ms
}

/// Returns whether etcd can be ended, the CIB's answer awaited, and etcd launched.
pub(super) fn has_time_to_stop_and_launch(evidence: &Evidence) -> bool {
    has_time_for(evidence, STOP_AND_LAUNCH_NEED_MS)
        && evidence.elapsed_ms + stop_and_launch_ms(evidence) <= evidence.budget_ms
}

/// Returns the measured time: the CIB's answer takes two observations, because one is needed to write and one to read.
fn stop_and_launch_ms(evidence: &Evidence) -> u64 {
    let stop_ms = STOP_AND_LAUNCH_NEED_MS - LAUNCH_NEEDS_MS;
    let slow_stop_ms = FORCE_GRACE_S * 1_000 + evidence.pace.look_ms.saturating_mul(2);
    match evidence.pace.launch_ms {
        0 => 0,
        launch_ms => launch_ms.saturating_add(stop_ms.max(slow_stop_ms)),
    }
}

/// Leaves etcd as it is to the next monitor, which has all its time a few seconds later. Where that is never enough the
/// action fails: a stop and a start follow, and a start has the time.
pub(super) fn go_on_later(evidence: &Evidence) -> Plan {
    if evidence.pace.postponed >= POSTPONED_AT_MOST {
        let needed_ms = stop_and_launch_ms(evidence).max(STOP_AND_LAUNCH_NEED_MS);
        return evidence.refuse(Refusal::NoTimeToGoOn { needed_ms });
    }
    Plan::exit(Vec::new(), running_exit(evidence), Reason::Waiting(Wait::MoreTime))
}

/// Fails this action, because etcd is stopped; the start that follows continues from here, with all its time.
pub(super) fn go_on_with_a_start() -> Plan {
    Plan::exit(Vec::new(), Exit::Retriable, Reason::Waiting(Wait::MoreTime))
}
