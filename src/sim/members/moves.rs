//! The moves: a tool's next move, a fault of a member, and what follows by itself.

use super::mutant::Mutant;
use super::view;
use super::world::{Condition, Errand, Member, PLACES, Phase, Stage, TOOLS, World};
use crate::decide::may_stop::{Answer, may_stop_among};
use crate::decide::members::{Forbidden, MemberStep, Next, next, quorum};

/// The description of a broken invariant, as a sentence.
pub(super) type Wrong = String;

/// The name of the move in which a lost member comes back while a tool is to replace it. The move may happen, but a replacement must be
/// able to end without it.
pub(super) const RETURNS: &str = "the old one is back";

/// Passes to `found` each move that can follow `world`: the move's name, and the next state or the invariant that the move breaks.
pub(super) fn each(world: &World, mutant: Mutant, mut found: impl FnMut(&str, Result<World, Wrong>)) {
    for tool in 0..TOOLS {
        tools(world, tool, mutant, &mut found);
    }
    if !world.acts() {
        members(world, &mut found);
        if !world.is_settled() {
            found("every member applies the change", Ok(world.settled()));
        }
    }
}

type Found<'a> = &'a mut dyn FnMut(&str, Result<World, Wrong>);

/// Returns the listed members, each with its place in the state. Of several equal members, it returns only the first.
fn places(world: &World) -> impl Iterator<Item = (usize, Member)> {
    let differs = |at: &usize| *at == 0 || world.members[*at] != world.members[*at - 1];
    (0..PLACES).filter(differs).map(|at| (at, world.members[at])).filter(|(_, member)| member.is_listed())
}

fn members(world: &World, found: Found<'_>) {
    for (at, member) in places(world) {
        let mut becomes = |what: &str, member: Member| found(what, Ok(world.with_member(at, member)));
        match (member.stage(), member.condition()) {
            (Stage::Unstarted, _) => becomes("a learner starts", member.with_stage(Stage::Behind)),
            (stage, Condition::Up) => match stage {
                Stage::Behind => becomes("a learner comes close", member.with_stage(Stage::Near)),
                Stage::Near => {
                    becomes("a learner has caught up", member.with_stage(Stage::Whole));
                    becomes("a learner falls behind", member.with_stage(Stage::Behind));
                }
                Stage::Whole | Stage::Unstarted => {}
            },
            (_, condition @ (Condition::Down | Condition::HiddenUp)) => {
                let is_lost = condition == Condition::Down && world.is_to_be_replaced(member);
                becomes(if is_lost { RETURNS } else { "a member is back" }, member.with_condition(Condition::Up));
            }
            (_, Condition::HiddenDown) => becomes("a member is seen down", member.with_condition(Condition::Down)),
        }
        let has_started = member.stage() != Stage::Unstarted;
        if world.faults > 0 && has_started && member.condition() == Condition::Up {
            let mut faulty = |what: &str, condition| {
                let hit = member.with_condition(condition);
                let hit = if hit.lives() { hit } else { hit.with_leadership(false) };
                let next = world.with_member(at, hit);
                found(what, Ok(World { faults: world.faults - 1, ..next }));
            };
            faulty("a member goes down", Condition::Down);
            faulty("a member is not to be seen", Condition::HiddenUp);
            faulty("a member goes down unseen", Condition::HiddenDown);
        }
        if world.deletions > 0 && !member.is_deleted() && !member.votes() {
            let next = world.with_member(at, member.deleted());
            found("a Machine is being deleted", Ok(World { deletions: world.deletions - 1, ..next }));
        }
        let may_lead = member.votes() && member.lives() && view::has_majority(world);
        if may_lead && !world.listed().any(Member::leads) {
            found("a voter is elected", Ok(world.with_member(at, member.with_leadership(true))));
        }
    }
}

fn tools(world: &World, tool: usize, mutant: Mutant, found: Found<'_>) {
    let own = world.tools[tool];
    let holds_lock = world.lock.is_some_and(|holder| usize::from(holder) == tool);
    let may_lock = world.lock.is_none() || mutant == Mutant::LockIgnored;
    match own.phase {
        Phase::Idle => call(world, tool, mutant, found),
        Phase::Locked => look(world, tool, mutant, found),
        Phase::Adds | Phase::Promotes | Phase::HandsOver | Phase::Removes => {
            found("a tool acts", act(world, tool));
        }
        Phase::Stopped if holds_lock && mutant != Mutant::LeaseNeverEnds => {
            found("a lease ends", Ok(World { lock: None, ..*world }));
        }
        Phase::Stopped if may_lock && !holds_lock => found("a tool is called again", Ok(locked(world, tool))),
        Phase::Stopped | Phase::Done => {}
    }
    if world.crashes > 0 && (own.phase == Phase::Locked || own.phase.has_step()) {
        let killed = world.unaimed(tool).with_tool(tool, |tool| {
            (tool.phase, tool.uses_word) = (Phase::Stopped, false);
        });
        found("a tool is killed", Ok(World { crashes: world.crashes - 1, ..killed }));
    }
}

