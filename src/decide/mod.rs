//! The pure core: what to do, given what is known. Nothing in here reads a file, a clock or a socket; the agent, the
//! operator's command and the tests all call [`decide`], and every rule is here.

pub mod evidence;
pub mod may_stop;
pub mod members;
pub mod plan;
pub mod reason;
pub mod timing;

mod lone_boot;
mod peer;
mod recovery;
mod running;
mod standing;
mod start;
mod third_voter;
mod words;

#[cfg(test)]
mod tests;

pub use evidence::Evidence;
pub use lone_boot::{LoneBootOutlook, lone_boot_outlook};
pub use plan::{
    DeadVote, Decision, Effect, Exit, Next, Notice, OnFailure, Phase, Plan, Progress, Request, RunMode, Via,
};
pub use reason::Reason;
pub use running::hand_over::{Outlook, TRIES as TRIES_OF_A_HAND_OVER, may_be_handed_leadership, outlook};
pub use running::notify::is_heeded;
pub use running::partition::{Yielding, yielding};

use running::{erased, monitor, notify, reload, roles, shown, stop};
use start::{begin, container_lock};

/// Decides one round (observe, decide, act) of an action. Returns the plan, and the action's result for the case that the plan
/// fails or takes too long.
pub fn decide(request: Request, evidence: &Evidence, progress: &Progress) -> Decision {
    Decision::around(plan(request, evidence, progress), request, evidence, progress)
}

impl Decision {
    /// Adds to `plan` the action's result for the case that the plan fails or takes too long.
    pub fn around(plan: Plan, request: Request, evidence: &Evidence, progress: &Progress) -> Self {
        let is_monitor = request == Request::Monitor;
        let on_failure = match request {
            Request::Monitor if progress.phase == Phase::Begin => {
                OnFailure::Answer(monitor::decide_after_failed_upkeep(evidence))
            }
            Request::Start if !begin::may_fail(evidence) => OnFailure::TryOn,
            _ => OnFailure::FailInTime,
        };
        let when_over = is_monitor.then(|| monitor::decide_out_of_time(evidence, &plan)).flatten();
        Self { plan, on_failure, when_over }
    }
}

fn plan(request: Request, evidence: &Evidence, progress: &Progress) -> Plan {
    // It touches nothing of etcd, and Pacemaker runs no action before there is quorum.
    if request == Request::LoneBoot {
        return lone_boot::decide(evidence);
    }
    if let Some(plan) = erased::restore(evidence, progress) {
        return plan;
    }
    let progress = &*erased::not_restored(progress);
    if let Some(plan) = container_lock::wait(request, evidence, progress) {
        return plan;
    }
    let plan = match request {
        Request::Start => begin::decide(evidence, progress),
        Request::Stop => stop::decide(evidence, progress),
        Request::Monitor => monitor::decide(evidence, progress),
        Request::Probe => monitor::decide_probe(evidence),
        Request::Notify => notify::decide(evidence, progress),
        Request::Promote => roles::decide_promote(evidence, progress),
        Request::Demote => roles::decide_demote(evidence),
        Request::Reload => reload::decide(evidence, progress),
        Request::LoneBoot => return lone_boot::decide(evidence),
    };
    shown::with(plan, request, evidence)
}
