//! Whom Pacemaker fences, and what it takes as confirmed by that.

use super::machines::power_off;
use super::membership::part;
use crate::decide::evidence::{PeerAgent, PeerNode};
use crate::sim::model::world::{Cib, Stack, World};

/// True if a CIB proves that `node` is off: it is gone as expected, and its agent was stopped before.
pub fn is_confirmed_down(cib: &Cib, node: usize) -> bool {
    let may_run = matches!(cib.agent[node], PeerAgent::Active | PeerAgent::Starting | PeerAgent::Stopping);
    cib.machine[node] == PeerNode::Down && !may_run
}

/// Whether `by` fences somebody.
pub fn may_fence(world: &World, by: usize) -> bool {
    let (me, other) = (&world.nodes[by], 1 - by);
    let is_gone = !matches!(me.cib.machine[other], PeerNode::Online | PeerNode::Pending);
    // A node whose Pacemaker ended in maintenance is not missed.
    let is_excused = me.cib.machine[other] == PeerNode::Down && world.nodes[other].stack == Stack::Ended;
    let wanted = is_gone && !is_confirmed_down(&me.cib, other) && !is_excused && !world.joined;
    let is_unclean = world.nodes[other].unclean && world.joined;
    must_fence_itself(world, by) || (me.on && me.quorum && (wanted || is_unclean))
}

/// A node that is alone and whose stop failed can only fence itself.
fn must_fence_itself(world: &World, n: usize) -> bool {
    world.nodes[n].on && world.nodes[n].unclean && !world.joined
}

/// `by` fences its peer: the BMC cuts its power, and Pacemaker takes that as confirmed. Where `cuts` is not set, it takes
/// the peer for dead without having it cut.
pub fn fence(world: &mut World, by: usize, cuts: bool) -> bool {
    if !may_fence(world, by) {
        return false;
    }
    if must_fence_itself(world, by) {
        power_off(world, by);
        return true;
    }
    let other = 1 - by;
    if world.nodes[other].on && cuts {
        power_off(world, other);
    }
    world.joined = false;
    part(world);
    confirmed_down(world, by);
    true
}

/// The fencer has held the peer of `by` off, which it was.
pub fn confirm_down(world: &mut World, by: usize) {
    world.joined = false;
    part(world);
    confirmed_down(world, by);
}

pub(super) fn confirmed_down(world: &mut World, by: usize) {
    let other = 1 - by;
    let cib = &mut world.nodes[by].cib;
    cib.machine[other] = PeerNode::Down;
    cib.agent[other] = PeerAgent::NoHistory;
    cib.record[other] = 0;
    (cib.score[other], cib.told[other]) = (false, false);
}
