//! Everything that can happen, as a list: each move has a line of text, which is what scenario files are made of.

mod line;
pub mod scenario;

use crate::decide::Request;
use crate::decide::snapshot::{Lineage, PeerAgent};
use crate::sim::model::agent::{self, MOMENTS};
use crate::sim::model::pacemaker::{self, BEGINNINGS, Begin};
use crate::sim::model::steps::Step;
use crate::sim::model::world::{BANNED, Blind, Damage, Run, Stack, Wanted, Word, World};
use crate::sim::model::{etcd, view};
use crate::sim::reduce::atomic_steps::{Passing, boots_come_with_meetings, passing};
use crate::sim::{Bounds, Sim, Violation};

/// One thing that happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Move {
    Write,
    Replicate,
    Learn,
    Persist(usize),
    Elect(usize),
    Leave(usize),
    PowerCut(usize),
    Destroy(usize),
    Unblock(usize),
    Boot(usize),
    KillEtcd(usize),
    KillAgent(usize),
    CutLink,
    HealLink,
    Lag(usize),
    CatchUp,
    Notice,
    Meet(usize),
    Fence(usize),
    Begin(usize, Begin, usize),
    Decide(usize, usize),
    Effect(usize),
    GiveUp(usize),
    Want(usize, Wanted),
    Confirm(usize, bool),
    /// Pacemaker and Corosync end, in maintenance or killed, and come back in the same boot.
    EndStack(usize),
    KillStack(usize),
    StackBack(usize),
    /// The agent is killed while it starts etcd, and that start comes to its end later.
    KillLaunch(usize),
    Launched(usize),
    /// The power is cut, and with it goes what etcd needs of its data, which looks whole.
    Damage(usize),
    /// An operator cleans up: Pacemaker forgets its count of failures.
    CleanUp(usize),
    /// An operator chooses between two histories (`etcd_primary`).
    Choose(usize),
    /// An operator, or a program for him, says whose data counts (`force_new_cluster`).
    Tell(usize),
    /// The next look of an agent does not find something out.
    Hide(usize, Blind),
}

/// Every move that there is.
pub fn all() -> Vec<Move> {
    let mut moves = vec![Move::Write, Move::Replicate, Move::Learn, Move::CutLink, Move::HealLink];
    moves.extend([Move::CatchUp, Move::Notice]);
    for n in 0..2 {
        moves.extend([Move::Persist(n), Move::Elect(n), Move::Leave(n), Move::PowerCut(n), Move::Boot(n)]);
        moves.extend([Move::Destroy(n), Move::Unblock(n)]);
        moves.extend([Move::KillEtcd(n), Move::KillAgent(n), Move::Lag(n), Move::Meet(n), Move::Fence(n)]);
        moves.extend([Move::EndStack(n), Move::KillStack(n), Move::StackBack(n)]);
        moves.extend([Move::KillLaunch(n), Move::Launched(n), Move::Damage(n), Move::CleanUp(n)]);
        moves.extend([Move::Effect(n), Move::GiveUp(n), Move::Confirm(n, false), Move::Confirm(n, true)]);
        moves.extend([Wanted::Running, Wanted::Standby, Wanted::Shutdown].map(|wanted| Move::Want(n, wanted)));
        moves.extend([Move::Choose(n), Move::Tell(n)]);
        moves.extend(Blind::ALL.map(|what| Move::Hide(n, what)));
        for moment in 0..MOMENTS.len() {
            moves.push(Move::Decide(n, moment));
        }
        for begin in BEGINNINGS {
            let moments = if is_pending(begin) { 1 } else { MOMENTS.len() };
            moves.extend((0..moments).map(|moment| Move::Begin(n, begin, moment)));
        }
    }
    moves
}

/// A start and a stop are seen by others as soon as they begin; of the rest only what they do is seen.
pub fn is_pending(begin: Begin) -> bool {
    matches!(begin, Begin::Start { .. } | Begin::Stop { .. } | Begin::StopInVain)
}

impl Move {
    /// Whether it is a fault or an operator's doing, which a search has only so many of.
    pub fn is_fault(self) -> bool {
        matches!(
            self,
            Self::PowerCut(_)
                | Self::Destroy(_)
                | Self::KillEtcd(_)
                | Self::KillAgent(_)
                | Self::CutLink
                | Self::Lag(_)
                | Self::Confirm(..)
                | Self::EndStack(_)
                | Self::KillStack(_)
                | Self::KillLaunch(_)
                | Self::Damage(_)
                | Self::CleanUp(_)
                | Self::Choose(_)
                | Self::Tell(_)
                | Self::Hide(..)
                | Self::Want(_, Wanted::Standby | Wanted::Shutdown)
        )
    }

