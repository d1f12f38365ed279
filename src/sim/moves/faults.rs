//! The faults: power, disks, processes, the network.

use crate::decide::Exit;
use crate::decide::evidence::{DurableState, PeerAgent};
use crate::sim::model::log::{Data, Sum};
use crate::sim::model::steps::EffectStep;
use crate::sim::model::world::{Damage, NAMES, World};
use crate::sim::model::{agent, etcd, pacemaker, vote_proxy};
use crate::sim::store::intern::Id;
use crate::sim::{Sim, Violation};

pub(super) fn cut_power(world: &mut World, n: usize) -> bool {
    let was_on = world.nodes[n].on;
    if was_on {
        pacemaker::power_off(world, n);
    }
    was_on
}

/// Destroys machine `n` with its data, and replaces it with a blank one. A later leader that lacks writes that only that data held
/// breaks an invariant, unless an operator has given these writes up by name. If no voter's data is left, an operator has to choose a
/// backup.
pub(super) fn destroy(sim: &Sim, world: &mut World, n: usize) -> bool {
    if !cut_power(world, n) {
        return false;
    }
    if !is_spared(sim, world, n) {
        world.words = 3;
    }
    (world.nodes[n].data, world.nodes[n].note, world.nodes[n].forces) = (Data::default(), 0, false);
    (world.nodes[n].damage, world.nodes[n].torn) = (Damage::None, false);
    true
}

/// Cuts the power of node `n`, and puts its disk back to the time when its log had `kept` entries. With `with_note`, the durable state
/// goes back to a time before any forced new cluster. Without it, the durable state does not change, as if an operator had restored
/// only the data dir.
pub(super) fn put_back(sim: &mut Sim, world: &mut World, n: usize, kept: usize, with_note: bool) -> bool {
    let Some(earlier) = earlier(sim, world, n, kept, with_note, None) else { return false };
    cut_power(world, n);
    world.tampered = true;
    (world.nodes[n].data, world.nodes[n].note) = earlier;
    true
}

/// Puts the data of node `n` back to the time when its log had `kept` entries, while its etcd does not run. The machine does not
/// reboot, so its agent keeps what it stored in this boot.
pub(super) fn roll_back(sim: &mut Sim, world: &mut World, n: usize, kept: usize, with_note: bool) -> bool {
    if !is_idle(world, n) {
        return false;
    }
    let ended_at = sim.memories.get(world.nodes[n].memory).ended_at.as_ref().map(|end| end.position.index);
    let Some(earlier) = earlier(sim, world, n, kept, with_note, ended_at) else { return false };
    world.tampered = true;
    (world.nodes[n].data, world.nodes[n].note) = earlier;
    true
}

/// Returns whether machine `n` is on, and no action, no etcd and no start of etcd runs on it.
pub(super) fn is_idle(world: &World, n: usize) -> bool {
    let node = &world.nodes[n];
    node.on && node.action.is_none() && node.launching.is_none() && !node.etcd.is_on()
}

/// Returns the data and the durable state that node `n` had when its log had `kept` entries. `ended_at` is the index at which the log
/// ended at the last stop in this boot, as the agent stored it.
///
/// Returns `None` in three cases. There was no such time, no rule could notice the loss, or the durable state is to go back and
/// contains nothing that it could lose.
fn earlier(
    sim: &mut Sim,
    world: &World,
    n: usize,
    kept: usize,
    with_note: bool,
    ended_at: Option<u64>,
) -> Option<(Data, Id)> {
    let data = world.nodes[n].data;
    let entries = data.entries(&sim.logs);
    if entries.len() <= kept || !world.nodes[n].on || world.nodes[n].damage == Damage::NotMounted {
        return None;
    }
    let earlier = entries[..kept].to_vec();
    let log = sim.logs.id(earlier);
    let [commit, durable] = [data.commit, data.durable].map(|index| index.min(u8::try_from(kept).unwrap_or(u8::MAX)));
    let data = Data { log, commit: commit.min(durable), durable, ..data };
    let after = data.newest(&sim.logs);
    // If no voter's data has a write any more, the position that the leader published shows that, or this boot's memory
    // does. The published position may be some thousand entries old. No rule asks a learner without a leader.
    let peer = world.nodes[1 - n].data;
    let votes = peer.newest(&sim.logs).conf.votes(peer.mid);
    let (other, length) = if votes { (peer.newest(&sim.logs), peer.len(&sim.logs)) } else { (Sum::default(), 0) };
    let is_gone = world.acked & !world.given_up & !(after.writes | other.writes) != 0;
    let reached = world.nodes.iter().map(|node| node.cib.reached.index).max().unwrap_or_default();
    let furthest = kept.max(length.into());
    let is_remembered = ended_at.is_some_and(|end| usize::try_from(end).is_ok_and(|end| kept < end));
    let is_unseen = is_gone && furthest >= usize::from(reached) && !is_remembered;
    // Before the member was listed, another member's data was here.
    if !after.conf.lists(data.mid) || is_unseen {
        return None;
    }
    let note = sim.notes.get(world.nodes[n].note).clone();
    let is_news = note.lineage.forks > 0 || note.alone_since.is_some() || note.left_at.is_some();
    match (with_note, is_news) {
        (true, false) => None,
        (true, true) => Some((data, sim.notes.id(DurableState { of: note.of, ..DurableState::default() }))),
        (false, _) => Some((data, world.nodes[n].note)),
    }
}

