//! States that do not last: what is under way in them is gone through in one go, and nothing but a fault comes between.
//! Why what is left out by that comes to the same, or is given up, stands with each rule; `--fine` lasts in every state.

use crate::decide::Request;
use crate::sim::model::world::{Run, Stack, World};
use crate::sim::model::{agent, etcd};
use crate::sim::moves::kinds::Move;
use crate::sim::{Bounds, Sim};

/// What is under way: a round whose next effect can happen, entries between the two etcds, a stop that has only etcd's end
/// before it, or a machine that boots.
#[derive(Clone, Copy, Debug)]
pub struct Passing {
    acting: Option<usize>,
    stops: bool,
    boots: bool,
}

impl Passing {
    /// Whether it may come next.
    pub fn allows(self, what: Move) -> bool {
        match what {
            Move::Boot(_) | Move::Meet(_) => self.boots,
            Move::Effect(n) | Move::GiveUp(n) | Move::Decide(n, _) => self.acting == Some(n),
            Move::Replicate | Move::Learn | Move::Persist(_) | Move::Leave(_) => true,
            Move::Want(n, _) => what.is_fault() || (self.stops && self.acting == Some(n)),
            what => what.is_fault(),
        }
    }
}

/// See [`Passing`]; none where a state lasts.
pub fn passing(sim: &Sim, world: &World) -> Option<Passing> {
    if sim.bounds.fine {
        return None;
    }
    let acting = (0..2).find(|n| agent::may_act(sim, world, *n));
    if acting.is_some() || etcd::is_passing(sim, world) {
        return Some(Passing { acting, stops: false, boots: false });
    }
    let acting = (0..2).find(|n| just_stops(sim, world, *n));
    let stops = acting.is_some();
    let boots = !stops && is_about_to_meet(sim, world);
    (stops || boots).then_some(Passing { acting, stops, boots })
}

/// Whether a stop has begun on `n` that asks nobody: it could as well begin later.
///
/// Where etcd is gone, others see of it nothing until it ends (a stop on its way counts as active), and nothing that it
/// asks for changes, but whether it is half of a restart, which [`Passing`] lets an operator change. So nothing is given up.
///
/// Where etcd has no leader, that it might get one first is given up, and with that variables of a transition that are
/// older than the leader: only once no fault is left, and not with `--keep-dead`.
fn just_stops(sim: &Sim, world: &World, n: usize) -> bool {
    let node = &world.nodes[n];
    let begins = node
        .action
        .is_some_and(|action| action.request == Request::Stop && action.plan.is_none() && action.progress == 0);
    begins && (node.etcd == Run::Off || (world.faults == 0 && !sim.bounds.keeps_dead && !node.etcd.is_led()))
}

/// Whether a machine that boots may as well boot later, when it meets its peer or when that boots: until then it does
/// nothing, as Pacemaker has no quorum there, and nobody sees it, as the peer has noticed its loss. What could tell
/// the difference is a fault, an operator among them. So nothing is given up.
pub fn boots_come_with_meetings(bounds: &Bounds, world: &World) -> bool {
    !bounds.fine && !bounds.unblocks && world.faults == 0 && !world.joined
}

fn is_about_to_meet(sim: &Sim, world: &World) -> bool {
    let waits = |n: usize| {
        let (node, other) = (&world.nodes[n], &world.nodes[1 - n]);
        let can_meet = !other.on || other.stack == Stack::Up;
        node.on && node.stack == Stack::Up && !node.quorum && !node.etcd.is_on() && node.launching.is_none() && can_meet
    };
    world.link && boots_come_with_meetings(&sim.bounds, world) && (0..2).any(waits)
}
