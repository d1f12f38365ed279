//! The agent in the model: rounds as `agent::rounds` has them, around the real [`decide::decide`]. One move is one
//! observation with its decision, or one effect, so that a crash can come between any two of them.

use super::log::THIRD_VOTER;
use super::members::Reply;
use super::steps::{EffectStep, Steps, Then, Todo};
use super::timing::{MOMENTS, When};
use super::view::{self, View};
use super::world::{Action, BANNED, Blind, NAMES, Node, Run, World};
use super::{etcd, leading, pacemaker, vote_proxy};
use crate::decide::evidence::{BootState, DurableState, HandOver, LogPosition, PeerNode, PublishedState, RunningVoter};
use crate::decide::plan::{DeadVote, Decision, Effect, OnFailure, Phase, RunMode};
use crate::decide::reason::{Reason, ReasonStep, Refusal};
use crate::decide::{self, Exit, Next, Plan, Progress, Request};
use crate::sim::reduce::dead_variables;
use crate::sim::store::decided::{Number, Plans, UNDECIDED};
use crate::sim::store::intern::Id;
use crate::sim::{Sim, Violation};

/// Decides from `view` at the moments of the action up to the one with the index `last`. Returns the numbers of the plans ([`Todo`]),
/// one for each moment.
fn decide(sim: &mut Sim, view: &View, last: usize) -> Plans {
    let place = sim.decided.place(view);
    decide_there(sim, view, place, last)
}

/// Decides as [`decide`] does. `place` is the index at which the plans for `view` are stored.
fn decide_there(sim: &mut Sim, view: &View, place: usize, last: usize) -> Plans {
    let mut plans = *sim.decided.at(place);
    if plans[last] != UNDECIDED {
        return plans;
    }
    let progress = sim.progresses.get(view.progress).clone();
    for (plan, when) in plans.iter_mut().zip(MOMENTS).take(last + 1) {
        if *plan == UNDECIDED {
            let (said, decided) = decide_at(sim, view, &progress, when);
            sim.said.id(Some(said.because));
            *plan = Number::try_from(sim.plan(decided)).unwrap_or(UNDECIDED);
        }
    }
    *sim.decided.at(place) = plans;
    plans
}

/// Decides once. Returns the plan of `decide::decide`, and the part of it that the model carries out.
pub fn decide_at(sim: &Sim, view: &View, progress: &Progress, when: When) -> (Plan, Todo) {
    let (elapsed_ms, since_ms) = when.of(view.request);
    let progress = Progress { since_ms, ..progress.clone() };
    let mut evidence = view::evidence(sim, view, elapsed_ms);
    sim.mutant.blind(&mut evidence, &progress);
    let Decision { plan, on_failure, when_over: _ } =
        sim.strategy.decide(view.request, &evidence, &progress, view.links);
    let plan = sim.mutant.bend(view.request, &evidence, &progress, plan);
    let canonical = |effect: &Effect| match (sim.judges(), sim.bounds.puts_back) {
        (false, _) => effect.clone(),
        (true, false) => canonical(effect),
        (true, true) => canonical_with_positions(effect),
    };
    // Right before a force, a note that would differ only by its position is not written again.
    let forces = plan.because == Reason::Step(ReasonStep::AdvanceAndForce);
    let is_news =
        |effect: &Effect| !matches!(effect, Effect::WriteNote(note) if forces && note == sim.notes.get(view.note));
    let effects = plan.effects.iter().map(canonical).filter(is_news).collect();
    let next = match &plan.next {
        Next::Exit(exit) => Next::Exit(*exit),
        Next::Reobserve { progress, .. } => {
            Next::Reobserve { after_ms: 0, progress: canonical_progress(progress.clone()) }
        }
    };
    let yields = matches!(plan.because, Reason::Refused { refusal: Refusal::YieldsToPrimary, .. });
    (plan, Todo { effects, next, on_failure: canonical_failure(on_failure), yields })
}