/// Copies the disk of the other node, which is off, over the disk of node `n`. If `with_note` is false, the durable state is not
/// copied.
pub(super) fn copy(world: &mut World, n: usize, with_note: bool) -> bool {
    let other = &world.nodes[1 - n];
    let (data, note) = (other.data, if with_note { other.note } else { 0 });
    if !with_note && other.note == 0 {
        return false;
    }
    let can = !other.on && !data.is_blank() && data.mid != world.nodes[n].data.mid && cut_power(world, n);
    if can {
        world.tampered = true;
        (world.nodes[n].data, world.nodes[n].note) = (data, note);
    }
    can
}

pub(super) fn kill_etcd(world: &mut World, n: usize) -> bool {
    let ran = world.nodes[n].etcd.is_on();
    etcd::kill(world, n);
    ran
}

/// Kills the agent of node `n`. For Pacemaker, an action that ends without an answer has failed.
pub(super) fn kill_agent(sim: &Sim, world: &mut World, n: usize) -> Result<bool, Violation> {
    if world.nodes[n].action.is_none() {
        return Ok(false);
    }
    vote_proxy::leave_to_itself(sim, world, n);
    agent::answer(sim, world, n, Exit::Retriable)?;
    Ok(true)
}

/// Kills the agent of node `n` while its `podman` continues. This `podman` starts the container at a later time.
pub(super) fn kill_launch(sim: &Sim, world: &mut World, n: usize) -> Result<bool, Violation> {
    let plan = world.nodes[n].action.and_then(|action| action.plan);
    let Some(EffectStep::RunContainer(mode)) = plan.and_then(|(plan, done)| sim.plans.step(plan, done)) else {
        return Ok(false);
    };
    if !sim.bounds.launches {
        return Ok(false);
    }
    etcd::stop(world, n);
    world.nodes[n].launching = Some(mode);
    kill_agent(sim, world, n)
}

/// Completes a start of etcd on node `n` that continued after its agent was killed.
pub(super) fn launched(sim: &mut Sim, world: &mut World, n: usize) -> Result<bool, Violation> {
    let Some(mode) = world.nodes[n].launching.take() else { return Ok(false) };
    // A replica that lags does not show what began since.
    let knows = if world.lagging.map(usize::from) == Some(n) { 1 - n } else { n };
    if sim.judges() && world.nodes[knows].cib.agent[n] == PeerAgent::Stopped {
        return Err(Violation::new(format!("{}: etcd starts after its stop was answered", NAMES[n])));
    }
    etcd::run(sim, world, n, mode)?;
    Ok(true)
}

/// Cuts the power of node `n`, and damages its data so that etcd cannot start from it. If no voter's data is complete any more, an
/// operator has to choose a backup.
pub(super) fn damage(sim: &Sim, world: &mut World, n: usize) -> bool {
    let is_there = !world.nodes[n].data.is_blank() && cut_power(world, n);
    if is_there && world.nodes[n].damage == Damage::None {
        world.nodes[n].damage = Damage::Hidden;
        world.words = if is_spared(sim, world, n) { world.words } else { 3 };
    }
    is_there
}

/// Cuts the power of node `n`. At the next boot, the disk with its data and its durable state is not mounted.
pub(super) fn unmount(world: &mut World, n: usize) -> bool {
    let node = &world.nodes[n];
    let can = node.damage == Damage::None && !node.data.is_blank() && cut_power(world, n);
    if can {
        world.nodes[n].damage = Damage::NotMounted;
    }
    can
}

/// Mounts the disk of node `n` again, as an operator or the machine would. Files that were written below the mount point before are
/// hidden.
pub(super) fn mount(world: &mut World, n: usize) -> bool {
    let is_missing = world.nodes[n].damage == Damage::NotMounted;
    if is_missing {
        world.nodes[n].damage = Damage::None;
    }
    is_missing
}

/// Returns whether the other node holds complete data of a voter, so that a loss of the data of node `n` needs no backup.
fn is_spared(sim: &Sim, world: &World, n: usize) -> bool {
    let peer = &world.nodes[1 - n];
    let was_sole = world.nodes[n].data.newest(&sim.logs).conf.has_one_voter();
    let is_whole = !peer.data.is_blank() && matches!(peer.damage, Damage::None | Damage::NotMounted);
    !was_sole && is_whole && peer.data.newest(&sim.logs).conf.votes(peer.data.mid)
}

pub(super) fn lag(world: &mut World, n: usize) -> bool {
    // The search leaves this out together with an erased record, which lasts only moments.
    let is_erased = world.nodes.iter().any(|node| node.erased);
    let can = pacemaker::are_together(world) && world.lagging.is_none() && !is_erased;
    world.lagging = u8::try_from(n).ok().filter(|_| can);
    can
}