    /// A number for each kind of move, below 64: on whichever node, and at whichever moment.
    pub fn kind(self) -> usize {
        match self {
            Self::Write => 0,
            Self::Replicate => 1,
            Self::Learn => 2,
            Self::Persist(_) => 3,
            Self::Elect(_) => 4,
            Self::Leave(_) => 5,
            Self::PowerCut(_) => 6,
            Self::Destroy(_) => 7,
            Self::Unblock(_) => 8,
            Self::Boot(_) => 9,
            Self::KillEtcd(_) => 10,
            Self::KillAgent(_) => 11,
            Self::CutLink => 12,
            Self::HealLink => 13,
            Self::Lag(_) => 14,
            Self::CatchUp => 15,
            Self::Notice => 16,
            Self::Meet(_) => 17,
            Self::Fence(_) => 18,
            Self::Decide(..) => 19,
            Self::Effect(_) => 20,
            Self::GiveUp(_) => 21,
            Self::Want(_, Wanted::Running) => 22,
            Self::Want(_, Wanted::Standby) => 23,
            Self::Want(_, Wanted::Shutdown) => 24,
            Self::Confirm(_, false) => 25,
            Self::Confirm(_, true) => 26,
            Self::Choose(_) => 27,
            Self::Tell(_) => 28,
            Self::Hide(_, what) => 29 + what as usize,
            Self::EndStack(_) => 54,
            Self::KillStack(_) => 55,
            Self::StackBack(_) => 56,
            Self::KillLaunch(_) => 57,
            Self::Launched(_) => 58,
            Self::Damage(_) => 59,
            Self::CleanUp(_) => 60,
            Self::Begin(_, begin, _) => 40 + BEGINNINGS.iter().position(|known| *known == begin).unwrap_or(0),
        }
    }

    /// The same on the other node.
    #[must_use]
    pub fn of_the_other(self) -> Self {
        match self {
            Self::Persist(n) => Self::Persist(1 - n),
            Self::Elect(n) => Self::Elect(1 - n),
            Self::Leave(n) => Self::Leave(1 - n),
            Self::PowerCut(n) => Self::PowerCut(1 - n),
            Self::Destroy(n) => Self::Destroy(1 - n),
            Self::Unblock(n) => Self::Unblock(1 - n),
            Self::Boot(n) => Self::Boot(1 - n),
            Self::KillEtcd(n) => Self::KillEtcd(1 - n),
            Self::KillAgent(n) => Self::KillAgent(1 - n),
            Self::Lag(n) => Self::Lag(1 - n),
            Self::Meet(n) => Self::Meet(1 - n),
            Self::Fence(n) => Self::Fence(1 - n),
            Self::Begin(n, begin, moment) => Self::Begin(1 - n, begin, moment),
            Self::Decide(n, moment) => Self::Decide(1 - n, moment),
            Self::Effect(n) => Self::Effect(1 - n),
            Self::GiveUp(n) => Self::GiveUp(1 - n),
            Self::Want(n, wanted) => Self::Want(1 - n, wanted),
            Self::Confirm(n, accept_loss) => Self::Confirm(1 - n, accept_loss),
            Self::EndStack(n) => Self::EndStack(1 - n),
            Self::KillStack(n) => Self::KillStack(1 - n),
            Self::StackBack(n) => Self::StackBack(1 - n),
            Self::KillLaunch(n) => Self::KillLaunch(1 - n),
            Self::Launched(n) => Self::Launched(1 - n),
            Self::Damage(n) => Self::Damage(1 - n),
            Self::CleanUp(n) => Self::CleanUp(1 - n),
            Self::Choose(n) => Self::Choose(1 - n),
            Self::Tell(n) => Self::Tell(1 - n),
            Self::Hide(n, what) => Self::Hide(1 - n, what),
            Self::Write
            | Self::Replicate
            | Self::Learn
            | Self::CutLink
            | Self::HealLink
            | Self::CatchUp
            | Self::Notice => self,
        }
    }
}

