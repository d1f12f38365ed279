//! The canonical form. Some states differ only in names that no rule reads, or in parts that no later move reads. They
//! get one form before the search checks whether it has seen it. Each step gives the reason why it is sound.

use super::fingerprint;
use super::known::{self, Names};
use super::rename::{Forks, Renaming, renamed};
use crate::sim::Sim;
use crate::sim::model::log::{self, Entry, Mid, bit};
use crate::sim::model::world::{HISTORY, Node, World};
use crate::sim::reduce::dead_variables::drop_dead;
use crate::sim::store::packed::Packed;

/// A state in its canonical form. This form represents all states that differ only in names, or in parts that no move reads.
#[derive(Clone, Copy, Debug)]
pub struct Form {
    pub state: Packed,
    /// The fingerprint of the form. It does not depend on the numbers that stored values got in this run.
    pub digest: u64,
    /// True if the two nodes are exchanged in the canonical form.
    pub is_swapped: bool,
    /// True if rules can distinguish the nodes by their names in this state: see [`names_count`].
    pub names_count: bool,
}

/// Brings `world` into its canonical form. This form represents all states that differ only in names, or in parts that no move reads.
pub fn canonical(sim: &mut Sim, world: &mut World) -> Form {
    let form = form(sim, world);
    if form.is_swapped {
        *world = renamed(sim, world, &Renaming::swap());
    }
    form
}

/// Returns the canonical form of `world`. Also brings `world` itself into this form, but without exchanging its nodes.
pub(in crate::sim) fn form(sim: &mut Sim, world: &mut World) -> Form {
    drop_dead(sim, world);
    absorb_writes(sim, world);
    let mut names = known::of(sim, world);
    let forks = Row::of(sim, world, &names);
    let names_count = forks.has_two_authors();
    if world.nodes.iter().any(Node::has_plan) {
        let digest = fingerprint::digest(sim, world, &names);
        return Form { state: Packed::of(world), digest, is_swapped: false, names_count };
    }
    if let Some(renaming) = renaming(sim, world, &names, &forks) {
        *world = renamed(sim, world, &renaming);
        names = known::of(sim, world);
    }
    let digest = fingerprint::digest(sim, world, &names);
    // Rules order two blank nodes by name, and have one lead by its name.
    if !sim.bounds.names_nodes() && !names_count {
        let others = fingerprint::digest_of_swapped(sim, world, &names);
        if others < digest {
            return Form { state: fingerprint::swapped(world, &names), digest: others, is_swapped: true, names_count };
        }
    }
    Form { state: Packed::of(world), digest, is_swapped: false, names_count }
}

/// Returns whether rules can distinguish the two nodes by name in `world`. Rules order two forced new clusters of the same rank by the
/// nodes that forced them. So the mirror image of such a state has other successors. If a state leads to such a state, the search
/// expands both the first state and its mirror image.
pub(in crate::sim) fn names_count(sim: &mut Sim, world: &World) -> bool {
    let names = known::of(sim, world);
    Row::of(sim, world, &names).has_two_authors()
}

/// Makes a write part of [`HISTORY`] if the merged first entries of both logs contain it, because all later data will contain it, too.
/// Forgets a write that no log contains, if it was not acknowledged or was given up. In both cases, another write can then use its
/// number.
pub(in crate::sim) fn absorb_writes(sim: &mut Sim, world: &mut World) {
    let base = |sim: &Sim, n: usize| match world.nodes[n].data.entries(&sim.logs).first() {
        Some(Entry::Base { writes, .. }) => *writes,
        _ => 0,
    };
    let held = |sim: &Sim, n: usize| world.nodes[n].data.newest(&sim.logs).writes;
    let kept = base(sim, 0) & base(sim, 1) & world.acked & !world.given_up & !HISTORY;
    let nowhere = world.writes & !(held(sim, 0) | held(sim, 1)) & (!world.acked | world.given_up);
    if kept & world.writes != 0 {
        for node in &mut world.nodes {
            let mut entries = node.data.entries(&sim.logs).to_vec();
            if let Some(Entry::Base { writes, .. }) = entries.first_mut() {
                *writes = *writes & !kept | HISTORY;
            }
            node.data.log = sim.logs.id(entries);
        }
        world.acked |= HISTORY;
    }
    let gone = kept | nowhere;
    (world.writes, world.acked, world.given_up) = (world.writes & !gone, world.acked & !gone, world.given_up & !gone);
}

