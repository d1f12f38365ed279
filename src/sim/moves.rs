//! Everything that can happen, as a list: each move has a line of text, which is what scenario files are made of.

use super::agent::{self, MOMENTS};
use super::pacemaker::{self, BEGINNINGS, Begin};
use super::passing::{self, Passing, passing};
use super::view::{self, NAMES};
use super::world::{Run, Wanted, Word, World};
use super::{Sim, Violation, etcd};
use crate::decide::Request;
use crate::decide::snapshot::Lineage;

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
}

/// Every move that there is.
pub fn all() -> Vec<Move> {
    let mut moves = vec![Move::Write, Move::Replicate, Move::Learn, Move::CutLink, Move::HealLink];
    moves.extend([Move::CatchUp, Move::Notice]);
    for n in 0..2 {
        moves.extend([Move::Persist(n), Move::Elect(n), Move::Leave(n), Move::PowerCut(n), Move::Boot(n)]);
        moves.extend([Move::Destroy(n), Move::Unblock(n)]);
        moves.extend([Move::KillEtcd(n), Move::KillAgent(n), Move::Lag(n), Move::Meet(n), Move::Fence(n)]);
        moves.extend([Move::Effect(n), Move::GiveUp(n), Move::Confirm(n, false), Move::Confirm(n, true)]);
        moves.extend([Wanted::Running, Wanted::Standby, Wanted::Shutdown].map(|wanted| Move::Want(n, wanted)));
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
                | Self::Want(_, Wanted::Standby | Wanted::Shutdown)
        )
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
            Self::Write
            | Self::Replicate
            | Self::Learn
            | Self::CutLink
            | Self::HealLink
            | Self::CatchUp
            | Self::Notice => self,
        }
    }

    /// The line of a scenario.
    pub fn text(self) -> String {
        let later = |moment: usize| {
            let (when, _) = MOMENTS[moment];
            if when.is_empty() { String::new() } else { format!(" {when}") }
        };
        match self {
            Self::Write => "client writes".to_owned(),
            Self::Replicate => "etcd replicates".to_owned(),
            Self::Learn => "etcd follower hears what is committed".to_owned(),
            Self::Persist(n) => format!("etcd on {} writes down what is committed", NAMES[n]),
            Self::Elect(n) => format!("etcd on {} asks for votes", NAMES[n]),
            Self::Leave(n) => format!("etcd on {} finds itself removed", NAMES[n]),
            Self::PowerCut(n) => format!("power of {} is cut", NAMES[n]),
            Self::Destroy(n) => format!("power of {} is cut, and its disk is lost", NAMES[n]),
            Self::Unblock(n) => format!("operator unblocks the quorum of {}", NAMES[n]),
            Self::Boot(n) => format!("power of {} is back", NAMES[n]),
            Self::KillEtcd(n) => format!("etcd on {} is killed", NAMES[n]),
            Self::KillAgent(n) => format!("agent on {} is killed", NAMES[n]),
            Self::CutLink => "net is cut".to_owned(),
            Self::HealLink => "net is back".to_owned(),
            Self::Lag(n) => format!("cib on {} stands still", NAMES[n]),
            Self::CatchUp => "cib catches up".to_owned(),
            Self::Notice => "pacemaker notices the loss".to_owned(),
            Self::Meet(n) => format!("pacemaker forms one membership, by the cib of {}", NAMES[n]),
            Self::Fence(n) => format!("pacemaker on {} fences its peer", NAMES[n]),
            Self::Begin(n, begin, moment) => {
                format!("pacemaker begins {} on {}{}", begin_text(begin), NAMES[n], later(moment))
            }
            Self::Decide(n, moment) => format!("agent on {} decides{}", NAMES[n], later(moment)),
            Self::Effect(n) => format!("agent on {} acts", NAMES[n]),
            Self::GiveUp(n) => format!("agent on {} acts and gives up", NAMES[n]),
            Self::Want(n, Wanted::Running) => format!("operator wants {} to run", NAMES[n]),
            Self::Want(n, Wanted::Standby) => format!("operator sets {} to standby", NAMES[n]),
            Self::Want(n, Wanted::Shutdown) => format!("operator shuts {} down", NAMES[n]),
            Self::Confirm(n, false) => format!("operator confirms the recovery of {}", NAMES[n]),
            Self::Confirm(n, true) => format!("operator confirms the recovery of {}, accepting the loss", NAMES[n]),
        }
    }
}