/// Everything that can come of a state, each with its move. What only time changes is not tried where it changes
/// nothing.
pub fn apply_all(sim: &mut Sim, world: &World, mut tell: impl FnMut(Move, Result<World, Violation>)) {
    let passing = passing(sim, world);
    apply_passing(sim, world, passing, |_, what, result| tell(what, result.copied()));
}

/// The same of a state that passes as `passing` says.
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
            // Whose CIB counts is no matter then: the other one's move comes to the same.
            Move::Meet(1) if pacemaker::are_lasting_parts_equal(world) => {}
            what => match attempt(sim, world, what, &mut next) {
                Ok(false) => {}
                Ok(true) => tell(sim, what, Ok(&next)),
                Err(violation) => tell(sim, what, Err(violation)),
            },
        }
    });
}

/// Everything that the agent of `n` may decide in `next`, to which `world` has led.
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

fn at_moment(what: Move, moment: usize) -> Move {
    match what {
        Move::Decide(n, _) => Move::Decide(n, moment),
        Move::Begin(n, begin, _) => Move::Begin(n, begin, moment),
        what => what,
    }
}

/// Tells every move that may happen by a look at the state, in the order of [`all`]; the first moment of a decision
/// stands for the later ones.
fn thinkable(bounds: &Bounds, world: &World, passing: Option<Passing>, has_learner: bool, mut tell: impl FnMut(Move)) {
    let (is_led, may_fail) = (etcd::leader(world).is_some(), world.faults > 0);
    let mut tell_if = |is_so: bool, what: Move| {
        if is_so && passing.is_none_or(|passing| passing.allows(what)) {
            tell(what);
        }
    };
    tell_if(is_led, Move::Write);
    tell_if(is_led && world.link, Move::Replicate);
    tell_if(is_led, Move::Learn);
    tell_if(may_fail && world.link, Move::CutLink);
    tell_if(!world.link, Move::HealLink);
    tell_if(world.lagging.is_some(), Move::CatchUp);
    tell_if(world.joined, Move::Notice);
    for (n, node) in world.nodes.iter().enumerate() {
        if !node.on {
            tell_if(world.link || !boots_come_with_meetings(bounds, world), Move::Boot(n));
            continue;
        }
        let (runs, has_plan) = (node.etcd.is_on(), node.has_plan());
        let is_up = node.stack == Stack::Up;
        tell_if(may_fail && bounds.stacks && bounds.operators && is_up, Move::EndStack(n));
        tell_if(may_fail && bounds.stacks && is_up, Move::KillStack(n));
        tell_if(!is_up, Move::StackBack(n));
        tell_if(may_fail && bounds.launches && has_plan, Move::KillLaunch(n));
        tell_if(node.launching.is_some(), Move::Launched(n));
        tell_if(may_fail && bounds.damage, Move::Damage(n));
        tell_if(may_fail && bounds.operators && node.failures == BANNED, Move::CleanUp(n));
        tell_if(node.etcd == Run::Leader, Move::Persist(n));
        tell_if(matches!(node.etcd, Run::Fresh | Run::Leaderless), Move::Elect(n));
        tell_if(runs, Move::Leave(n));
        tell_if(may_fail, Move::PowerCut(n));
        tell_if(may_fail && bounds.disks, Move::Destroy(n));
        tell_if(bounds.unblocks && is_up, Move::Unblock(n));
        tell_if(may_fail && runs, Move::KillEtcd(n));
        tell_if(may_fail && node.action.is_some(), Move::KillAgent(n));
        tell_if(may_fail && world.joined, Move::Lag(n));
        tell_if(!world.joined && world.link && world.nodes[1 - n].on, Move::Meet(n));
        tell_if(true, Move::Fence(n));
        tell_if(has_plan, Move::Effect(n));
        tell_if(has_plan, Move::GiveUp(n));
        tell_if(may_fail && bounds.operators && !runs, Move::Confirm(n, false));
        tell_if(may_fail && bounds.operators && !runs, Move::Confirm(n, true));
        for wanted in [Wanted::Running, Wanted::Standby, Wanted::Shutdown] {
            let may = may_fail || wanted == Wanted::Running;
            let can = is_up && node.wanted != wanted && node.wanted != Wanted::Shutdown;
            tell_if(may && bounds.operators && can, Move::Want(n, wanted));
        }
        tell_if(may_fail && bounds.chooses && !runs, Move::Choose(n));
        tell_if(may_fail && bounds.tells && !runs, Move::Tell(n));
        let may_hide = may_fail && bounds.hides && node.blind == Blind::None && !has_plan;
        for what in Blind::ALL {
            tell_if(may_hide, Move::Hide(n, what));
        }
        tell_if(node.action.is_some() && !has_plan, Move::Decide(n, 0));
        if node.action.is_none() && passing.is_none() {
            for begin in BEGINNINGS {
                tell_if(pacemaker::may_begin(world, n, begin, has_learner), Move::Begin(n, begin, 0));
            }
        }
    }
}