/// Returns `effect` without log positions. In a search without disks that are put back, only reports for people use them.
fn canonical(effect: &Effect) -> Effect {
    match effect.clone() {
        Effect::PublishRecord(record) => Effect::PublishRecord(canonical_record(record)),
        Effect::WriteNote(mut note) => {
            note.alone_since = note.alone_since.map(|_| LogPosition::default());
            note.left_at = note.left_at.map(|_| LogPosition::default());
            note.of = None;
            Effect::WriteNote(note)
        }
        Effect::Remember(memory) => {
            // Of tries in vain, the model has only the pause after each.
            let hand_over = memory.hand_over.map(|due| HandOver { tries: 0, ..due });
            Effect::Remember(BootState { ended_at: None, hand_over, ..memory })
        }
        Effect::StopContainer { .. } => Effect::StopContainer { grace_s: 1 },
        Effect::VoteProxy(vote) => Effect::VoteProxy(DeadVote { dead: 0, member_id: 0, ..vote }),
        effect => effect,
    }
}

/// Returns `effect` as [`canonical`] does, but keeps the positions and the data's owner. A search with disks that are put back reads
/// them.
fn canonical_with_positions(effect: &Effect) -> Effect {
    match (canonical(effect), effect) {
        (Effect::PublishRecord(_), Effect::PublishRecord(record)) => Effect::PublishRecord(record.clone()),
        (Effect::WriteNote(note), Effect::WriteNote(whole)) => {
            Effect::WriteNote(DurableState { of: whole.of.clone(), alone_since: whole.alone_since, ..note })
        }
        (Effect::Remember(memory), Effect::Remember(whole)) => {
            Effect::Remember(BootState { ended_at: whole.ended_at.clone(), ..memory })
        }
        (effect, _) => effect,
    }
}

/// Replaces [`OnFailure::TryOn`] by [`OnFailure::FailInTime`]. The model has no time between two attempts, so it may end a failing
/// action after any of them.
fn canonical_failure(on_failure: OnFailure) -> OnFailure {
    match on_failure {
        OnFailure::TryOn => OnFailure::FailInTime,
        on_failure => on_failure,
    }
}

/// Returns `progress` without the parts that no later decision reads. Later decisions read only the kind of mode in which etcd was
/// started. The number of restores is dropped, because the record is restored at the next observation.
fn canonical_progress(progress: Progress) -> Progress {
    let phase = match progress.phase {
        Phase::Started(RunMode::JoinAsLearner { .. }) => {
            Phase::Started(RunMode::JoinAsLearner { initial_cluster: Vec::new() })
        }
        phase => phase,
    };
    Progress { phase, since_ms: 0, restores: 0, ..progress }
}

fn canonical_record(mut record: PublishedState) -> PublishedState {
    if let decide::evidence::DataDir::Present(history) = &mut record.disk {
        (history.last_term, history.last_index, history.commit_index) = (1, 0, 0);
    }
    record
}

/// Lets the agent of node `n` observe and decide once. Returns false if that changes nothing.
pub fn round(sim: &mut Sim, world: &mut World, n: usize, moment: usize) -> Result<bool, Violation> {
    let Some(action) = world.nodes[n].action.filter(|action| action.plan.is_none()) else { return Ok(false) };
    let view = view::look(sim, world, n, action);
    let plan = decide(sim, &view, moment)[moment];
    carry_out(sim, world, n, action, plan.into())
}

/// Returns the moments at which the next decision of node `n` differs from that at every earlier moment. With each it returns the
/// number of the decided plan ([`Todo`]). Later moments than the first one count only if time may pass (see [`may_wait`]).
pub fn choices(sim: &mut Sim, world: &World, n: usize) -> impl Iterator<Item = (usize, Id)> + use<> {
    let action = world.nodes[n].action.filter(|action| action.plan.is_none());
    let mut plans = [UNDECIDED; MOMENTS.len()];
    if let Some(action) = action {
        let view = view::look(sim, world, n, action);
        let place = sim.decided.place(&view);
        plans = decide_there(sim, &view, place, 0);
        let may_differ = plans.iter().any(|plan| *plan != plans[0]);
        if may_differ && is_no_news(sim, action, plans[0].into()) && may_wait(sim, world, 1 - n) {
            plans = decide_there(sim, &view, place, MOMENTS.len() - 1);
        } else {
            plans[1..].fill(UNDECIDED);
        }
    }
    let is_distinct = move |moment: &usize| plans[*moment] != UNDECIDED && !plans[..*moment].contains(&plans[*moment]);
    (0..MOMENTS.len()).filter(is_distinct).map(move |moment| (moment, plans[moment].into()))
}