/// Returns the canonical names of members and forced new clusters; `None` if no name changes. A forced new cluster is named by its
/// count and the node that forced it.
///
/// Rules compare member ids only for equality. Each node's own member gets the node's first id, and no id is left out.
///
/// Rules compare the counts, and a node that announces a forced new cluster takes the largest known count plus one. So ranks can
/// replace the counts, with one exception. If there is a gap in the counts above a node that announces, its new count could become
/// equal to the next rank. For such a gap, one node has to announce twice without its peer joining in between, and this happens only at
/// operators' confirmations (`decide::announce`). `--count-forks` searches without this reduction.
///
/// If disks may be lost, rank 0 is reserved for a replaced disk, which knows of no forced new cluster. Rules read the node that forced
/// only for ties and announcements. So it is erased for the lowest rank, if only one node has that rank and none announces.
fn renaming(sim: &Sim, world: &World, names: &[Names; 2], forks: &Row) -> Option<Renaming> {
    let mids = world.nodes.iter().zip(names).fold(0, |mids, (node, names)| mids | bit(node.data.mid) | names.mids());
    let announced = names.iter().any(Names::announces);
    let recorded = world.nodes.iter().any(|node| node.cib.most_forks() != (0, 0));
    let ranks = if sim.bounds.counts_forks { Vec::new() } else { ranks(forks.all(), lowest(sim), announced, recorded) };
    let in_order = (0..2).all(|n| are_in_order(world.nodes[n].data.mid, mids, log::first_mid(n)));
    (!in_order || !ranks.is_empty()).then(|| Renaming::new(renamed_mids(world, mids), ranks))
}

/// Returns the rank of the oldest forced new cluster in the canonical form.
fn lowest(sim: &Sim) -> u8 {
    u8::from(sim.bounds.disks || sim.bounds.keeps_dead)
}

/// The forced new clusters that a state names. Each is contained once, and they are in ascending order.
#[derive(Default)]
struct Row {
    forks: [Forks; MOST_FORKS],
    count: usize,
}

/// The largest number of forced new clusters that a state names. For each node there are six places: two attributes and two records in
/// the CIB, the durable state, and the `BootState`.
const MOST_FORKS: usize = 12;

impl Row {
    fn of(sim: &Sim, world: &World, names: &[Names; 2]) -> Self {
        let lowest = lowest(sim);
        let mut row = Self::default();
        for (node, names) in world.nodes.iter().zip(names) {
            row.add(node.cib.most_forks(), lowest);
            // A node without the attribute adds no fork.
            let recorded = node.cib.lineage.into_iter().filter(|forks| *forks != (0, 0));
            recorded.for_each(|forks| row.add(forks, lowest));
            names.forks().for_each(|named| row.add(named, lowest));
        }
        row.forks[..row.count].sort_unstable();
        row
    }

    fn add(&mut self, forks: Forks, lowest: u8) {
        let is_told = forks.0 != 0 || lowest == 0;
        if is_told && !self.forks[..self.count].contains(&forks) {
            self.forks[self.count] = forks;
            self.count += 1;
        }
    }

    fn all(&self) -> &[Forks] {
        &self.forks[..self.count]
    }

    /// Returns whether both nodes forced a new cluster with the same count.
    fn has_two_authors(&self) -> bool {
        let is_tie = |pair: &[Forks]| pair[0].0 == pair[1].0 && pair[0].1 != 0;
        self.all().windows(2).any(is_tie)
    }
}

/// Returns whether the members of one node already have their canonical ids. `own` is the id of the node's own member, and `first` is
/// the node's first id. `used` is the set of ids in the state.
fn are_in_order(own: Mid, used: u16, first: Mid) -> bool {
    let on_the_node = (used >> first) & MEMBERS_OF_A_NODE;
    (own == 0 || own == first) && on_the_node & (on_the_node + 1) == 0
}

/// A set with a bit for each member id that one node can have.
const MEMBERS_OF_A_NODE: u16 = 0x7f;

fn renamed_mids(world: &World, used: u16) -> [Mid; 16] {
    let mut renamed = Renaming::identity().mids;
    for (n, node) in world.nodes.iter().enumerate() {
        let (own, first) = (node.data.mid, log::first_mid(n));
        // The order of their new ids: the node's own, the others that are named, and the rest.
        let rank = |mid: &Mid| (*mid != own, used & bit(*mid) == 0, *mid);
        let mut all: [Mid; 7] = std::array::from_fn(|index| first + u8::try_from(index).unwrap_or(0));
        all.sort_unstable_by_key(rank);
        for (mid, name) in all.into_iter().zip(first..) {
            renamed[usize::from(mid)] = name;
        }
    }
    renamed
}

fn ranks(forks: &[Forks], lowest: u8, announced: bool, recorded: bool) -> Vec<(Forks, Forks)> {
    let mut ranks = Vec::new();
    let mut rank = lowest;
    let by_one = !announced && forks.iter().filter(|(count, _)| *count == forks[0].0).count() == 1;
    // Rank 0 means that there is no fork. A fork that was recorded, or that has an author to be read, begins at 1.
    let counts = !by_one || recorded;
    rank += u8::from(lowest == 0 && counts && forks.first().is_some_and(|(count, _)| *count != 0));
    for (index, (count, by)) in forks.iter().enumerate() {
        rank += u8::from(index > 0 && forks[index - 1].0 != *count);
        let to = (rank, if index == 0 && by_one { 0 } else { *by });
        if to != (*count, *by) {
            ranks.push(((*count, *by), to));
        }
    }
    ranks
}
