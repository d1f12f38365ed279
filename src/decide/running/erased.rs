//! A record that Pacemaker has erased from the CIB while its attribute manager has it still: it is restored before all else. What
//! would be decided without it rests on a claim that only seems to be gone.

use std::borrow::Cow;

use crate::decide::evidence::{Cib, Evidence};
use crate::decide::plan::{Effect, Plan, Progress};
use crate::decide::reason::{Reason, ReasonStep};
use crate::decide::timing::{LOOK_FOR_A_RESTORED_RECORD_MS, LOOKS_FOR_A_RESTORED_RECORD};

/// Restores the record, and looks again. Where it does not come back, what can be read counts.
pub(in crate::decide) fn restore(evidence: &Evidence, progress: &Progress) -> Option<Plan> {
    if !is_erased(evidence) || progress.restores >= LOOKS_FOR_A_RESTORED_RECORD {
        return None;
    }
    let progress = Progress { restores: progress.restores + 1, ..progress.clone() };
    let because = Reason::Step(ReasonStep::RestoreRecord);
    Some(Plan::then_look(vec![Effect::RestoreRecord], LOOK_FOR_A_RESTORED_RECORD_MS, progress, because))
}

/// Returns the progress that all else continues from, where no record is to be restored: the next one is looked for as often
/// again.
pub(in crate::decide) fn not_restored(progress: &Progress) -> Cow<'_, Progress> {
    match progress.restores {
        0 => Cow::Borrowed(progress),
        _ => Cow::Owned(Progress { restores: 0, ..progress.clone() }),
    }
}

/// Returns whether the record is only erased. A boot that remembers a voter has published it, and the attribute manager forgets it
/// when Pacemaker ends here: then it is gone for good.
fn is_erased(evidence: &Evidence) -> bool {
    let is_erased = |cib: &Cib| cib.own_record.is_none() && cib.keeps_own_record;
    let remembers_a_voter = evidence.boot_state().is_some_and(|memory| memory.voter.is_some());
    remembers_a_voter && evidence.cib.known().is_some_and(is_erased)
}
