//! The actions of operators, and of programs for them.

use crate::decide::Request;
use crate::decide::evidence::{Lineage, PeerNode};
use crate::sim::Sim;
use crate::sim::model::log::{self, Entry, THIRD_VOTER};
use crate::sim::model::world::{Stack, Wanted, Word, World};
use crate::sim::model::{etcd, members, pacemaker, view};
use crate::sim::mutant::Mutant;

pub(super) fn want(sim: &Sim, world: &mut World, n: usize, wanted: Wanted) -> bool {
    let node = &mut world.nodes[n];
    // A shutdown cannot be taken back.
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

/// Lets an operator call `tandem confirm-recovery` on node `n`, after which its Pacemaker may act without the peer.
///
/// The command asks the peer's BMC if Pacemaker does not see the peer and has no confirmation that it is off. If the BMC reports On, the
/// command refuses, unless the operator names the peer in the option `--node-is-on`.
pub(super) fn confirm(sim: &Sim, world: &mut World, n: usize, accept_loss: bool, node_is_on: bool) -> bool {
    let node = &world.nodes[n];
    let newest = node.data.newest(&sim.logs).conf;
    let own = if node.note == 0 { Lineage::default() } else { sim.notes.get(node.note).lineage.clone() };
    let was_left_behind = view::was_left_behind(&node.cib, n, &own);
    let peer_serves = world.etcds_meet() && world.nodes[1 - n].etcd.is_led();
    let is_asked = matches!(node.cib.machine[1 - n], PeerNode::NeverSeen | PeerNode::Lost);
    let says_on = is_asked && world.nodes[1 - n].on && sim.mutant != Mutant::BmcNotAsked;
    let is_between_actions = node.action.is_none_or(|action| action.request == Request::Start);
    let can = sim.bounds.operators
        && pacemaker::is_up(world, n)
        && !node.etcd.is_on()
        && is_between_actions
        && !peer_serves
        && newest.votes(node.data.mid)
        && !newest.votes(THIRD_VOTER)
        && (node_is_on == says_on)
        && (accept_loss == was_left_behind);
    if can {
        world.nodes[n].word = Word::Given { accept_loss, node_is_on: node_is_on || !is_asked };
        world.nodes[n].quorum = true;
    }
    can
}

/// Lets an operator choose the history of node `n` while both nodes refuse to start, because each holds a history of its own. The
/// writes of the other history are given up.
pub(super) fn choose(sim: &Sim, world: &mut World, n: usize) -> bool {
    let chosen = u8::try_from(n).ok();
    let can = sim.bounds.chooses
        && world.nodes[n].on
        && world.nodes[n].cib.primary != chosen
        && world.nodes.iter().all(|node| !node.etcd.is_on() && !node.has_plan())
        && etcd::have_parted(sim, world);
    if can {
        let is_heard = pacemaker::are_together(world);
        pacemaker::write(world, n, |cib| cib.primary = chosen);
        // An earlier confirmation of the other node no longer counts once that node can learn of this choice.
        (world.words, world.unheard) = (1 << n, u8::from(!is_heard) << (1 - n));
    }
    can
}

/// Lets an operator set `force_new_cluster` on node `n`, because its peer is replaced or restored. At that time no etcd runs on either
/// node.
pub(super) fn tell_whose_data_counts(sim: &Sim, world: &mut World, n: usize) -> bool {
    let can = sim.bounds.tells
        && world.nodes[n].on
        && !world.nodes[n].cib.told[n]
        && world.nodes.iter().all(|node| !node.etcd.is_on());
    if can {
        pacemaker::write(world, n, |cib| cib.told[n] = true);
    }
    can
}

/// Lets an operator remove node `n`, which is not in the membership, with `pcs cluster node remove` or `crm_node --remove`.
///
/// The other node's CIB loses everything that belongs to `n`, both its status and its permanent attributes. A pending fencing of `n` is
/// dropped, and the other node, now a cluster of one, has quorum. The properties of the cluster stay, and so does the state on the disk
/// of `n`.
pub(super) fn forget(sim: &Sim, world: &mut World, n: usize) -> bool {
    let me = 1 - n;
    let before = world.nodes[me];
    if !sim.bounds.forgets || world.joined || !pacemaker::is_up(world, me) {
        return false;
    }
    world.nodes[me].quorum = true;
    pacemaker::write(world, me, |cib| pacemaker::forget_node(cib, n));
    world.nodes[me] != before
}

/// Promotes the learner with `etcdctl member promote`, or as another controller does. Unlike Tandem, these publish no record and no log
/// position before the promotion.
pub(super) fn promote(sim: &mut Sim, world: &mut World) -> bool {
    let Some(leader) = etcd::leader(world) else { return false };
    let learners = world.nodes[leader].data.applied(&sim.logs).conf.learners;
    let Some(learner) = (1..16).find(|mid| learners & log::bit(*mid) != 0) else { return false };
    let before = *world;
    members::change(sim, world, leader, leader, Entry::Promote(learner));
    *world != before
}

/// With `etcdctl member remove`, removes the voter that does not lead. At first, only the leader's log has the removal.
pub(super) fn remove(sim: &mut Sim, world: &mut World) -> bool {
    let Some(leader) = etcd::leader(world) else { return false };
    let follower = world.nodes[1 - leader].data.mid;
    let votes = world.nodes[leader].data.newest(&sim.logs).conf.votes(follower);
    let before = *world;
    if votes && follower != world.nodes[leader].data.mid {
        members::change(sim, world, leader, leader, Entry::Remove(follower));
    }
    *world != before
}
