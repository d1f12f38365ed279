//! A record that Pacemaker has erased from the CIB while its attribute manager has it still: it is restored before all else. What
//! would be decided without it rests on a claim that only seems to be gone.

use std::borrow::Cow;

use crate::decide::evidence::{Cib, Evidence};
use crate::decide::plan::{Effect, Plan, Progress};
use crate::decide::reason::{Reason, ReasonStep};
use crate::decide::timing::{LOOK_FOR_A_RESTORED_RECORD_MS, LOOKS_FOR_A_RESTORED_RECORD};

/// Restores this node's published record in the CIB, and observes again. If several attempts fail, the agent decides from the CIB
/// without the record.
pub(in crate::decide) fn restore(evidence: &Evidence, progress: &Progress) -> Option<Plan> {
    if !is_erased(evidence) || progress.restores >= LOOKS_FOR_A_RESTORED_RECORD {
        return None;
    }
    let progress = Progress { restores: progress.restores + 1, ..progress.clone() };
    let because = Reason::Step(ReasonStep::RestoreRecord);
    Some(Plan::then_look(vec![Effect::RestoreRecord], LOOK_FOR_A_RESTORED_RECORD_MS, progress, because))
}

/// Returns the progress of an action with no attempts to restore this node's record counted, because Pacemaker may erase the
/// record again.
pub(in crate::decide) fn not_restored(progress: &Progress) -> Cow<'_, Progress> {
    match progress.restores {
        0 => Cow::Borrowed(progress),
        _ => Cow::Owned(Progress { restores: 0, ..progress.clone() }),
    }
}

/// Returns whether Pacemaker has erased this node's record from the CIB while its attribute manager still has the record. An
/// agent that has stored a voter in this boot had published one. When Pacemaker ends on this node, the attribute manager forgets
/// the record, and it cannot be restored.
fn is_erased(evidence: &Evidence) -> bool {
    let is_erased = |cib: &Cib| cib.own_record.is_none() && cib.keeps_own_record;
    let remembers_a_voter = evidence.boot_state().is_some_and(|memory| memory.voter.is_some());
    remembers_a_voter && evidence.cib.known().is_some_and(is_erased)
}