/// What comes of a move: the next state, or nothing where it cannot happen or changes nothing.
pub fn apply(sim: &mut Sim, world: &World, what: Move) -> Result<Option<World>, Violation> {
    let has_learner = etcd::has_learner(sim, world);
    let mut is_thinkable = false;
    thinkable(&sim.bounds, world, None, has_learner, |one| is_thinkable |= one == at_moment(what, 0));
    let mut next = *world;
    Ok((is_thinkable && attempt(sim, world, what, &mut next)?).then_some(next))
}

/// Takes a move that is thinkable, and whether it changes anything: `next` is `world` before, and what comes of it after.
fn attempt(sim: &mut Sim, world: &World, what: Move, next: &mut World) -> Result<bool, Violation> {
    if what.is_fault() {
        next.faults -= 1;
    }
    Ok(happens(sim, next, what)? && settle(sim, world, next)?)
}

/// Brings what follows at once into line, and whether it is another state than `world`.
fn settle(sim: &mut Sim, world: &World, next: &mut World) -> Result<bool, Violation> {
    etcd::settle(sim, next);
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
        Move::PowerCut(n) => cut_power(world, n),
        Move::Destroy(n) => sim.bounds.disks && destroy(sim, world, n),
        Move::Unblock(n) => {
            let node = &mut world.nodes[n];
            sim.bounds.unblocks && node.on && node.stack == Stack::Up && !std::mem::replace(&mut node.quorum, true)
        }
        Move::Boot(n) => pacemaker::boot(world, n),
        Move::KillEtcd(n) => kill_etcd(world, n),
        Move::KillAgent(n) => return kill_agent(sim, world, n),
        Move::CutLink => {
            pacemaker::part(world);
            std::mem::replace(&mut world.link, false)
        }
        Move::HealLink => pacemaker::heal(world),
        Move::Lag(n) => lag(world, n),
        Move::CatchUp => pacemaker::catch_up(world),
        Move::Notice => pacemaker::notice(world),
        Move::Meet(n) => pacemaker::meet(world, n),
        Move::Fence(n) => pacemaker::fence(world, n, sim.strategy.fences()),
        Move::Begin(n, begin, moment) => {
            let begins = pacemaker::begin(world, n, begin, etcd::has_learner(sim, world));
            return Ok(begins && (is_pending(begin) || agent::round(sim, world, n, moment)?));
        }
        Move::Decide(n, moment) => return agent::round(sim, world, n, moment),
        Move::Effect(n) => return agent::effect(sim, world, n, false),
        Move::GiveUp(n) => return agent::effect(sim, world, n, true),
        Move::Want(n, wanted) => want(sim, world, n, wanted),
        Move::Confirm(n, accept_loss) => confirm(sim, world, n, accept_loss),
        Move::EndStack(n) => sim.bounds.stacks && pacemaker::end_stack(world, n, Stack::Ended),
        Move::KillStack(n) => sim.bounds.stacks && pacemaker::end_stack(world, n, Stack::Killed),
        Move::StackBack(n) => pacemaker::stack_is_back(world, n),
        Move::KillLaunch(n) => return kill_launch(sim, world, n),
        Move::Launched(n) => return launched(sim, world, n),
        Move::Damage(n) => sim.bounds.damage && damage(sim, world, n),
        Move::CleanUp(n) => std::mem::take(&mut world.nodes[n].failures) == BANNED,
        Move::Choose(n) => choose(sim, world, n),
        Move::Tell(n) => tell_whose_data_counts(sim, world, n),
        Move::Hide(n, what) => {
            let node = &mut world.nodes[n];
            let can = sim.bounds.hides && node.on && node.blind == Blind::None && !node.has_plan();
            node.blind = if can { what } else { node.blind };
            can
        }
    })
}

