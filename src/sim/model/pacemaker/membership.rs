//! The membership, and each node's replica of the CIB.

use crate::decide::evidence::{PeerAgent, PeerNode};
use crate::sim::model::world::{Cib, Newer, Stack, Wanted, World};

/// Writes a change to the CIB from node `n`. Both replicas get the change, unless the nodes are not connected or a replica lags.
pub fn write(world: &mut World, n: usize, change: impl Fn(&mut Cib)) {
    let together = are_together(world);
    for other in 0..2 {
        if (other == n || together) && world.lagging.map(usize::from) != Some(other) {
            change(&mut world.nodes[other].cib);
        }
    }
    if !together {
        let me = u8::try_from(n).unwrap_or_default();
        world.newer = match world.newer {
            Newer::Equal => Newer::Of(me),
            Newer::Of(who) if who == me => Newer::Of(me),
            Newer::Of(_) | Newer::Diverged => Newer::Diverged,
        };
    }
}

/// Returns whether writes to the CIB are held back. Corosync delivers a message to all members or to none. After the loss of a member,
/// it delivers nothing until there is a membership without that member. In this time, not even the writer sees its own write.
pub fn holds_writes_back(world: &World) -> bool {
    world.joined && !are_together(world)
}

/// Returns the replica of the CIB by which Pacemaker schedules actions for node `n`. This is its own replica, or that of the other
/// member if its own one lags.
pub(super) fn scheduler_cib(world: &World, n: usize) -> &Cib {
    let stands_still = world.joined && world.lagging.map(usize::from) == Some(n);
    if stands_still { &world.nodes[1 - n].cib } else { &world.nodes[n].cib }
}

/// Returns whether Pacemaker and Corosync run on node `n`.
pub fn is_up(world: &World, n: usize) -> bool {
    world.nodes[n].on && world.nodes[n].stack == Stack::Up
}

/// Returns whether a write of one node to the CIB reaches the other node. It does not if the network was cut or a machine has rebooted,
/// even while the membership has not yet noticed that.
pub fn are_together(world: &World) -> bool {
    let is_fresh = |n: usize| world.nodes[n].cib.machine[1 - n] == PeerNode::NeverSeen;
    world.joined && world.link && (0..2).all(|n| is_up(world, n) && !is_fresh(n))
}

/// Erases the record of node `n` from the CIB. The other machine's controller does so if it took `n` for lost, because the other
/// machine was frozen or cut off for a short time. The attribute manager of `n` keeps the record.
pub fn erase(world: &mut World, n: usize) -> bool {
    let can =
        are_together(world) && world.lagging.is_none() && world.nodes[n].cib.record[n] != 0 && !world.nodes[n].erased;
    if can {
        world.nodes[n].erased = true;
        world.nodes[1 - n].cib.record[n] = 0;
    }
    can
}

/// Lets the attribute manager of node `n` write its erased record to the CIB again.
pub fn restore(world: &mut World, n: usize) {
    let was_erased = std::mem::take(&mut world.nodes[n].erased);
    if was_erased {
        let record = world.nodes[n].cib.record[n];
        write(world, n, |cib| cib.record[n] = record);
    }
}

/// Separates the two replicas of the CIB. A replica that lagged lacks the other one's changes, except the results of its own node's
/// operations. Each machine stores these results, and Pacemaker asks for them when the membership changes.
pub fn part(world: &mut World) {
    if let Some(n) = world.lagging.take() {
        world.newer = Newer::Of(1 - n);
        let n = usize::from(n);
        world.nodes[n].cib.agent[n] = world.nodes[1 - n].cib.agent[n];
    }
}

pub(super) fn set_agent(world: &mut World, n: usize, agent: PeerAgent) {
    let together = are_together(world);
    let lagging = world.lagging.map(usize::from);
    for other in 0..2 {
        if (other == n || together) && lagging != Some(other) {
            world.nodes[other].cib.agent[n] = agent;
        }
    }
}

/// Lets the membership of the running nodes notice that the other node is gone. If that node had asked to shut down, Pacemaker expected
/// it to leave, even if its resources still run. In that case only the last operation of its agent shows whether they were stopped.
pub fn notice(world: &mut World) -> bool {
    if !holds_writes_back(world) {
        return false;
    }
    world.joined = false;
    part(world);
    for n in 0..2 {
        if is_up(world, n) && world.nodes[n].cib.machine[1 - n] == PeerNode::Online {
            let was_expected = world.nodes[1 - n].asked;
            world.nodes[n].cib.machine[1 - n] = if was_expected { PeerNode::Down } else { PeerNode::Lost };
        }
    }
    true
}

