//! The result of a move.

use super::kinds::{Move, is_pending};
use super::possible::thinkable;
use super::{faults, operators};
use crate::sim::model::world::{BANNED, Blind, Bmc, NAMES, Stack, Word, World};
use crate::sim::model::{agent, etcd, leading, lone_boot, pacemaker, reach};
use crate::sim::reduce::atomic_steps::{Passing, passing};
use crate::sim::{Sim, Violation};

/// Passes to `tell` each move that can happen in `world`, with the next state or the violation. A decision at a later moment is passed
/// only if it differs from those at earlier moments.
pub fn apply_all(sim: &mut Sim, world: &World, mut tell: impl FnMut(Move, Result<World, Violation>)) {
    let passing = passing(sim, world);
    apply_passing(sim, world, passing, |_, what, result| tell(what, result.copied()));
}

/// Passes to `tell` the moves of `world`, as [`apply_all`] does. In a state that the search only passes through, `passing` is the
/// unfinished work that restricts the next moves.
pub(in crate::sim) fn apply_passing(
    sim: &mut Sim,
    world: &World,
    passing: Option<Passing>,
    mut tell: impl FnMut(&mut Sim, Move, Result<&World, Violation>),
) {
    let (bounds, has_learner) = (sim.bounds, etcd::has_learner(sim, world));
    let mut next = *world;
    thinkable(&bounds, world, passing, has_learner, |what| {
        next = *world;
        match what {
            Move::Decide(n, _) => decide_all(sim, world, n, what, &mut next, &mut tell),
            Move::Begin(n, begin, _) if !is_pending(begin) => {
                pacemaker::begin(&mut next, n, begin, has_learner);
                decide_all(sim, world, n, what, &mut next, &mut tell);
            }
            // Both CIBs are equal in all that lasts, so either node's move leads to the same state.
            Move::Meet(1) if pacemaker::are_lasting_parts_equal(world) => {}
            what => match attempt(sim, world, what, &mut next) {
                Ok(false) => {}
                Ok(true) => tell(sim, what, Ok(&next)),
                Err(violation) => tell(sim, what, Err(violation)),
            },
        }
    });
}

/// Passes to `tell` each decision of the agent of node `n` in the state `next`. The move `what` led from `world` to `next`.
fn decide_all(
    sim: &mut Sim,
    world: &World,
    n: usize,
    what: Move,
    next: &mut World,
    tell: &mut impl FnMut(&mut Sim, Move, Result<&World, Violation>),
) {
    let Some(action) = next.nodes[n].action else { return };
    let begun = *next;
    for (moment, plan) in agent::choices(sim, &begun, n) {
        *next = begun;
        let result = agent::carry_out(sim, next, n, action, plan);
        match result.and_then(|is_news| Ok(is_news && settle(sim, world, next)?)) {
            Ok(false) => {}
            Ok(true) => tell(sim, at_moment(what, moment), Ok(next)),
            Err(violation) => tell(sim, at_moment(what, moment), Err(violation)),
        }
    }
}

pub(super) fn at_moment(what: Move, moment: usize) -> Move {
    match what {
        Move::Decide(n, _) => Move::Decide(n, moment),
        Move::Begin(n, begin, _) => Move::Begin(n, begin, moment),
        what => what,
    }
}

/// Returns the next state after the move `what`; `None` if the move cannot happen or changes nothing.
pub fn apply(sim: &mut Sim, world: &World, what: Move) -> Result<Option<World>, Violation> {
    let has_learner = etcd::has_learner(sim, world);
    let mut is_thinkable = false;
    thinkable(&sim.bounds, world, None, has_learner, |one| is_thinkable |= one == at_moment(what, 0));
    let mut next = *world;
    Ok((is_thinkable && attempt(sim, world, what, &mut next)?).then_some(next))
}

/// Performs a move that [`thinkable`] allows. `next` must equal `world`, and becomes the next state. Returns whether the move changes
/// anything.
pub(super) fn attempt(sim: &mut Sim, world: &World, what: Move, next: &mut World) -> Result<bool, Violation> {
    if what.is_fault() {
        next.faults -= 1;
    }
    Ok(happens(sim, next, what)? && settle(sim, world, next)?)
}

/// Applies the immediate consequences of a move, and asserts the invariants. Returns whether the next state differs from `world`.
fn settle(sim: &mut Sim, world: &World, next: &mut World) -> Result<bool, Violation> {
    etcd::settle(sim, next);
    lone_boot::settle(sim, next);
    if sim.judges() {
        agent::check(sim, next)?;
    }
    Ok(*next != *world)
}

