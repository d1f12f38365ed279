//! Where a search begins.

use super::Sim;
use super::canon::HISTORY;
use super::log::{Conf, Data, Entry, bit, first_mid};
use super::view::THIS_BOOT;
use super::world::{Run, Wanted, World};
use crate::decide::snapshot::{BootMemory, DataDir, History, Lineage, PeerAgent, Record, RunningVoter};

const CLUSTER: u8 = 0xc1;

/// Two voters that serve, and Pacemaker at rest.
pub fn healthy(sim: &mut Sim) -> World {
    let mids = [first_mid(0), first_mid(1)];
    let voters = bit(mids[0]) | bit(mids[1]);
    let conf = Conf { voters, learners: 0, started: voters };
    let log = sim.logs.id(vec![Entry::Base { writes: HISTORY, conf }]);
    let mut world = World { acked: HISTORY, ..blank(sim) };
    for n in 0..2 {
        let (cluster_id, member_id) = (u64::from(CLUSTER), u64::from(mids[n]));
        let voter = RunningVoter { cluster_id, member_id, lineage: Lineage::default(), sole: false };
        let memory = BootMemory { boot_id: THIS_BOOT.to_owned(), voter: Some(voter), ..BootMemory::default() };
        let history = History {
            cluster_id,
            member_id,
            last_term: 1,
            last_index: 0,
            commit_index: 0,
            voters: mids.into_iter().map(u64::from).collect(),
            learners: std::collections::BTreeSet::new(),
            has_left: false,
            damage: Vec::new(),
        };
        let disk = DataDir::Present(history);
        let record = Record {
            boot_id: THIS_BOOT.to_owned(),
            disk,
            lineage: Lineage::default(),
            claims: true,
            joins: false,
            nonce: None,
        };
        let node = &mut world.nodes[n];
        node.data = Data { mid: mids[n], cluster: CLUSTER, log, commit: 1, durable: 1, folded: 0 };
        node.etcd = if n == 0 { Run::Leader } else { Run::Follower };
        node.memory = sim.memories.id(memory);
        let record = sim.records.id(Some(record));
        for cib in world.nodes.iter_mut().map(|node| &mut node.cib) {
            cib.record[n] = record;
            cib.agent[n] = PeerAgent::Active;
            cib.recorded[n] = true;
        }
    }
    world
}

/// Two machines that have booted and hold no data.
pub fn blank(sim: &Sim) -> World {
    World { faults: sim.bounds.faults, ..World::BLANK }
}

/// Whether a state is what everything ends in: two voters, in step, and nobody at work.
pub fn is_good(sim: &Sim, world: &World) -> bool {
    let conf = |n: usize| world.nodes[n].data.applied(&sim.logs).conf;
    world.joined
        && world.nodes.iter().all(|node| node.etcd.is_led() && !node.failed && node.wanted == Wanted::Running)
        && (0..2).all(|n| world.nodes[n].cib.agent[n] == PeerAgent::Active && conf(n).votes(world.nodes[n].data.mid))
        && conf(0).voters.count_ones() == 2
        && world.nodes[0].data.log == world.nodes[1].data.log
}