/// Returns whether time may pass while an agent waits. It may if nothing else is about to happen: no etcd is busy, Pacemaker's
/// membership is stable, and the agent of the node `other` waits, too. Unless fencing is slow, no node may be waiting to be fenced.
pub fn may_wait(sim: &mut Sim, world: &World, other: usize) -> bool {
    let awaits_fencing = !sim.bounds.slow_fencing && (0..2).any(|by| pacemaker::may_fence(world, by));
    !awaits_fencing
        && !pacemaker::holds_writes_back(world)
        && !etcd::is_busy(sim, world)
        && is_waiting(sim, world, other)
}

/// Returns whether node `n` has no action, or its action is waiting: another decision now would change nothing.
fn is_waiting(sim: &mut Sim, world: &World, n: usize) -> bool {
    let Some(action) = world.nodes[n].action else { return true };
    if action.plan.is_some() {
        return false;
    }
    let view = view::look(sim, world, n, action);
    let plan = decide(sim, &view, 0)[0];
    is_no_news(sim, action, plan.into())
}

/// Returns whether a plan has no effect and does not change the action's progress. The next decision would then be the same.
fn is_no_news(sim: &Sim, action: Action, plan: Id) -> bool {
    let plan = sim.plans.get(plan);
    plan.steps.is_empty() && plan.then == Then::Again(action.progress)
}

/// Begins to perform a decided plan on node `n`. Returns false if the plan changes nothing.
pub fn carry_out(sim: &Sim, world: &mut World, n: usize, action: Action, plan: Id) -> Result<bool, Violation> {
    let steps = sim.plans.get(plan);
    pacemaker::hear(world, n);
    let blind = std::mem::take(&mut world.nodes[n].blind);
    let was_blind = blind != Blind::None;
    if steps.yields && sim.judges() {
        leading::check_yielded(sim, world, n)?;
    }
    if steps.steps.is_empty() {
        return Ok(finish(sim, world, n, steps.then)? || was_blind);
    }
    if sim.judges() {
        check_plan(sim, world, n, action, steps)?;
        check_memory(sim, world, n, action, steps, blind)?;
    }
    world.nodes[n].action = Some(Action { plan: Some((plan, 0)), ..action });
    Ok(true)
}

/// Asserts that a plan to back data up or to force a new cluster is safe, whatever happens before the plan is carried out.
fn check_plan(sim: &Sim, world: &World, n: usize, action: Action, plan: &Steps) -> Result<(), Violation> {
    let (me, peer) = (&world.nodes[n], &world.nodes[1 - n]);
    if plan.moves_aside && !peer.etcd.is_led() {
        return Err(Violation::new(format!(
            "{}: its data is to be backed up, and {} does not serve",
            NAMES[n],
            NAMES[1 - n]
        )));
    }
    if plan.hands_over && action.request == Request::Monitor {
        leading::check(sim, world, n)?;
    }
    // A running etcd reports what it has applied. Its promotion may still be only in its log.
    let told = if me.etcd.is_on() { me.data.applied(&sim.logs) } else { me.data.newest(&sim.logs) };
    if told.conf.votes(THIRD_VOTER) {
        check_beside_a_third_voter(n, action.request, plan)?;
    }
    let is_there = me.cib.machine[1 - n] == PeerNode::Online;
    let unconfirmed = !is_there && !pacemaker::is_confirmed_down(&me.cib, 1 - n);
    // A peer that has booted since it was confirmed down claims nothing, and cannot run standalone.
    let may_go_on = || sim.memories.get(peer.memory).voter.is_some();
    if (plan.forces || plan.stands_in) && unconfirmed && peer.on && may_go_on() {
        return Err(Violation::new(format!(
            "{} is to run standalone, and {} runs, lost and not fenced",
            NAMES[n],
            NAMES[1 - n]
        )));
    }
    Ok(())
}

