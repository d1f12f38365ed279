//! `reload-agent`: the changes that apply while etcd runs. A node that serves continues, and the next action reads all other
//! parameters anew. Where it cannot continue, this action fails, and Pacemaker restarts etcd as it does where a parameter is
//! not reloadable.

use crate::decide::evidence::{Etcd, Evidence};
use crate::decide::plan::{Effect, Exit, Notice, Plan, Progress};
use crate::decide::reason::{Reason, Refusal};
use crate::decide::recovery::proof;
use crate::decide::recovery::slow;

pub(in crate::decide) fn decide(evidence: &Evidence, progress: &Progress) -> Plan {
    if !evidence.container_may_run() {
        return Plan::exit(Vec::new(), Exit::Success, Reason::NothingToDo);
    }
    if let Some(from) = evidence.local.runs_at.clone() {
        return evidence.refuse(Refusal::AddressChanged { from, to: evidence.local.ip.clone() });
    }
    // One that is the only voter already elects itself in a moment.
    let is_alone = evidence.own_etcd.known().is_some_and(|etcd| !etcd.is_learner && etcd.has_one_voter());
    let may_go_on = !evidence.has_a_leader() && !is_alone && !proof::votes_among_many(evidence);
    if may_go_on && is_to_go_on(evidence) {
        // One that is late may serve alone, and is not restarted for that.
        if slow::may_answer_yet(evidence) {
            return slow::ask_again(evidence, progress);
        }
        return evidence.refuse(Refusal::AskedToGoOn);
    }
    Plan::exit(granted(evidence).into_iter().collect(), Exit::Success, Reason::NothingToDo)
}

/// Returns whether a start would continue without the peer: `force_new_cluster` is set, or `node_ip_map` no longer names a peer.
/// A running etcd would wait for the peer. OpenShift's etcd operator sets the attribute, changes the map, and expects a restart.
fn is_to_go_on(evidence: &Evidence) -> bool {
    proof::told_to(evidence) || evidence.peer.is_none()
}

/// Clears `force_new_cluster` once this node runs standalone. Left set, a later failure could apply it to stale data.
fn granted(evidence: &Evidence) -> Option<Effect> {
    let serves_alone = |etcd: &Etcd| etcd.is_voter_with_leader() && etcd.has_one_voter();
    let is_granted = proof::told_to(evidence) && evidence.own_etcd.known().is_some_and(serves_alone);
    is_granted.then_some(Effect::TellOthers(Notice::ForceDone))
}
