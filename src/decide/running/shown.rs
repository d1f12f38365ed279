//! Shows two attributes of this node for other programs: whether its etcd leads, and whether its fence agent waits. No decision
//! rests on them.

use crate::base::Fact;
use crate::decide::evidence::{DataDir, Etcd, Evidence};
use crate::decide::plan::{Effect, Exit, Next, Plan, Request, RunMode};
use crate::decide::standing::{Standing, classify};

/// Adds to a plan the effects that set two attributes of this node: whether its etcd leads, and whether its fence agent waits.
///
/// A plan that fails changes neither attribute. Pacemaker stops etcd after the failure, and the stop removes both.
pub(in crate::decide) fn with(plan: Plan, request: Request, evidence: &Evidence) -> Plan {
    let shows = matches!(request, Request::Start | Request::Monitor | Request::Notify | Request::Stop);
    let succeeds = matches!(plan.next, Next::Exit(Exit::Success | Exit::Promoted));
    let launches = request == Request::Start && matches!(plan.next, Next::Reobserve { .. });
    if !shows || !(succeeds || launches) {
        return plan;
    }
    let wait = fence_wait_as_seen(request, evidence, &plan);
    let leader = leader_as_seen(request, evidence, &plan).filter(|_| succeeds);
    let mut effects = plan.effects;
    // The fence agent waits before the learner runs. An effect that fails ends the round, so all others come first.
    let runs = |effect: &Effect| matches!(effect, Effect::RunContainer(_));
    let at = effects.iter().position(runs).unwrap_or(effects.len());
    effects.splice(at..at, wait);
    effects.extend(leader);
    Plan { effects, ..plan }
}

fn leader_as_seen(request: Request, evidence: &Evidence, plan: &Plan) -> Option<Effect> {
    let shown = evidence.cib.known()?.own_shown?.leads;
    // etcd answers a hand-over once the other member leads. An attempt that fails ends the plan before this effect.
    let hands_over = plan.effects.iter().any(|effect| matches!(effect, Effect::MoveLeader { .. }));
    let leads = leads(request, evidence).map(|leads| leads && !hands_over);
    (leads != shown).then_some(Effect::ShowLeader(leads))
}

/// Returns whether this node's etcd leads. An etcd that waits for its first leader does not lead. `None` if etcd is stopped, or
/// if it rejects this agent, which therefore cannot see its state.
fn leads(request: Request, evidence: &Evidence) -> Option<bool> {
    if request == Request::Stop || !evidence.container_may_run() || evidence.serves_unseen() {
        return None;
    }
    Some(evidence.own_etcd.known().is_some_and(Etcd::leads))
}

fn fence_wait_as_seen(request: Request, evidence: &Evidence, plan: &Plan) -> Option<Effect> {
    let shown = evidence.cib.known()?.own_shown?.fence_wait;
    let waits = holds_no_vote(request, evidence, plan)?;
    (waits != shown).then_some(Effect::ShowFenceWait(waits))
}

/// Returns whether this node has no vote, because it joins or is a learner; `None` if that is unknown yet. A node without a vote
/// could not run standalone as the survivor. So the other node has to win the fence race if the network is partitioned.
fn holds_no_vote(request: Request, evidence: &Evidence, plan: &Plan) -> Option<bool> {
    if request == Request::Stop {
        return Some(false);
    }
    if let Fact::Known(etcd) = &evidence.own_etcd {
        return Some(etcd.is_learner);
    }
    let joins = |effect: &Effect| match effect {
        Effect::PublishRecord(record) => record.joins,
        Effect::RunContainer(RunMode::JoinAsLearner { .. }) => true,
        _ => false,
    };
    let is_learner = |disk: &DataDir| classify(disk) == Standing::Learner;
    let published = evidence.cib.known().and_then(|cib| cib.own_record.as_ref()).is_some_and(|record| record.joins);
    let learns = evidence.disk.known().is_some_and(is_learner);
    (published || learns || plan.effects.iter().any(joins)).then_some(true)
}
