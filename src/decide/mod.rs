//! The pure core: what to do, given what is known. Nothing in here reads a file, a clock or a socket; the agent, the
//! operator's command and the tests all call [`decide`], and no rule stands anywhere else.

pub mod evidence;
pub mod may_stop;
pub mod members;
pub mod plan;
pub mod reason;
pub mod timing;

mod guest;
mod peer;
mod recovery;
mod running;
mod standing;
mod start;
mod words;

#[cfg(test)]
mod tests;

pub use evidence::Evidence;
pub use plan::{DeadVote, Effect, Exit, Next, Notice, Phase, Plan, Progress, Request, RunMode, Via};
pub use reason::Reason;
pub use running::notify::is_heeded;

use running::{erased, monitor, notify, reload, roles, stop};
use start::{begin, turn};

/// The answer of a monitor whose effects failed.
pub fn after_failed_upkeep(evidence: &Evidence) -> Exit {
    monitor::decide_after_failed_upkeep(evidence)
}

/// The answer of an action whose time is over while `plan`, decided from `evidence`, was carried out, where that is no
/// failure.
pub fn out_of_time(request: Request, evidence: &Evidence, plan: &Plan) -> Option<Exit> {
    (request == Request::Monitor).then(|| monitor::decide_out_of_time(evidence, plan)).flatten()
}

/// Whether an action whose effects fail may be answered so, or has to go on trying: Pacemaker counts failed starts.
pub fn may_fail(request: Request, evidence: &Evidence) -> bool {
    request != Request::Start || begin::may_fail(evidence)
}

/// One round's decision.
pub fn decide(request: Request, evidence: &Evidence, progress: &Progress) -> Plan {
    if let Some(plan) = erased::restore(evidence, progress) {
        return plan;
    }
    let progress = &*erased::not_restored(progress);
    if let Some(plan) = turn::wait(request, evidence, progress) {
        return plan;
    }
    match request {
        Request::Start => begin::decide(evidence, progress),
        Request::Stop => stop::decide(evidence, progress),
        Request::Monitor => monitor::decide(evidence, progress),
        Request::Probe => monitor::decide_probe(evidence),
        Request::Notify => notify::decide(evidence, progress),
        Request::Promote => roles::decide_promote(evidence, progress),
        Request::Demote => roles::decide_demote(evidence),
        Request::Reload => reload::decide(evidence, progress),
    }
}
