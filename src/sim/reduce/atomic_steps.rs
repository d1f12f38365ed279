//! Atomic steps, a partial-order reduction. In some states only faults can come before the current work is finished.
//! Such a state does not last: the search passes through it and does not keep it. Each rule states whether it is exact,
//! and why, or what it leaves out. With `--fine` every state lasts.

use crate::decide::Request;
use crate::sim::model::world::{Run, Stack, World};
use crate::sim::model::{agent, etcd};
use crate::sim::moves::kinds::Move;
use crate::sim::{Bounds, Sim};

/// The unfinished work in a state that a search passes through and does not keep. It is an effect that can happen, entries between the
/// two etcds, a stop that only waits for etcd to end, or a boot.
#[derive(Clone, Copy, Debug)]
pub struct Passing {
    acting: Option<usize>,
    stops: bool,
    boots: bool,
    /// True if a vote proxy acknowledges what a leader sends, so that clients can write.
    stands_in: bool,
}

impl Passing {
    /// Returns whether the move `what` may happen before this work is finished.
    pub fn allows(self, what: Move) -> bool {
        match what {
            Move::Boot(_) | Move::Meet(_) => self.boots,
            Move::Effect(n) | Move::GiveUp(n) | Move::Decide(n, _) => self.acting == Some(n),
            Move::Write => self.stands_in,
            Move::Replicate | Move::Learn | Move::Persist(_) | Move::Leave(_) => true,
            Move::Want(n, _) => what.is_fault() || (self.stops && self.acting == Some(n)),
            what => what.is_fault(),
        }
    }
}

/// Returns the unfinished work in `world`; `None` if a search keeps this state and does not only pass through it.
pub fn passing(sim: &Sim, world: &World) -> Option<Passing> {
    if sim.bounds.fine {
        return None;
    }
    let acting = (0..2).find(|n| agent::may_act(sim, world, *n));
    if acting.is_some() || etcd::is_passing(sim, world) {
        let stands_in = (0..2).any(|n| sim.is_stood_in_for(world, n));
        return Some(Passing { acting, stops: false, boots: false, stands_in });
    }
    let acting = (0..2).find(|n| just_stops(sim, world, *n));
    let stops = acting.is_some();
    let boots = !stops && is_about_to_meet(sim, world);
    (stops || boots).then_some(Passing { acting, stops, boots, stands_in: false })
}

/// Returns whether a stop has begun on node `n` that depends on no other node. It could as well begin later, so a search need not keep
/// this state.
///
/// If etcd is gone, this is exact. Other nodes see nothing of the stop until it ends, because a node that stops counts as active. Of
/// the values that the stop reads, only one can change: whether it is half of a restart. [`Passing`] allows the operator's move that
/// changes it.
///
/// If etcd runs without a leader, this is not exact, because the stop is assumed to decide before an election. The search then misses
/// an election that happens first, and notify variables from before the loss of the leader. So this case counts only once no fault may
/// happen any more, and not with `--keep-dead`.
fn just_stops(sim: &Sim, world: &World, n: usize) -> bool {
    let node = &world.nodes[n];
    let begins = node
        .action
        .is_some_and(|action| action.request == Request::Stop && action.plan.is_none() && action.progress == 0);
    begins && (node.etcd == Run::Off || (world.faults == 0 && !sim.bounds.keeps_dead && !node.etcd.is_led()))
}

/// Returns whether the search may postpone a boot until the machine meets its peer, or until the peer boots.
///
/// This is exact. Until that time, Pacemaker has no quorum on the machine and does nothing. The peer has already noticed the loss of
/// the machine, and does not see that it is back. Only a fault or an operator's action could show the difference.
pub fn boots_come_with_meetings(bounds: &Bounds, world: &World) -> bool {
    !bounds.fine && !bounds.unblocks && !bounds.lone_boot && world.faults == 0 && !world.joined
}

fn is_about_to_meet(sim: &Sim, world: &World) -> bool {
    let waits = |n: usize| {
        let (node, other) = (&world.nodes[n], &world.nodes[1 - n]);
        let can_meet = !other.on || other.stack == Stack::Up;
        node.on && node.stack == Stack::Up && !node.quorum && !node.etcd.is_on() && node.launching.is_none() && can_meet
    };
    world.link && boots_come_with_meetings(&sim.bounds, world) && (0..2).any(waits)
}
