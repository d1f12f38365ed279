//! A state with the nodes in each other's place, and what tells which of the two is the form of both: a digest of each.

use super::Sim;
use super::intern::Id;
use super::known::{Known, Names};
use super::packed::{Half, Packed, between, half};
use super::world::{Cib, Newer, Node, Vars, World};

/// A digest of a state that does not depend on the numbers of its values.
pub(super) fn digest(sim: &Sim, world: &World, names: &[Names; 2]) -> u64 {
    let half = |n: usize| {
        let mut node = world.nodes[n];
        mark_action(sim, &mut node);
        half_with(&node, &names[n], |known| known.mark.into())
    };
    Packed::join([half(0), half(1)], between(world)).digest()
}

/// The digest of `world` with the nodes in each other's place.
pub(super) fn digest_of_swapped(sim: &Sim, world: &World, names: &[Names; 2]) -> u64 {
    let half = |n: usize| {
        let mut node = world.nodes[n];
        mark_action(sim, &mut node);
        half_in_the_others_place(node, &names[n], |known| known.others_mark.into())
    };
    join_swapped(half(0), half(1), world).digest()
}

/// `world` with the nodes in each other's place.
pub(super) fn swapped(world: &World, names: &[Names; 2]) -> Packed {
    let half = |n: usize| half_in_the_others_place(world.nodes[n], &names[n], |known| known.other);
    join_swapped(half(0), half(1), world)
}

fn mark_action(sim: &Sim, node: &mut Node) {
    if let Some(action) = &mut node.action {
        action.progress = sim.progresses.mark(action.progress).into();
        action.plan = action.plan.map(|(plan, done)| (sim.todos.mark(plan).into(), done));
    }
}

/// A node with what `number` makes of its values.
#[inline]
fn half_with(node: &Node, names: &Names, number: impl Fn(&Known) -> Id) -> Half {
    let mut node = *node;
    if !node.data.is_blank() {
        node.data.log = number(&names.log);
    }
    (node.note, node.memory) = (number(&names.note), number(&names.memory));
    node.cib.record = [number(&names.record[0]), number(&names.record[1])];
    half(&node)
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

/// Exchanges all names of nodes and members in `node` but those in its interned values.
fn swap_names(node: &mut Node) {
    if !node.data.is_blank() {
        node.data.mid ^= 8;
    }
    swap_cib(&mut node.cib);
    let (forks, by) = node.cib.lineage;
    node.cib.lineage = (forks, if by == 0 { 0 } else { 3 - by });
    swap_action(node);
}

/// Exchanges the nodes in a CIB, but for its interned values and whose fork the last was.
pub(super) fn swap_cib(cib: &mut Cib) {
    cib.machine.swap(0, 1);
    cib.agent.swap(0, 1);
    cib.recorded.swap(0, 1);
    cib.standalone = cib.standalone.map(|node| 1 - node);
}

/// Exchanges the nodes in a node's notify variables.
pub(super) fn swap_action(node: &mut Node) {
    if let Some(action) = &mut node.action {
        let swap = |set: u8| (set & 1) << 1 | (set >> 1);
        let vars = action.notify;
        let (active, start, stop) = (swap(vars.active), swap(vars.start), swap(vars.stop));
        action.notify = Vars { active, start, stop, ..vars };
    }
}

/// Exchanges the nodes in what is between them.
pub(super) fn swap_between(world: &mut World) {
    world.lagging = world.lagging.map(|node| 1 - node);
    if let Newer::Of(node) = &mut world.newer {
        *node = 1 - *node;
    }
}