fn begin_text(begin: Begin) -> &'static str {
    match begin {
        Begin::Probe => "probe",
        Begin::Start { both: true } => "start (with its peer's)",
        Begin::Start { both: false } => "start",
        Begin::Monitor => "monitor",
        Begin::Stop { restart: true, both: false } => "stop (of a restart)",
        Begin::Stop { restart: false, both: false } => "stop",
        Begin::Stop { restart: true, both: true } => "stop (of a restart of both)",
        Begin::Stop { restart: false, both: true } => "stop (with its peer's)",
        Begin::StopInVain => "stop (of a restart, after starts in vain)",
        Begin::BeforeStart => "notification before a start",
        Begin::AfterStart => "notification after a start",
        Begin::AfterStop => "notification after a stop",
    }
}

/// Everything that can come of a state, each with its move. What only time changes is not tried where it changes
/// nothing.
pub fn apply_all(sim: &mut Sim, world: &World, moves: &[Move], tell: impl FnMut(Move, Result<World, Violation>)) {
    let passing = passing(sim, world);
    apply_passing(sim, world, passing, moves, tell);
}

/// The same of a state that passes as `passing` says.
pub(super) fn apply_passing(
    sim: &mut Sim,
    world: &World,
    passing: Option<Passing>,
    moves: &[Move],
    mut tell: impl FnMut(Move, Result<World, Violation>),
) {
    for what in moves.iter().copied().filter(|what| is_first(*what)) {
        if passing.is_some_and(|passing| !passing.allows(what)) || !is_thinkable(sim, world, what) {
            continue;
        }
        let (n, scratch) = match what {
            Move::Decide(n, _) => (n, *world),
            Move::Begin(n, begin, _) if !is_pending(begin) => {
                let mut begun = *world;
                pacemaker::begin(&mut begun, n, begin, is_learner_asked(begin, sim, world));
                (n, begun)
            }
            what => {
                if let Some(result) = attempt(sim, world, what).transpose() {
                    tell(what, result);
                }
                continue;
            }
        };
        let Some(action) = scratch.nodes[n].action else { continue };
        for (moment, plan) in agent::choices(sim, &scratch, n) {
            let mut next = scratch;
            let result = agent::carry_out(sim, &mut next, n, action, plan);
            let result = result.and_then(|is_news| if is_news { settled(sim, world, next) } else { Ok(None) });
            if let Some(result) = result.transpose() {
                tell(at_moment(what, moment), result);
            }
        }
    }
}

/// Whether it is the first of the moves that differ by the moment of a decision only: it stands for all of them.
fn is_first(what: Move) -> bool {
    !matches!(what, Move::Decide(_, moment) | Move::Begin(.., moment) if moment > 0)
}

fn at_moment(what: Move, moment: usize) -> Move {
    match what {
        Move::Decide(n, _) => Move::Decide(n, moment),
        Move::Begin(n, begin, _) => Move::Begin(n, begin, moment),
        what => what,
    }
}

/// Whether there is a learner, where it matters.
fn is_learner_asked(begin: Begin, sim: &Sim, world: &World) -> bool {
    begin == Begin::AfterStart && etcd::has_learner(sim, world)
}

/// Whether it is worth trying: false only where a look at the state is enough to know that it cannot happen.
fn is_thinkable(sim: &Sim, world: &World, what: Move) -> bool {
    let nodes = &world.nodes;
    let leads = |n: usize| nodes[n].etcd == Run::Leader;
    let has_plan = |n: usize| nodes[n].action.is_some_and(|action| action.plan.is_some());
    match what {
        _ if what.is_fault() && world.faults == 0 => false,
        Move::Write | Move::Learn => leads(0) || leads(1),
        Move::Replicate => world.link && (leads(0) || leads(1)),
        Move::Persist(n) => leads(n),
        Move::Elect(n) => matches!(nodes[n].etcd, Run::Fresh | Run::Leaderless),
        Move::Leave(n) | Move::KillEtcd(n) => nodes[n].etcd.is_on(),
        Move::PowerCut(n) | Move::Fence(n) => nodes[n].on,
        Move::Destroy(n) => sim.bounds.disks && nodes[n].on,
        Move::Unblock(n) => sim.bounds.unblocks && nodes[n].on,
        Move::Boot(n) => !nodes[n].on && (world.link || !passing::boots_come_with_meetings(sim, world)),
        Move::KillAgent(n) => nodes[n].action.is_some(),
        Move::CutLink => world.link,
        Move::HealLink => !world.link,
        Move::Lag(_) | Move::Notice => world.joined,
        Move::CatchUp => world.lagging.is_some(),
        Move::Meet(_) => !world.joined && world.link && nodes[0].on && nodes[1].on,
        Move::Begin(n, ..) if nodes[n].action.is_some() => false,
        Move::Begin(n, begin, _) => pacemaker::may_begin(world, n, begin, is_learner_asked(begin, sim, world)),
        Move::Decide(n, _) => nodes[n].action.is_some() && !has_plan(n),
        Move::Effect(n) | Move::GiveUp(n) => has_plan(n),
        Move::Want(n, wanted) => sim.bounds.operators && nodes[n].on && nodes[n].wanted != wanted,
        Move::Confirm(n, _) => sim.bounds.operators && nodes[n].on && !nodes[n].etcd.is_on(),
    }
}