fn cut_power(world: &mut World, n: usize) -> bool {
    let was_on = world.nodes[n].on;
    if was_on {
        pacemaker::power_off(world, n);
    }
    was_on
}

/// The machine is gone with its data; what comes back in its place is blank. Writes that nobody else holds are lost with
/// it, and where no voter's data is left, a human has to choose a backup.
fn destroy(sim: &Sim, world: &mut World, n: usize) -> bool {
    if !cut_power(world, n) {
        return false;
    }
    let held = world.nodes[1 - n].data.newest(&sim.logs);
    let survives = is_spared(sim, world, n);
    world.given_up |= if survives { world.acked & !held.writes } else { world.acked };
    if !survives {
        world.words = 3;
    }
    (world.nodes[n].data, world.nodes[n].note, world.nodes[n].forces) =
        (crate::sim::model::log::Data::default(), 0, false);
    (world.nodes[n].damage, world.nodes[n].torn) = (Damage::None, false);
    true
}

fn kill_etcd(world: &mut World, n: usize) -> bool {
    let ran = world.nodes[n].etcd.is_on();
    etcd::kill(world, n);
    ran
}

/// Pacemaker takes an action that ends without an answer for a failed one.
fn kill_agent(sim: &Sim, world: &mut World, n: usize) -> Result<bool, Violation> {
    if world.nodes[n].action.is_none() {
        return Ok(false);
    }
    agent::answer(sim, world, n, crate::decide::Exit::Retriable)?;
    Ok(true)
}

/// What the agent had begun goes on without it: `podman` starts the container when it comes to that.
fn kill_launch(sim: &Sim, world: &mut World, n: usize) -> Result<bool, Violation> {
    let plan = world.nodes[n].action.and_then(|action| action.plan);
    let Some(Step::RunContainer(mode)) = plan.and_then(|(plan, done)| sim.plans.step(plan, done)) else {
        return Ok(false);
    };
    if !sim.bounds.launches {
        return Ok(false);
    }
    etcd::stop(world, n);
    world.nodes[n].launching = Some(mode);
    kill_agent(sim, world, n)
}

/// A start that outlived its agent comes to its end.
fn launched(sim: &mut Sim, world: &mut World, n: usize) -> Result<bool, Violation> {
    let Some(mode) = world.nodes[n].launching.take() else { return Ok(false) };
    if sim.judges() && world.nodes[n].cib.agent[n] == PeerAgent::Stopped {
        return Err(Violation::new(format!("{}: etcd starts after its stop was answered", view::NAMES[n])));
    }
    etcd::run(sim, world, n, mode)?;
    Ok(true)
}

/// No etcd starts from what is left. Where no voter's data is whole, a human has to choose a backup here, too.
fn damage(sim: &Sim, world: &mut World, n: usize) -> bool {
    let is_there = !world.nodes[n].data.is_blank() && cut_power(world, n);
    if is_there && world.nodes[n].damage == Damage::None {
        world.nodes[n].damage = Damage::Hidden;
        world.words = if is_spared(sim, world, n) { world.words } else { 3 };
    }
    is_there
}

/// Whether the loss of the data of `n` is no loss of the last voter's that is whole.
fn is_spared(sim: &Sim, world: &World, n: usize) -> bool {
    let peer = &world.nodes[1 - n];
    let was_sole = world.nodes[n].data.newest(&sim.logs).conf.has_one_voter();
    let is_whole = !peer.data.is_blank() && peer.damage == Damage::None;
    !was_sole && is_whole && peer.data.newest(&sim.logs).conf.votes(peer.data.mid)
}

fn lag(world: &mut World, n: usize) -> bool {
    let can = pacemaker::are_together(world) && world.lagging.is_none();
    world.lagging = u8::try_from(n).ok().filter(|_| can);
    can
}

fn want(sim: &Sim, world: &mut World, n: usize, wanted: Wanted) -> bool {
    let node = &mut world.nodes[n];
    // Whoever asked to shut down does so.
    let can = sim.bounds.operators
        && node.on
        && node.stack == Stack::Up
        && node.wanted != wanted
        && node.wanted != Wanted::Shutdown;
    if can {
        node.wanted = wanted;
        if wanted == Wanted::Shutdown {
            pacemaker::ask_to_shut_down(world, n);
        }
    }
    can
}

