//! Machines that lose power and boot, and a Pacemaker that ends and comes back.

use super::membership::{are_together, is_up, part};
use crate::decide::evidence::{PeerAgent, PeerNode};
use crate::sim::model::etcd;
use crate::sim::model::world::{Blind, Cib, Node, Run, Stack, Wanted, Word, World};

/// Cuts the power of machine `n`, by a failure or by fencing.
pub fn power_off(world: &mut World, n: usize) {
    let leads = world.nodes[n].etcd == Run::Leader;
    let is_torn = leads && world.nodes[n].data.durable < world.nodes[n].data.commit;
    etcd::kill(world, n);
    // The replicas part now, while it is still known which one lags.
    part(world);
    let Node {
        on,
        quorum,
        cib,
        memory,
        word,
        action,
        failed,
        unclean,
        data: _,
        etcd: _,
        forces: _,
        note: _,
        wanted: _,
        asked: _,
        stack,
        launching,
        torn,
        failures,
        damage: _,
        promoted,
        blind,
        led,
        lingers,
        erased,
    } = &mut world.nodes[n];
    (*on, *quorum, *failed, *unclean, *action) = (false, false, false, false, None);
    (*promoted, *blind, *led, *lingers, *erased) = (false, Blind::None, false, false, false);
    (*memory, *word, *launching, *failures) = (0, Word::None, None, 0);
    *torn = is_torn;
    if *stack == Stack::Killed {
        *stack = Stack::Up;
    }
    forget_status(cib);
}

/// Clears the parts of a node's CIB that are lost when Pacemaker ends on this node.
fn forget_status(cib: &mut Cib) {
    let Cib {
        machine,
        agent,
        record,
        score,
        told,
        standalone: _,
        lineage: _,
        recorded: _,
        primary: _,
        reached: _,
        said: _,
    } = cib;
    (*score, *told) = ([false; 2], [false; 2]);
    *machine = [PeerNode::NeverSeen; 2];
    *agent = [PeerAgent::NoHistory; 2];
    *record = [0; 2];
}

/// Clears everything in a CIB that belongs to node `n`, because `n` is removed from the cluster.
pub fn forget_node(cib: &mut Cib, n: usize) {
    let Cib { machine, agent, record, score, told, standalone: _, lineage, recorded, primary: _, reached: _, said: _ } =
        cib;
    (machine[n], agent[n], record[n]) = (PeerNode::NeverSeen, PeerAgent::NoHistory, 0);
    (score[n], told[n], recorded[n], lineage[n]) = (false, false, false, (0, 0));
}

/// Boots machine `n`, and starts its Pacemaker. Returns false if the machine is already on.
pub fn boot(world: &mut World, n: usize) -> bool {
    let node = &mut world.nodes[n];
    if node.on {
        return false;
    }
    node.on = true;
    come_up(node, n);
    true
}

/// Starts Pacemaker on a machine that has not seen its peer in this boot.
fn come_up(node: &mut Node, n: usize) {
    node.stack = Stack::Up;
    (node.wanted, node.asked) = (Wanted::Running, false);
    node.cib.machine[n] = PeerNode::Online;
}

/// Ends Pacemaker and Corosync on a node while its etcd continues. If they end in maintenance, the peer is informed and does not fence.
/// If they are killed, the node leaves the peer's membership as a lost one.
pub fn end_stack(world: &mut World, n: usize, stack: Stack) -> bool {
    let node = &world.nodes[n];
    let is_at_work = node.action.is_some() || node.unclean || node.wanted == Wanted::Shutdown;
    if !is_up(world, n) || (stack == Stack::Ended && is_at_work) {
        return false;
    }
    let is_told = stack == Stack::Ended && are_together(world);
    part(world);
    if is_told {
        let cib = &mut world.nodes[1 - n].cib;
        (cib.machine[n], cib.record[n], cib.score[n], cib.told[n]) = (PeerNode::Down, 0, false, false);
        world.joined = false;
    }
    let node = &mut world.nodes[n];
    node.stack = stack;
    (node.quorum, node.failed, node.failures, node.action) = (false, false, 0, None);
    (node.unclean, node.promoted, node.blind, node.erased) = (false, false, Blind::None, false);
    forget_status(&mut node.cib);
    true
}

/// Starts Pacemaker and Corosync on node `n` again in the same boot. Returns false if they already run, or if the machine is off.
pub fn stack_is_back(world: &mut World, n: usize) -> bool {
    let node = &mut world.nodes[n];
    let is_back = node.on && node.stack != Stack::Up;
    if is_back {
        come_up(node, n);
    }
    is_back
}
