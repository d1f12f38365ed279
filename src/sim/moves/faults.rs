//! What fails: power, disks, processes, the network.

use crate::decide::Exit;
use crate::decide::evidence::PeerAgent;
use crate::sim::model::log::Data;
use crate::sim::model::steps::EffectStep;
use crate::sim::model::world::{Damage, NAMES, World};
use crate::sim::model::{agent, etcd, pacemaker, vote_proxy};
use crate::sim::{Sim, Violation};

pub(super) fn cut_power(world: &mut World, n: usize) -> bool {
    let was_on = world.nodes[n].on;
    if was_on {
        pacemaker::power_off(world, n);
    }
    was_on
}

/// The machine is gone with its data; what comes back in its place is blank. Writes that nobody else holds are lost with
/// it, and where no voter's data is left, a human has to choose a backup.
pub(super) fn destroy(sim: &Sim, world: &mut World, n: usize) -> bool {
    if !cut_power(world, n) {
        return false;
    }
    let held = world.nodes[1 - n].data.newest(&sim.logs);
    let survives = is_spared(sim, world, n);
    world.given_up |= if survives { world.acked & !held.writes } else { world.acked };
    if !survives {
        world.words = 3;
    }
    (world.nodes[n].data, world.nodes[n].note, world.nodes[n].forces) = (Data::default(), 0, false);
    (world.nodes[n].damage, world.nodes[n].torn) = (Damage::None, false);
    true
}

pub(super) fn kill_etcd(world: &mut World, n: usize) -> bool {
    let ran = world.nodes[n].etcd.is_on();
    etcd::kill(world, n);
    ran
}

/// To Pacemaker an action that ends without an answer has failed.
pub(super) fn kill_agent(sim: &Sim, world: &mut World, n: usize) -> Result<bool, Violation> {
    if world.nodes[n].action.is_none() {
        return Ok(false);
    }
    vote_proxy::leave_to_itself(sim, world, n);
    agent::answer(sim, world, n, Exit::Retriable)?;
    Ok(true)
}

/// The agent is gone, and its `podman` goes on: it starts the container later.
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

/// A start that outlived its agent comes to its end.
pub(super) fn launched(sim: &mut Sim, world: &mut World, n: usize) -> Result<bool, Violation> {
    let Some(mode) = world.nodes[n].launching.take() else { return Ok(false) };
    // A replica that stands still does not say what was begun since.
    let knows = if world.lagging.map(usize::from) == Some(n) { 1 - n } else { n };
    if sim.judges() && world.nodes[knows].cib.agent[n] == PeerAgent::Stopped {
        return Err(Violation::new(format!("{}: etcd starts after its stop was answered", NAMES[n])));
    }
    etcd::run(sim, world, n, mode)?;
    Ok(true)
}

/// No etcd starts from what is left. Where no voter's data is whole, a human has to choose a backup here, too.
pub(super) fn damage(sim: &Sim, world: &mut World, n: usize) -> bool {
    let is_there = !world.nodes[n].data.is_blank() && cut_power(world, n);
    if is_there && world.nodes[n].damage == Damage::None {
        world.nodes[n].damage = Damage::Hidden;
        world.words = if is_spared(sim, world, n) { world.words } else { 3 };
    }
    is_there
}

/// True if another voter's intact data is left once the data of `n` is lost.
fn is_spared(sim: &Sim, world: &World, n: usize) -> bool {
    let peer = &world.nodes[1 - n];
    let was_sole = world.nodes[n].data.newest(&sim.logs).conf.has_one_voter();
    let is_whole = !peer.data.is_blank() && peer.damage == Damage::None;
    !was_sole && is_whole && peer.data.newest(&sim.logs).conf.votes(peer.data.mid)
}

pub(super) fn lag(world: &mut World, n: usize) -> bool {
    // What is erased on the way is a matter of moments.
    let is_erased = world.nodes.iter().any(|node| node.erased);
    let can = pacemaker::are_together(world) && world.lagging.is_none() && !is_erased;
    world.lagging = u8::try_from(n).ok().filter(|_| can);
    can
}
