//! What other programs read in the CIB, and what they write there for us: OpenShift's etcd operator, its scripts,
//! administrators and the shell agent.

use crate::decide::evidence::{Cib, Etcd, Evidence, START_OPERATION};
use crate::decide::plan::{Effect, Notice};
use crate::decide::timing::QUICK_FAILURES;

/// Number of revisions by which the published revision may lag while etcd runs. It is large, because each change of the CIB is
/// written to disk and no decision of this agent uses the revision. The published revision is exact after every start and stop,
/// and while this node is the sole voter.
const REVISION_LAG: u64 = 10_000;

/// Publishes what other programs read after a successful start. Clears the requests that they made to this start, which has
/// fulfilled them.
pub(super) fn served(evidence: &Evidence) -> Vec<Effect> {
    let Some(cib) = evidence.cib.known() else { return Vec::new() };
    let mut effects = told(evidence);
    effects.extend(revision(evidence));
    if cib.others.removal_lock.is_some() {
        effects.push(Effect::TellOthers(Notice::Member));
    }
    if cib.others.force_on_me {
        effects.push(Effect::TellOthers(Notice::ForceDone));
    }
    if cib.others.restart_no_leave {
        effects.push(Effect::TellOthers(Notice::RestartDone));
    }
    effects
}

/// Publishes what other programs read about a running member. `restart_no_leave` stays set, because it is meant for the next stop.
pub(super) fn runs(evidence: &Evidence, etcd: &Etcd) -> Vec<Effect> {
    let Some(cib) = evidence.cib.known() else { return Vec::new() };
    let mut effects = told(evidence);
    let published = cib.others.revision.unwrap_or(0);
    // An agent of another kind on the peer has only this to show that its own data is the older.
    let is_alone = evidence.peer.is_some() && etcd.has_one_voter();
    let lag = if is_alone { 1 } else { REVISION_LAG };
    if evidence.local.revision.is_some_and(|revision| revision.abs_diff(published) >= lag) {
        effects.extend(revision(evidence));
    }
    if cib.others.removal_lock.is_some() && !etcd.is_learner {
        effects.push(Effect::TellOthers(Notice::Member));
    }
    // Two voters have nothing to force. A wish that stayed would count in a later failure, on the node that is behind then.
    let are_two = etcd.is_voter_with_leader() && !etcd.has_one_voter();
    if cib.others.force_on_me && are_two {
        effects.push(Effect::TellOthers(Notice::ForceDone));
    }
    effects
}

/// Publishes the revision that OpenShift's sidecar last wrote, if it differs from the published one.
pub(super) fn revision(evidence: &Evidence) -> Option<Effect> {
    let published = evidence.cib.known()?.others.revision;
    let revision = evidence.local.revision.filter(|revision| Some(*revision) != published)?;
    Some(Effect::TellOthers(Notice::Revision(revision)))
}

fn told(evidence: &Evidence) -> Vec<Effect> {
    let published = evidence.cib.known().map(|cib| &cib.others);
    let ip = Some(&evidence.local.ip).filter(|ip| !ip.is_empty());
    let ip = ip.filter(|ip| published.and_then(|others| others.node_ip.as_ref()) != Some(ip));
    let uuid = evidence.local.system_uuid.as_ref();
    let uuid = uuid.filter(|uuid| published.and_then(|others| others.system_uuid.as_ref()) != Some(uuid));
    let notices = ip.cloned().map(Notice::Address).into_iter().chain(uuid.cloned().map(Notice::SystemUuid));
    notices.map(Effect::TellOthers).collect()
}

/// Number of failures of one operation that the agent leaves counted in Pacemaker.
///
/// Pacemaker adds up the failures of all operations, and forgets none by itself. At `migration-threshold` (60 in OpenShift) it
/// bans etcd from the node until an operator cleans up. A repeated refusal would reach that number in a quarter of an hour.
///
/// This number is well below the threshold. It is high enough for an operator to notice, and starts that failed so often are
/// slowed down.
const FAILURES_LEFT: u64 = 8;

/// Number of failed starts that the agent leaves counted in Pacemaker on a serving node. After `QUICK_FAILURES` more, starts
/// count as failing in vain. So the sum of the two numbers must not exceed [`FAILURES_LEFT`].
const START_FAILURES_LEFT: u64 = FAILURES_LEFT - QUICK_FAILURES;

/// Returns the effects that reduce Pacemaker's failure counts to [`FAILURES_LEFT`].
pub(in crate::decide) fn failures(evidence: &Evidence) -> Vec<Effect> {
    failures_beyond(evidence, |_| FAILURES_LEFT)
}

/// Returns the effects that reduce Pacemaker's failure counts on a node with a serving etcd. Failed starts are reduced to
/// [`START_FAILURES_LEFT`], and failures of any other operation to [`FAILURES_LEFT`].
pub(super) fn failures_of_who_serves(evidence: &Evidence) -> Vec<Effect> {
    failures_beyond(
        evidence,
        |operation| if operation == START_OPERATION { START_FAILURES_LEFT } else { FAILURES_LEFT },
    )
}

/// Returns the number of failed starts that the agent leaves counted in Pacemaker on a serving node.
pub(super) fn start_failures_left(cib: &Cib) -> u64 {
    cib.own_start_failures.min(START_FAILURES_LEFT)
}

fn failures_beyond(evidence: &Evidence, left: impl Fn(&str) -> u64) -> Vec<Effect> {
    let counted = evidence.cib.known().map(|cib| &cib.own_failures).into_iter().flatten();
    let many = counted.filter(|(operation, count)| **count > left(operation));
    many.map(|(operation, _)| Effect::SetFailures { operation: operation.clone(), count: left(operation) }).collect()
}
