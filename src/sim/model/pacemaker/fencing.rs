//! Fencing by Pacemaker, and what counts as confirmed by it.

use super::machines::power_off;
use super::membership::part;
use crate::decide::evidence::{PeerAgent, PeerNode};
use crate::sim::model::world::{Cib, Stack, World};

/// Returns whether a CIB proves that `node` is off. It does if the node left as expected, and its agent was stopped before.
pub fn is_confirmed_down(cib: &Cib, node: usize) -> bool {
    let may_run = matches!(cib.agent[node], PeerAgent::Active | PeerAgent::Starting | PeerAgent::Stopping);
    cib.machine[node] == PeerNode::Down && !may_run
}

/// Returns whether Pacemaker on node `by` would now fence the peer, or `by` itself.
pub fn may_fence(world: &World, by: usize) -> bool {
    let (me, other) = (&world.nodes[by], 1 - by);
    let is_gone = !matches!(me.cib.machine[other], PeerNode::Online | PeerNode::Pending);
    // Pacemaker does not fence a node after its Pacemaker ended in maintenance.
    let is_excused = me.cib.machine[other] == PeerNode::Down && world.nodes[other].stack == Stack::Ended;
    let wanted = is_gone && !is_confirmed_down(&me.cib, other) && !is_excused && !world.joined;
    let is_unclean = world.nodes[other].unclean && world.joined;
    must_fence_itself(world, by) || (me.on && me.quorum && (wanted || is_unclean))
}

/// Returns whether node `n` fences itself, because a stop failed on it and its peer is not there to fence `n`.
fn must_fence_itself(world: &World, n: usize) -> bool {
    world.nodes[n].on && world.nodes[n].unclean && !world.joined
}

/// Lets node `by` fence its peer, or itself if it must. With `cuts`, the BMC cuts the power. Without `cuts`, the fencing counts as
/// confirmed, but the machine keeps its power. Returns false if `by` would not fence.
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

/// Records on node `by` that its peer is confirmed down, because the fencer has fenced the peer.
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