/// What comes of a move: the next state, or nothing where it cannot happen or changes nothing.
pub fn apply(sim: &mut Sim, world: &World, what: Move) -> Result<Option<World>, Violation> {
    if is_thinkable(sim, world, what) { attempt(sim, world, what) } else { Ok(None) }
}

/// What comes of a move that is thinkable.
fn attempt(sim: &mut Sim, world: &World, what: Move) -> Result<Option<World>, Violation> {
    let mut next = *world;
    if what.is_fault() {
        next.faults -= 1;
    }
    if !happens(sim, &mut next, what)? {
        return Ok(None);
    }
    settled(sim, world, next)
}

fn settled(sim: &mut Sim, world: &World, mut next: World) -> Result<Option<World>, Violation> {
    etcd::settle(sim, &mut next);
    if sim.judges() {
        agent::check(sim, &next)?;
    }
    Ok((next != *world).then_some(next))
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
            sim.bounds.unblocks && node.on && !std::mem::replace(&mut node.quorum, true)
        }
        Move::Boot(n) => pacemaker::boot(world, n),
        Move::KillEtcd(n) => kill_etcd(world, n),
        Move::KillAgent(n) => return kill_agent(world, n),
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
            let begins = pacemaker::begin(world, n, begin, is_learner_asked(begin, sim, world));
            return Ok(begins && (is_pending(begin) || agent::round(sim, world, n, moment)?));
        }
        Move::Decide(n, moment) => return agent::round(sim, world, n, moment),
        Move::Effect(n) => return agent::effect(sim, world, n, false),
        Move::GiveUp(n) => return agent::effect(sim, world, n, true),
        Move::Want(n, wanted) => want(sim, world, n, wanted),
        Move::Confirm(n, accept_loss) => confirm(sim, world, n, accept_loss),
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
    let peer = world.nodes[1 - n].data;
    let held = peer.newest(&sim.logs);
    let was_sole = world.nodes[n].data.newest(&sim.logs).conf.has_one_voter();
    let survives = !was_sole && !peer.is_blank() && held.conf.votes(peer.mid);
    world.given_up |= if survives { world.acked & !held.writes } else { world.acked };
    world.overridden |= !survives;
    (world.nodes[n].data, world.nodes[n].note, world.nodes[n].forces) = (super::log::Data::default(), 0, false);
    true
}

fn kill_etcd(world: &mut World, n: usize) -> bool {
    let ran = world.nodes[n].etcd.is_on();
    etcd::kill(world, n);
    ran
}

/// Pacemaker takes an action that ends without an answer for a failed one.
fn kill_agent(world: &mut World, n: usize) -> Result<bool, Violation> {
    if world.nodes[n].action.is_none() {
        return Ok(false);
    }
    pacemaker::answered(world, n, crate::decide::Exit::Retriable)?;
    Ok(true)
}

fn lag(world: &mut World, n: usize) -> bool {
    let can = pacemaker::are_together(world) && world.lagging.is_none();
    world.lagging = u8::try_from(n).ok().filter(|_| can);
    can
}

fn want(sim: &Sim, world: &mut World, n: usize, wanted: Wanted) -> bool {
    let node = &mut world.nodes[n];
    let can = sim.bounds.operators && node.on && node.wanted != wanted;
    node.wanted = if can { wanted } else { node.wanted };
    can
}

/// `tandem confirm-recovery`, by its own rules; what it asks of Pacemaker besides is quorum.
fn confirm(sim: &Sim, world: &mut World, n: usize, accept_loss: bool) -> bool {
    let node = &world.nodes[n];
    let newest = node.data.newest(&sim.logs).conf;
    let own = if node.note == 0 { Lineage::default() } else { sim.notes.get(node.note).lineage.clone() };
    let was_left_behind = view::lineage(node.cib.lineage).is_beyond(&own);
    let peer_serves = world.link && world.nodes[1 - n].etcd.is_led();
    let is_between_actions = node.action.is_none_or(|action| action.request == Request::Start);
    let can = sim.bounds.operators
        && node.on
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