/// Asserts that an agent does not clear `BootState::voter` of a voter that has published its claim to run standalone. It must keep the
/// stored voter while the voter serves, even if an observation misses a fact. It must also keep it in a stop that is half of a restart.
/// Without the stored voter, the node could not continue after a loss of its peer.
fn check_memory(
    sim: &Sim,
    world: &World,
    n: usize,
    action: Action,
    plan: &Steps,
    blind: Blind,
) -> Result<(), Violation> {
    let (me, vars) = (&world.nodes[n], action.notify);
    let is_restart = vars.start & (1 << n) != 0 && !vars.in_vain;
    let has_to_keep = match action.request {
        Request::Stop => blind == Blind::Cib && is_restart,
        _ => me.etcd.is_led(),
    };
    // A sole voter, or one of three, has to prove its data anew.
    let is_one_of_two = |voter: &RunningVoter| !voter.sole && !voter.among_many;
    let is_it = |voter: &RunningVoter| is_one_of_two(voter) && voter.member_id == u64::from(me.data.mid);
    let claims = sim.records.get(me.cib.record[n]).as_ref().is_some_and(|record| record.claims);
    let is_sure = claims && sim.memories.get(me.memory).voter.as_ref().is_some_and(is_it);
    let is_without =
        |step: &EffectStep| matches!(step, EffectStep::Remember(memory) if sim.memories.get(*memory).voter.is_none());
    let forgets = is_sure && plan.steps.iter().any(is_without);
    if forgets && action.request == Request::Monitor && !me.etcd.is_led() {
        leading::check_yields(sim, world, n)?;
    }
    if has_to_keep && forgets {
        return Err(Violation::new(format!(
            "{} is a voter that has claimed so, and its agent is to forget it",
            NAMES[n]
        )));
    }
    Ok(())
}

/// Asserts that a node next to a third voter does nothing that the majority has to decide. It forces no new cluster and casts no vote
/// for its peer, and its monitors and notifications stop no etcd.
fn check_beside_a_third_voter(n: usize, request: Request, plan: &Steps) -> Result<(), Violation> {
    let stops =
        matches!(request, Request::Monitor | Request::Notify) && plan.steps.contains(&EffectStep::StopContainer);
    let what = match plan {
        Steps { forces: true, .. } => "is to force a new cluster",
        Steps { stands_in: true, .. } => "is to vote for its peer",
        _ if stops => "stops its etcd",
        _ => return Ok(()),
    };
    Err(Violation::new(format!("{} {what} beside a third voter", NAMES[n])))
}

/// Returns whether the next effect of the plan on node `n` can happen now.
pub fn may_act(sim: &Sim, world: &World, n: usize) -> bool {
    let Some((plan, done)) = world.nodes[n].action.and_then(|action| action.plan) else { return false };
    sim.plans.step(plan, done).is_some_and(|step| !step.is_awaited(sim, world, n))
}

/// Performs the next effect of the plan on node `n`. If the effect fails and `gives_up` is true, the action ends. If `gives_up` is
/// false, the agent decides again.
pub fn effect(sim: &mut Sim, world: &mut World, n: usize, gives_up: bool) -> Result<bool, Violation> {
    let Some(action) = world.nodes[n].action else { return Ok(false) };
    let Some((plan, done)) = action.plan else { return Ok(false) };
    let Some(step) = sim.plans.step(plan, done).filter(|step| !gives_up || step.may_fail()) else { return Ok(false) };
    if gives_up && step.is_of_a_vote_proxy() {
        vote_proxy::leave_to_itself(sim, world, n);
        world.nodes[n].action = Some(Action { plan: None, ..action });
        finish(sim, world, n, sim.plans.get(plan).then)?;
        return Ok(true);
    }
    match step.perform(sim, world, n)? {
        Reply::NotYet => return Ok(!gives_up),
        Reply::Failed => {
            fail(sim, world, n, action, plan, gives_up)?;
            return Ok(true);
        }
        Reply::Done if gives_up => return Ok(false),
        Reply::Done => {}
    }
    let mut done = done + 1;
    while let Some(step) = sim.plans.step(plan, done).filter(|step| step.is_for_show()) {
        step.perform(sim, world, n)?;
        done += 1;
    }
    if sim.plans.step(plan, done).is_some() {
        world.nodes[n].action = Some(Action { plan: Some((plan, done)), ..action });
        return Ok(true);
    }
    world.nodes[n].action = Some(Action { plan: None, ..action });
    finish(sim, world, n, sim.plans.get(plan).then)?;
    Ok(true)
}

/// Ends the plan of node `n` after an effect that failed. The plan may name the exit code with which the action then ends.
fn fail(sim: &Sim, world: &mut World, n: usize, action: Action, plan: Id, gives_up: bool) -> Result<(), Violation> {
    if let OnFailure::Answer(exit) = sim.plans.get(plan).on_failure {
        return answer(sim, world, n, exit);
    }
    if gives_up {
        return answer(sim, world, n, Exit::Retriable);
    }
    world.nodes[n].action = Some(Action { plan: None, ..action });
    Ok(())
}