fn locked(world: &World, tool: usize) -> World {
    World { lock: u8::try_from(tool).ok(), ..world.with_tool(tool, |tool| tool.phase = Phase::Locked) }
}

/// Passes to `found` each call of `tool` that an operator can make, with the next state. A tool that finds the lock taken refuses the
/// call, and the state does not change.
fn call(world: &World, tool: usize, mutant: Mutant, found: Found<'_>) {
    for (at, member) in places(world) {
        let named = world.with_member(at, member.as_subject(tool)).with_tool(tool, |tool| tool.errand = Errand::Stop);
        stop(&named, tool, mutant, found);
    }
    if world.lock.is_some() && mutant != Mutant::LockIgnored {
        return;
    }
    let called = |errand, word| locked(world, tool).with_tool(tool, |tool| (tool.errand, tool.word) = (errand, word));
    found("a tool is to add", Ok(called(Errand::Add, false)));
    for (at, member) in places(world) {
        let named = member.as_subject(tool);
        let mut of = |what: &str, errand, word| found(what, Ok(called(errand, word).with_member(at, named)));
        of("a tool is to remove", Errand::Remove, false);
        if member.votes() {
            of("a tool is to replace", Errand::Replace, false);
            of("a tool is to remove at a word", Errand::Remove, true);
        } else {
            of("a tool is to promote", Errand::Promote, false);
        }
    }
}

fn done(world: &World, tool: usize) -> World {
    let lock = world.lock.filter(|holder| usize::from(*holder) != tool);
    let world = world.forgotten(tool).with_tool(tool, |tool| {
        *tool = super::world::Tool { phase: Phase::Done, ..Default::default() };
    });
    World { lock, ..world }
}

/// Stops the member that `tool` asks about, if the rules allow it. The answer and the stop are one move.
fn stop(world: &World, tool: usize, mutant: Mutant, found: Found<'_>) {
    let place = (0..PLACES).find(|at| world.members[*at].is_listed() && world.members[*at].is_subject(tool));
    let Some(place) = place else { return found("a node is gone", Ok(done(world, tool))) };
    let id = u64::try_from(place + 1).unwrap_or_default();
    let answer = may_stop_among(&view::look(world, tool, mutant), id);
    if answer != Answer::Yes && mutant != Mutant::StopWithoutMajority {
        return;
    }
    let member = world.members[place];
    let stopped = if member.stage() == Stage::Unstarted { member } else { member.with_condition(Condition::Down) };
    let next = world.with_member(place, stopped.with_leadership(false));
    found("a node is stopped", keeps_the_quorum(world, &next).map(|()| done(&next, tool)));
}

fn look(world: &World, tool: usize, mutant: Mutant, found: Found<'_>) {
    let seen = view::look(world, tool, mutant);
    let Some(wish) = view::wish(world, tool) else { return };
    let answer = next(&seen, &wish, &view::words(world, tool, mutant));
    let (step, uses_word) = match mutant.instead(answer, &seen, &wish) {
        Next::Done => return found("a tool is done", Ok(done(world, tool))),
        Next::Step(step, passed) => (step, passed.uses_word && world.tools[tool].word),
        Next::Forbidden(why) if mutant.passes_over(&why) => {
            let Some(subject) = view::subject(world, tool) else { return };
            (MemberStep::Remove(subject), false)
        }
        Next::Forbidden(why) => {
            // The tool waits, with the lock, for an obstacle that passes. Otherwise it ends, and a replacement may be
            // called again.
            if !why.passes() {
                let lock = world.lock.filter(|holder| usize::from(*holder) != tool);
                let refused = match world.tools[tool].errand {
                    Errand::Replace => world.with_tool(tool, |tool| tool.phase = Phase::Stopped),
                    _ => done(world, tool),
                };
                found("a tool is refused", Ok(World { lock, ..refused }));
            }
            return;
        }
    };
    let (phase, aim) = match step {
        MemberStep::AddLearner(_) => (Phase::Adds, None),
        MemberStep::Promote(_) if mutant == Mutant::NeverPromoted => return,
        MemberStep::Promote(id) => (Phase::Promotes, Some(id)),
        MemberStep::MoveLeader { to } => (Phase::HandsOver, Some(to)),
        MemberStep::Remove(_) if mutant == Mutant::OldNeverGoes => return,
        MemberStep::Remove(id) => (Phase::Removes, Some(id)),
    };
    let mut next = world.with_tool(tool, |tool| (tool.phase, tool.uses_word) = (phase, uses_word));
    if let Some(place) = aim.map(view::place) {
        next.members[place] = next.members[place].as_aim(tool);
    }
    found("a tool looks", Ok(next));
}

