//! Plans as a broken rule would make them.

use crate::base::Fact;
use crate::decide::evidence::{BootState, Etcd, Evidence, Leaderless};
use crate::decide::plan::{DeadVote, Effect, Next, Phase, Plan};

/// Lets the vote proxy vote before the node has announced that it will run standalone.
pub(super) fn vote_proxy_first(evidence: &Evidence, plan: &mut Plan) {
    let announces =
        matches!(&plan.next, Next::Reobserve { progress, .. } if matches!(progress.phase, Phase::VoteProxy { .. }));
    if let (true, Fact::Known(told)) = (announces && plan.effects.len() > 1, &evidence.own_leaderless) {
        let Leaderless { cluster_id, member_id, term, .. } = *told;
        plan.effects.insert(0, Effect::VoteProxy(DeadVote { dead: 0, member_id, cluster_id, term, applied: 0 }));
    }
}

/// Clears [`BootState::voter`] of a serving voter if its agent cannot read the CIB, as if the CIB showed no claim to run standalone.
pub(super) fn forget_unseen(evidence: &Evidence, plan: &mut Plan) {
    let serves = evidence.own_etcd.known().is_some_and(Etcd::is_voter_with_leader);
    if let Some(memory) = evidence.boot_state().filter(|_| serves && evidence.cib.known().is_none()) {
        plan.effects.push(Effect::Remember(BootState { voter: None, ..memory.clone() }));
    }
}