/// Ends the action of node `n` with the exit code `exit`. If a start failed, Pacemaker counts the failure.
pub fn answer(sim: &Sim, world: &mut World, n: usize, exit: Exit) -> Result<(), Violation> {
    let is_start = world.nodes[n].action.is_some_and(|action| action.request == Request::Start);
    if is_start && exit != Exit::Success && sim.bounds.threshold > 0 {
        let failures = world.nodes[n].failures + 1;
        world.nodes[n].failures = if failures < sim.bounds.threshold { failures } else { BANNED };
    }
    pacemaker::answered(world, n, exit)
}

/// Ends the action once all effects of a plan are done, or stores its progress for the next decision. Returns false if the next
/// decision would be the same.
fn finish(sim: &Sim, world: &mut World, n: usize, then: Then) -> Result<bool, Violation> {
    match then {
        Then::Exit(exit) => answer(sim, world, n, exit).map(|()| true),
        Then::Again(progress) => {
            let Some(action) = &mut world.nodes[n].action else { return Ok(false) };
            let is_news = action.progress != progress;
            action.progress = progress;
            dead_variables::check_progress(action.request, action.notify, &sim.progresses.get(progress).phase)?;
            Ok(is_news)
        }
    }
}

/// Asserts that the number of forced new clusters is at most twice the number of faults plus two.
///
/// Only a fault makes a node announce a forced new cluster, and a node announces no other one before it has carried the first one out.
/// But each fault counts twice, because an agent with a silent etcd cannot know whether its last announcement was carried out. It is
/// asserted only with `--count-forks`, because ranks are no counts.
fn check_forks(sim: &Sim, world: &World) -> Result<(), Violation> {
    let spent = sim.bounds.faults - world.faults;
    let forks = |node: &Node| sim.notes.get(node.note).lineage.forks.max(node.cib.most_forks().0.into());
    let most = world.nodes.iter().map(forks).max().unwrap_or_default();
    if sim.bounds.counts_forks && !sim.bounds.puts_back && most > 2 * (1 + u64::from(spent)) {
        return Err(Violation::new(format!("{most} new clusters were announced, and there were {spent} faults")));
    }
    Ok(())
}

/// Asserts the invariants that must hold in every state, for example that no acknowledged write is lost.
pub fn check(sim: &Sim, world: &World) -> Result<(), Violation> {
    check_forks(sim, world)?;
    if world.nodes.iter().all(|node| node.etcd == Run::Leader) {
        return Err(Violation::new("both nodes accept writes, and neither knows of the other's".to_owned()));
    }
    let [one, other] = &world.nodes;
    if one.etcd.is_on() && other.etcd.is_on() && one.data.mid == other.data.mid {
        return Err(Violation::new("two etcds of one member run".to_owned()));
    }
    for (n, node) in world.nodes.iter().enumerate().filter(|(_, node)| node.etcd == Run::Leader) {
        let missing = world.acked & !world.given_up & !node.data.newest(&sim.logs).writes;
        if missing != 0 {
            let name = |bit: u8| if bit == 7 { "history".to_owned() } else { format!("w{}", bit + 1) };
            let which = (0..8).filter(|bit| missing & (1 << bit) != 0).map(name);
            return Err(Violation::new(format!(
                "acknowledged write {} is lost: {} serves without it",
                which.collect::<Vec<_>>().join(", "),
                NAMES[n]
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::Bounds;
    use crate::sim::model::initial_states;
    use crate::sim::mutant::Mutant;

    /// Asserts that a search that counts forced new clusters accepts two of them before any fault, and reports three as a violation.
    #[test]
    fn more_forks_than_faults_are_a_violation_where_they_are_counted() {
        let judged = |counts_forks: bool, forks: u8| {
            let mut sim = Sim::new(Bounds { counts_forks, ..Bounds::of_search(1) }, Mutant::None);
            let mut world = initial_states::healthy(&mut sim);
            world.nodes[0].cib.lineage[0] = (forks, 1);
            check(&sim, &world).is_ok()
        };
        assert!(judged(true, 2));
        assert!(!judged(true, 3));
        assert!(judged(false, 3));
    }
}