/// Records that node `n` knows that its peer continues a history of its own, once the agent of `n` has the peer's record. The peer does
/// so by an operator's decision or by a parameter.
pub fn hear(world: &mut World, n: usize) {
    if world.joined && world.nodes[n].cib.record[1 - n] != 0 {
        world.unheard &= !(1 << n);
    }
}

/// Joins the two nodes in one membership. The newer CIB replaces the other one. Each node adds the results of its own operations and
/// its own attributes. Returns false if the nodes cannot join, or if the CIB of `winner` is the older one.
pub fn meet(world: &mut World, winner: usize) -> bool {
    // A leader without a follower steps down before two Pacemakers have joined.
    if world.nodes.iter().any(|node| node.lingers) {
        return false;
    }
    let allowed = match world.newer {
        Newer::Of(who) => usize::from(who) == winner,
        // If they are equal, either will do.
        Newer::Equal | Newer::Diverged => true,
    };
    if world.joined || !(allowed || are_lasting_parts_equal(world)) || !world.link || !(0..2).all(|n| is_up(world, n)) {
        return false;
    }
    let mut cib = world.nodes[winner].cib;
    for n in 0..2 {
        cib.machine[n] = PeerNode::Online;
        cib.agent[n] = world.nodes[n].cib.agent[n];
        cib.record[n] = world.nodes[n].cib.record[n];
        (cib.score[n], cib.told[n]) = (world.nodes[n].cib.score[n], world.nodes[n].cib.told[n]);
        world.nodes[n].quorum = true;
        // The writer among the attribute managers then writes all values that they have.
        world.nodes[n].erased = false;
    }
    world.nodes[0].cib = cib;
    world.nodes[1].cib = cib;
    for node in &mut world.nodes {
        node.asked = node.wanted == Wanted::Shutdown;
    }
    world.joined = true;
    world.newer = Newer::Equal;
    true
}

/// Returns whether the two replicas of the CIB are equal in the parts that survive the end of Pacemaker.
pub fn are_lasting_parts_equal(world: &World) -> bool {
    let lasting = |cib: Cib| {
        let Cib {
            standalone,
            lineage,
            recorded,
            primary,
            reached,
            said,
            machine: _,
            agent: _,
            record: _,
            score: _,
            told: _,
        } = cib;
        (standalone, lineage, recorded, primary, reached, said)
    };
    lasting(world.nodes[0].cib) == lasting(world.nodes[1].cib)
}

/// Repairs the network between the nodes. If neither node had noticed the cut, earlier writes arrive now, because Corosync sends again
/// what a member of the same membership has missed.
pub fn heal(world: &mut World) -> bool {
    let was_cut = !std::mem::replace(&mut world.link, true);
    let [one, other] = world.nodes.map(|node| node.cib);
    if was_cut && are_together(world) && one != other {
        let mut cib = if world.newer == Newer::Of(1) { other } else { one };
        if world.newer == Newer::Diverged {
            cib.standalone = one.standalone.or(other.standalone);
            cib.lineage = [one.lineage[0], other.lineage[1]];
            cib.primary = one.primary.or(other.primary);
            cib.reached = one.reached.max(other.reached);
            cib.said = one.said.max(other.said);
        }
        for n in 0..2 {
            let own = world.nodes[n].cib;
            (cib.agent[n], cib.record[n], cib.recorded[n]) = (own.agent[n], own.record[n], own.recorded[n]);
            (cib.score[n], cib.told[n]) = (own.score[n], own.told[n]);
        }
        world.nodes.iter_mut().for_each(|node| (node.cib, node.erased) = (cib, false));
        world.newer = Newer::Equal;
    }
    was_cut
}

/// Brings the replica of the CIB that lags up to date. Returns false if none lags.
pub fn catch_up(world: &mut World) -> bool {
    let Some(n) = world.lagging.map(usize::from) else { return false };
    world.nodes[n].cib = world.nodes[1 - n].cib;
    world.lagging = None;
    true
}
