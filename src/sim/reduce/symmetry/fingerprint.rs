//! The fingerprints of a state and of its mirror image, which is the same state with the nodes exchanged. The one with
//! the smaller fingerprint represents both.

use super::known::{Known, Names};
use crate::sim::Sim;
use crate::sim::model::log::Data;
use crate::sim::model::swap::{swap_between, swap_names};
use crate::sim::model::world::{Cib, Node, World};
use crate::sim::store::intern::Id;
use crate::sim::store::packed::{Half, Packed, between, half};

/// Returns the fingerprint of a state. It does not depend on the numbers of the state's stored values, which differ from run to run.
pub(in crate::sim) fn digest(sim: &Sim, world: &World, names: &[Names; 2]) -> u64 {
    let half = |n: usize| {
        let mut node = world.nodes[n];
        mark_action(sim, &mut node);
        half_with(&node, &names[n], |known| known.mark.into())
    };
    Packed::join([half(0), half(1)], between(world)).digest()
}

/// Returns the fingerprint of `world` with its two nodes exchanged.
pub(in crate::sim) fn digest_of_swapped(sim: &Sim, world: &World, names: &[Names; 2]) -> u64 {
    let half = |n: usize| {
        let mut node = world.nodes[n];
        mark_action(sim, &mut node);
        half_in_the_others_place(node, &names[n], |known| known.others_mark.into())
    };
    join_swapped(half(0), half(1), world).digest()
}

/// Returns the packed form of `world` with its two nodes exchanged.
pub(in crate::sim) fn swapped(world: &World, names: &[Names; 2]) -> Packed {
    let half = |n: usize| half_in_the_others_place(world.nodes[n], &names[n], |known| known.other);
    join_swapped(half(0), half(1), world)
}

fn mark_action(sim: &Sim, node: &mut Node) {
    if let Some(action) = &mut node.action {
        action.progress = sim.progresses.mark(action.progress).into();
        action.plan = action.plan.map(|(plan, done)| (sim.todos.mark(plan).into(), done));
    }
}

/// Returns the packed form of a node. In it, the results of `number` replace the numbers of the node's stored values.
#[inline]
fn half_with(node: &Node, names: &Names, number: impl Fn(&Known) -> Id) -> Half {
    let mut changed = *node;
    let is_blank = node.data.is_blank();
    let Values { log, note, memory, record } = values(&mut changed);
    if !is_blank {
        *log = number(&names.log);
    }
    (*note, *memory) = (number(&names.note), number(&names.memory));
    *record = [number(&names.record[0]), number(&names.record[1])];
    half(&changed)
}

/// The fields of a node that are numbers of stored values. Those of its action are not among them.
struct Values<'a> {
    log: &'a mut Id,
    note: &'a mut Id,
    memory: &'a mut Id,
    record: &'a mut [Id; 2],
}

/// Returns the fields of a node that are numbers of stored values. The code names each field. So a new field does not compile until its
/// author has decided whether it is such a number.
#[inline]
fn values(node: &mut Node) -> Values<'_> {
    let Node {
        cib,
        data,
        note,
        memory,
        action: _,
        etcd: _,
        on: _,
        quorum: _,
        forces: _,
        word: _,
        failed: _,
        unclean: _,
        wanted: _,
        promoted: _,
        blind: _,
        led: _,
        lingers: _,
        erased: _,
        asked: _,
        stack: _,
        launching: _,
        torn: _,
        failures: _,
        damage: _,
    } = node;
    let Cib {
        record,
        machine: _,
        agent: _,
        standalone: _,
        lineage: _,
        recorded: _,
        score: _,
        told: _,
        primary: _,
        reached: _,
        said: _,
    } = cib;
    let Data { log, mid: _, cluster: _, commit: _, durable: _, folded: _ } = data;
    Values { log, note, memory, record }
}

#[inline]
fn half_in_the_others_place(mut node: Node, names: &Names, number: impl Fn(&Known) -> Id) -> Half {
    swap_names(&mut node);
    let names = Names { record: [names.record[1], names.record[0]], ..*names };
    half_with(&node, &names, number)
}

fn join_swapped(one: Half, other: Half, world: &World) -> Packed {
    let mut next = *world;
    swap_between(&mut next);
    Packed::join([other, one], between(&next))
}