/// Performs the next step of `tool`, and answers it as etcd would. etcd accepts every change for which there is a majority, but adds no
/// member while a voter is down.
fn act(world: &World, tool: usize) -> Result<World, Wrong> {
    let own = world.tools[tool];
    let mut next = world.unaimed(tool).with_tool(tool, |tool| {
        (tool.phase, tool.uses_word) = (Phase::Locked, false);
    });
    let aim = (0..PLACES).find(|at| world.members[*at].is_aim(tool) && world.members[*at].is_listed());
    if !view::has_majority(world) || !world.listed().any(Member::leads) {
        return Ok(next);
    }
    match (own.phase, aim) {
        (Phase::Adds, _) if world.listed().any(|member| member.votes() && !member.lives()) => return Ok(next),
        (Phase::Adds, _) => {
            let free = (0..PLACES).find(|at| next.members[*at] == Member::default());
            let Some(free) = free else { return Err("there are more members than a state has room for".to_owned()) };
            next.members[free] = Member::newcomer(tool).as_recent();
        }
        (Phase::Promotes, Some(at)) if !world.members[at].votes() => {
            let learner = world.members[at];
            if learner.is_deleted() {
                return Err("a member is promoted whose Machine is being deleted".to_owned());
            }
            if learner.stage() != Stage::Whole {
                return Err("a learner is promoted that has not caught up".to_owned());
            }
            next.members[at] = next.members[at].as_voter();
        }
        (Phase::HandsOver, Some(at)) => {
            next.members = next.members.map(|member| member.with_leadership(false));
            next.members[at] = next.members[at].with_leadership(true);
        }
        (Phase::Removes, Some(at)) => {
            if world.members[at].leads() {
                return Err("a leader is removed that has not handed over".to_owned());
            }
            next.members[at] = next.members[at].as_gone();
            if own.uses_word {
                // From now on there may be fewer voters.
                next = next.with_tool(tool, |tool| tool.word = false);
                next.wanted = next.wanted.min(u8::try_from(next.voters()).unwrap_or(next.wanted));
            }
        }
        // The member of the step is gone meanwhile, so etcd refuses.
        _ => return Ok(next),
    }
    keeps_the_quorum(world, &next)?;
    keeps_its_size(world, &next)?;
    if next.copies() < world.copies().min(usize::from(world.wanted)) && !own.uses_word {
        return Err(format!("{} whole copies are left, of {} that are wanted", next.copies(), world.wanted));
    }
    Ok(next)
}

fn keeps_the_quorum(before: &World, after: &World) -> Result<(), Wrong> {
    let lives = |world: &World| world.voters() > 0 && world.living_voters() >= quorum(world.voters());
    if lives(before) && !lives(after) {
        return Err(format!("the quorum is lost: {} of {} voters live", after.living_voters(), after.voters()));
    }
    Ok(())
}

fn keeps_its_size(before: &World, after: &World) -> Result<(), Wrong> {
    let (count, most) = (after.listed().count(), usize::from(after.wanted) + 1);
    let learners = count - after.voters();
    if learners > 1 {
        return Err(format!("there are {learners} learners"));
    }
    if count > most && count > before.listed().count() {
        return Err(format!("there are {count} members, and {} voters are wanted", after.wanted));
    }
    Ok(())
}

/// Returns whether `tool` has nothing left to do. That is so if it is done, if it was not called for a replacement, or if a rule
/// forbids its step until an operator or another tool does something.
pub(super) fn has_ended(world: &World, tool: usize) -> bool {
    let own = world.tools[tool];
    if own.errand != Errand::Replace || own.phase == Phase::Done {
        return true;
    }
    let Some(wish) = view::wish(world, tool) else { return true };
    // A member to be replaced stays down. If the others are no majority, M11 names the way back.
    let is_lost = |member: &Member| !member.lives() && world.is_to_be_replaced(*member);
    let others = world.listed().filter(|member| member.votes() && !is_lost(member)).count();
    if others < quorum(world.voters()) {
        return true;
    }
    match next(&view::look(world, tool, Mutant::None), &wish, &view::words(world, tool, Mutant::None)) {
        // Another tool has spent the learner that was to replace it, or the newcomer's Machine is being deleted.
        Next::Forbidden(
            Forbidden::TooMany { .. } | Forbidden::BeingDeleted { .. } | Forbidden::NoReplacement { .. },
        ) => true,
        // Another tool's learner, with a Machine that is being deleted, waits for an operator to remove it.
        Next::Forbidden(Forbidden::LearnerListed { .. }) => {
            world.listed().any(|member| !member.votes() && (member.is_deleted() || has_no_tool(world, member)))
        }
        _ => false,
    }
}

/// Returns whether there is no tool left that could promote the learner `member`.
fn has_no_tool(world: &World, member: Member) -> bool {
    (0..TOOLS).all(|tool| !member.is_new(tool) || world.tools[tool].phase == Phase::Done)
}
