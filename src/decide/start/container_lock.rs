//! One action at a time: while an earlier one, or the podman that a killed one left behind, still starts or ends the
//! container, what is seen of it is not what there will be.

use crate::base::Fact;
use crate::decide::evidence::{Etcd, Evidence};
use crate::decide::plan::{Effect, Exit, Plan, Progress, Request};
use crate::decide::reason::{Reason, ReasonStep, Refusal, Wait};
use crate::decide::recovery::slow;
use crate::decide::standing::running_exit;
use crate::decide::timing::{LOCK_RESERVE_MS, LOOK_AFTER_A_CHANGE_MS, LOOK_FOR_THE_LOCK_MS};

/// Returns what an action does while another action holds the lock on the container; `None` if no action holds it, or if this
/// action does not change the container.
pub(in crate::decide) fn wait(request: Request, evidence: &Evidence, progress: &Progress) -> Option<Plan> {
    if evidence.launching != Fact::Known(true) {
        return None;
    }
    let ends_it = matches!(request, Request::Start | Request::Stop);
    // Next to an etcd that has a leader only a start and a stop change the container.
    let serves = evidence.own_etcd.known().is_some_and(|etcd: &Etcd| etcd.leader.is_some());
    if request == Request::Demote || serves && !ends_it {
        return None;
    }
    if evidence.elapsed_ms + LOCK_RESERVE_MS > evidence.budget_ms {
        return Some(in_vain(request, evidence));
    }
    if ends_it && evidence.elapsed_ms > slow::patience_with_an_earlier_action_ms(evidence) {
        let because = Reason::Step(ReasonStep::EndEarlierAction);
        return Some(Plan::then_look(vec![Effect::EndLaunch], LOOK_AFTER_A_CHANGE_MS, progress.clone(), because));
    }
    Some(Plan::then_look(Vec::new(), LOOK_FOR_THE_LOCK_MS, progress.clone(), Reason::Waiting(Wait::EarlierAction)))
}

/// Ends an action that ran out of time while another action held the lock on the container. If etcd runs, a monitor does not fail
/// for that reason.
fn in_vain(request: Request, evidence: &Evidence) -> Plan {
    let waits = Reason::Waiting(Wait::EarlierAction);
    match request {
        Request::Monitor | Request::Probe if evidence.container_may_run() => {
            Plan::exit(Vec::new(), running_exit(evidence), waits)
        }
        // Its answer changes nothing, and the next monitor looks at the same.
        Request::Notify => Plan::exit(Vec::new(), Exit::Success, waits),
        _ => evidence.refuse(Refusal::EarlierActionLasts),
    }
}
