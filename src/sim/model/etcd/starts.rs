//! The starts of an etcd in the model: as it is, as a new cluster, forced, or as a member that joins.

use super::{applied, changed, give_up, leader, newest, stop};
use crate::sim::model::log::{self, Conf, Data, Entry, Mid, THIRD_VOTER, bit, first_mid};
use crate::sim::model::world::{Damage, Mode, NAMES, Run, Word, World};
use crate::sim::{Sim, Violation};

/// Starts etcd on node `n`, in the mode that the agent chose.
pub fn run(sim: &mut Sim, world: &mut World, n: usize, mode: Mode) -> Result<(), Violation> {
    if world.nodes[n].etcd.is_on() {
        // `podman run --replace` stops the running container.
        stop(world, n);
    }
    world.nodes[n].forces = mode == Mode::Force;
    if world.nodes[n].damage == Damage::NotMounted {
        return Err(Violation::new(format!("{}: etcd starts where the disk of its data is not mounted", NAMES[n])));
    }
    if world.nodes[n].damage != Damage::None {
        if mode == Mode::Normally {
            // Time is abstracted, so one plain start represents all quick tries.
            world.nodes[n].damage = Damage::Counted;
        }
        return Ok(());
    }
    match mode {
        Mode::Normally => run_plainly(sim, world, n),
        Mode::Bootstrap => bootstrap(sim, world, n),
        Mode::Force => force(sim, world, n),
        Mode::Join { members } => join(sim, world, n, members),
    }
}

fn run_plainly(sim: &Sim, world: &mut World, n: usize) -> Result<(), Violation> {
    let data = world.nodes[n].data;
    if data.is_blank() {
        return Err(Violation::new(format!("{}: etcd is started plainly on a blank data dir", NAMES[n])));
    }
    let newest = data.newest(&sim.logs);
    if newest.conf.has_one_voter() && world.unheard & (1 << n) != 0 {
        give_up(sim, world, n, newest.writes);
    }
    let knows_that_it_left = data.commit > 0 && !applied(sim, world, n).lists(data.mid);
    world.nodes[n].etcd = if knows_that_it_left { Run::Off } else { Run::Fresh };
    Ok(())
}

fn bootstrap(sim: &mut Sim, world: &mut World, n: usize) -> Result<(), Violation> {
    if !world.nodes[n].data.is_blank() {
        return Err(Violation::new(format!("{}: a new cluster is bootstrapped over data", NAMES[n])));
    }
    let mid = first_mid(n);
    let conf = Conf { voters: bit(mid), learners: 0, started: bit(mid) };
    let log = sim.logs.id(vec![Entry::Base { writes: 0, conf }]);
    let cluster = if n == 0 { 0xb1 } else { 0xb2 };
    world.nodes[n].data = Data { mid, cluster, log, commit: 1, durable: 1, folded: 0 };
    world.nodes[n].etcd = Run::Fresh;
    Ok(())
}

/// Starts the etcd of node `n` with a forced new cluster. This drops the entries above the commit index, and removes all other members.
fn force(sim: &mut Sim, world: &mut World, n: usize) -> Result<(), Violation> {
    let name = NAMES[n];
    let mut data = world.nodes[n].data;
    if newest(sim, world, n).votes(THIRD_VOTER) {
        return Err(Violation::new(format!("{name}: a new cluster is forced without the third voter")));
    }
    let held = data.newest(&sim.logs).writes;
    let kept = data.entries(&sim.logs)[..usize::from(data.commit)].to_vec();
    let conf = data.applied(&sim.logs).conf;
    if data.is_blank() || !conf.votes(data.mid) {
        return Err(Violation::new(format!(
            "{name}: a new cluster is forced on data that is no voter's: etcd panics (removed all voters)"
        )));
    }
    if world.nodes[1 - n].etcd.is_led() {
        return Err(Violation::new(format!("{name}: a new cluster is forced while {}'s etcd serves", NAMES[1 - n])));
    }
    let others = (1..16).filter(|mid| conf.lists(*mid) && *mid != data.mid).map(Entry::Remove);
    let entries: Vec<Entry> = kept.into_iter().chain(others).collect();
    data.log = sim.logs.id(entries);
    data.commit = data.len(&sim.logs);
    data.durable = data.commit;
    world.nodes[n].data = data;
    world.nodes[n].etcd = Run::Fresh;
    // A node with a confirmation has announced this fork already.
    if world.nodes[n].word != Word::None || world.words & (1 << n) != 0 {
        give_up(sim, world, n, held);
        world.override_by_word(n);
    }
    changed(world, n);
    Ok(())
}

/// Starts the etcd of node `n` as the learner that the peer's cluster lists for this node. If there is no such learner, etcd ends at
/// once.
fn join(sim: &Sim, world: &mut World, n: usize, named: usize) -> Result<(), Violation> {
    if !world.nodes[n].data.is_blank() {
        return Err(Violation::new(format!("{}: etcd joins with data in its data dir", NAMES[n])));
    }
    let Some(leader) = leader(world).filter(|leader| *leader != n && world.etcds_meet()) else { return Ok(()) };
    let conf = applied(sim, world, leader);
    let listed = (1..16).find(|mid: &Mid| conf.lists(*mid) && log::node_of(*mid) == n);
    let members = (conf.voters | conf.learners).count_ones() as usize;
    if let Some(mid) = listed.filter(|mid| conf.started & bit(*mid) == 0 && members == named) {
        let cluster = world.nodes[leader].data.cluster;
        world.nodes[n].data = Data { mid, cluster, log: 0, commit: 0, durable: 0, folded: 0 };
        world.nodes[n].etcd = Run::Fresh;
        changed(world, n);
    }
    Ok(())
}