fn happens(sim: &mut Sim, world: &mut World, what: Move) -> Result<bool, Violation> {
    Ok(match what {
        Move::Write => etcd::write(sim, world),
        Move::Replicate => etcd::replicate(sim, world),
        Move::Learn => etcd::learn(sim, world),
        Move::Persist(n) => etcd::persist(sim, world, n),
        Move::Elect(n) => etcd::elect(sim, world, n),
        Move::Leave(n) => etcd::leave(sim, world, n),
        Move::StepDown(n) => std::mem::take(&mut world.nodes[n].lingers),
        Move::PowerCut(n) => faults::cut_power(world, n),
        Move::Destroy(n) => sim.bounds.disks && faults::destroy(sim, world, n),
        Move::Unblock(n) => {
            let node = &mut world.nodes[n];
            sim.bounds.unblocks && node.on && node.stack == Stack::Up && !std::mem::replace(&mut node.quorum, true)
        }
        Move::Boot(n) => pacemaker::boot(world, n),
        Move::KillEtcd(n) => faults::kill_etcd(world, n),
        Move::KillAgent(n) => return faults::kill_agent(sim, world, n),
        Move::CutLink => {
            pacemaker::part(world);
            std::mem::replace(&mut world.link, false)
        }
        Move::HealLink => pacemaker::heal(world),
        Move::PartEtcd => sim.bounds.parts_etcd && !std::mem::replace(&mut world.etcd_parted, true),
        Move::JoinEtcd => std::mem::take(&mut world.etcd_parted),
        Move::Lag(n) => faults::lag(world, n),
        Move::CatchUp => pacemaker::catch_up(world),
        Move::Notice => pacemaker::notice(world),
        Move::Meet(n) => pacemaker::meet(world, n),
        Move::Fence(n) => return fence(sim, world, n),
        Move::Begin(n, begin, moment) => {
            let begins = pacemaker::begin(world, n, begin, etcd::has_learner(sim, world));
            return Ok(begins && (is_pending(begin) || agent::round(sim, world, n, moment)?));
        }
        Move::Decide(n, moment) => return agent::round(sim, world, n, moment),
        Move::Effect(n) => return agent::effect(sim, world, n, false),
        Move::GiveUp(n) => return agent::effect(sim, world, n, true),
        Move::Want(n, wanted) => operators::want(sim, world, n, wanted),
        Move::Confirm(n, accept_loss, node_is_on) => operators::confirm(sim, world, n, accept_loss, node_is_on),
        Move::EndStack(n) => sim.bounds.stacks && pacemaker::end_stack(world, n, Stack::Ended),
        Move::KillStack(n) => sim.bounds.stacks && pacemaker::end_stack(world, n, Stack::Killed),
        Move::StackBack(n) => pacemaker::stack_is_back(world, n),
        Move::KillLaunch(n) => return faults::kill_launch(sim, world, n),
        Move::Launched(n) => return faults::launched(sim, world, n),
        Move::Damage(n) => sim.bounds.damage && faults::damage(sim, world, n),
        Move::Unmount(n) => sim.bounds.unmounts && faults::unmount(world, n),
        Move::Mount(n) => faults::mount(world, n),
        Move::PutBack(n, kept, with_note) => sim.bounds.puts_back && faults::put_back(sim, world, n, kept, with_note),
        Move::RollBack(n, kept, with_note) => sim.bounds.puts_back && faults::roll_back(sim, world, n, kept, with_note),
        Move::Copy(n, with_note) => sim.bounds.puts_back && faults::copy(world, n, with_note),
        Move::CleanUp(n) => std::mem::take(&mut world.nodes[n].failures) == BANNED,
        Move::Choose(n) => operators::choose(sim, world, n),
        Move::Tell(n) => operators::tell_whose_data_counts(sim, world, n),
        Move::Forget(n) => operators::forget(sim, world, n),
        Move::PromoteElsewhere => operators::promote(sim, world),
        Move::RemoveElsewhere => sim.bounds.others_remove && operators::remove(sim, world),
        Move::LoseThirdVoter => std::mem::replace(&mut world.third_voter, false),
        Move::ThirdVoterBack => etcd::third_voter_is_back(sim, world),
        Move::CutUsers(n) => sim.bounds.cuts_users && reach::set_users(world, n, false),
        Move::UsersBack(n) => reach::set_users(world, n, true),
        Move::DelayOver(n) => leading::end_delay(sim, world, n),
        Move::Keep(n, kept) => leading::keep(sim, world, n, kept),
        Move::BmcFails(..) | Move::BmcBack(_) | Move::OffForLong(_) | Move::LoneLook(_) | Move::LoneAct(_) => {
            return of_a_lone_boot(sim, world, what);
        }
        Move::Erase(n) => sim.bounds.hides && pacemaker::erase(world, n),
        Move::Hide(n, what) => sim.bounds.hides && hide(world, n, what),
    })
}

/// Hides the fact `what` from the next observation of the agent on node `n`. Returns false if that cannot happen now.
fn hide(world: &mut World, n: usize, what: Blind) -> bool {
    let node = &mut world.nodes[n];
    let can = node.on && node.blind == Blind::None && !node.has_plan();
    node.blind = if can { what } else { node.blind };
    can
}

/// Performs a move of a boot without the peer: a BMC fails or answers again, or `tandem lone-boot` takes one step.
fn of_a_lone_boot(sim: &mut Sim, world: &mut World, what: Move) -> Result<bool, Violation> {
    Ok(match what {
        Move::BmcFails(n, bmc) => sim.bounds.lone_boot && std::mem::replace(&mut world.bmc[n], bmc) == Bmc::Honest,
        Move::BmcBack(n) => std::mem::take(&mut world.bmc[n]) != Bmc::Honest,
        Move::OffForLong(n) => lone_boot::off_for_long(sim, world, n),
        Move::LoneLook(n) => lone_boot::look(sim, world, n),
        Move::LoneAct(n) => return lone_boot::act(sim, world, n),
        _ => false,
    })
}

/// Lets Pacemaker on node `n` fence its peer. Asserts that fencing after `tandem confirm-recovery` does not hit a serving leader, unless
/// the operator named the peer in the option `--node-is-on`.
fn fence(sim: &Sim, world: &mut World, n: usize) -> Result<bool, Violation> {
    let serves = world.nodes[1 - n].etcd.is_led();
    let by_word = matches!(world.nodes[n].word, Word::Given { node_is_on: false, .. });
    let is_fenced = pacemaker::fence(world, n, sim.strategy.has_pacemaker());
    if sim.judges() && is_fenced && serves && by_word {
        return Err(Violation::new(format!(
            "{}: a word that names no node that is on has its peer fenced, which serves",
            NAMES[n]
        )));
    }
    Ok(is_fenced)
}