/// `tandem confirm-recovery`, by its own rules; what it asks of Pacemaker besides is quorum.
fn confirm(sim: &Sim, world: &mut World, n: usize, accept_loss: bool) -> bool {
    let node = &world.nodes[n];
    let newest = node.data.newest(&sim.logs).conf;
    let own = if node.note == 0 { Lineage::default() } else { sim.notes.get(node.note).lineage.clone() };
    let was_left_behind = view::was_left_behind(&node.cib, n, &own);
    let peer_serves = world.link && world.nodes[1 - n].etcd.is_led();
    let is_between_actions = node.action.is_none_or(|action| action.request == Request::Start);
    let can = sim.bounds.operators
        && pacemaker::is_up(world, n)
        && !node.etcd.is_on()
        && is_between_actions
        && !peer_serves
        && newest.votes(node.data.mid)
        && (accept_loss == was_left_behind);
    if can {
        world.nodes[n].word = Word::Given { accept_loss };
        world.nodes[n].quorum = true;
    }
    can
}

/// Where both nodes refuse to go on, as each holds a history of its own: what the other one took is given up by that.
fn choose(sim: &Sim, world: &mut World, n: usize) -> bool {
    let chosen = u8::try_from(n).ok();
    let can = sim.bounds.chooses
        && world.nodes[n].on
        && world.nodes[n].cib.primary != chosen
        && world.nodes.iter().all(|node| !node.etcd.is_on() && !node.has_plan())
        && etcd::have_parted(sim, world);
    if can {
        let is_heard = pacemaker::are_together(world);
        pacemaker::write(world, n, |cib| cib.primary = chosen);
        // The other's earlier word, if there was one, counts no more, once it can hear of this one.
        (world.words, world.unheard) = (1 << n, u8::from(!is_heard) << (1 - n));
    }
    can
}

/// Said of a node whose peer is replaced or restored: no etcd runs on either.
fn tell_whose_data_counts(sim: &Sim, world: &mut World, n: usize) -> bool {
    let can = sim.bounds.tells
        && world.nodes[n].on
        && !world.nodes[n].cib.told[n]
        && world.nodes.iter().all(|node| !node.etcd.is_on());
    if can {
        pacemaker::write(world, n, |cib| cib.told[n] = true);
    }
    can
}

#[cfg(test)]
pub(in crate::sim) mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::sim::model::initial_states;
    use crate::sim::mutant::Mutant;
    use crate::sim::reduce::symmetry::canonical;

    /// Shows `visit` every state of a search, also those that do not last.
    pub(in crate::sim) fn visit_all(sim: &mut Sim, mut visit: impl FnMut(&mut Sim, &World)) {
        let root = World { faults: sim.bounds.faults, ..initial_states::healthy(sim) };
        let (mut seen, mut open) = (HashSet::from([root]), vec![root]);
        while let Some(world) = open.pop() {
            visit(sim, &world);
            let mut next = Vec::new();
            apply_all(sim, &world, |_, result| next.extend(result));
            for mut world in next {
                if passing(sim, &world).is_none() {
                    canonical::canonical(sim, &mut world);
                }
                if seen.insert(world) {
                    open.push(world);
                }
            }
        }
    }

    #[test]
    fn what_is_not_thinkable_does_not_happen() {
        let all = all();
        let faults = Bounds {
            disks: true,
            unblocks: true,
            slow_fencing: true,
            stacks: true,
            damage: true,
            threshold: 2,
            ..Bounds::of_search(1)
        };
        let rarer = Bounds { tells: true, hides: true, promotable: true, ..Bounds::of_search(1) };
        for bounds in [faults, Bounds { unblocks: true, ..rarer }] {
            let mut tried = 0;
            visit_all(&mut Sim::new(bounds, Mutant::None), |sim, world| {
                let mut possible = Vec::new();
                thinkable(&bounds, world, None, etcd::has_learner(sim, world), |what| possible.push(what));
                let is_left_out =
                    |what: &Move| !possible.contains(&at_moment(*what, 0)) && (world.faults > 0 || !what.is_fault());
                for what in all.iter().copied().filter(is_left_out) {
                    assert_eq!(attempt(sim, world, what, &mut world.clone()), Ok(false), "{what:?} in {world:?}");
                    tried += 1;
                }
                assert!(possible.iter().all(|what| all.contains(what)), "a scenario cannot name all of {possible:?}");
            });
            assert!(tried > 100_000, "{tried} moves are too few to show anything");
        }
    }
}
