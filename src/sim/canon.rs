//! One state for many: what can tell two states apart only by names that nobody asks for, or by what nothing can come
//! of, is brought into one form before a search looks whether it has seen it. Why each step is sound stands with it.

use super::Sim;
use super::dead::drop_dead;
use super::intern::Id;
use super::log::{self, Conf, Entry, Mid, bit};
use super::packed::digest;
use super::world::{Newer, Vars, World};
use crate::decide::snapshot::{BootMemory, DataDir, Lineage, Note, Record};
use crate::sim::view::NAMES;

/// The bit of everything that was written before, which both nodes hold.
pub const HISTORY: u8 = 0x80;

/// Forks and, as 1 or 2, by whom last.
type Forks = (u8, u8);

/// New names for members, for forks of the history and, where `swap` is set, for the nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Renaming {
    mids: [Mid; 16],
    swap: bool,
    forks: Vec<(Forks, Forks)>,
}

/// What an interned value names.
#[derive(Clone, Copy, Debug, Default)]
pub struct Named {
    mids: u16,
    forks: Option<Forks>,
}

/// Which table a number belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Table {
    Log,
    Record,
    Note,
    Memory,
}

/// How many tables there are.
pub const TABLES: usize = 4;

/// Brings `world` into its one form: whether the two nodes changed places, and the form's digest.
pub fn canonical(sim: &mut Sim, world: &mut World) -> (bool, u64) {
    drop_dead(sim, world);
    absorb_writes(sim, world);
    if world.nodes.iter().any(|node| node.action.is_some_and(|action| action.plan.is_some())) {
        return (false, digest(sim, world));
    }
    let renaming = renaming(sim, world);
    if renaming != Renaming::identity() {
        *world = renamed(sim, world, &renaming);
    }
    // Names order two blank nodes, and nothing else.
    if sim.bounds.blank {
        return (false, digest(sim, world));
    }
    let swapped = renamed(sim, world, &Renaming::swap());
    let (mine, others) = (digest(sim, world), digest(sim, &swapped));
    if others < mine {
        *world = swapped;
    }
    (others < mine, mine.min(others))
}

/// A write that both data dirs hold below what they can lose, and every one that will ever be made from them, is part of
/// what was written before; one that no log holds and nobody misses never was. Either number is free for another.
pub(super) fn absorb_writes(sim: &mut Sim, world: &mut World) {
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

impl Renaming {
    fn identity() -> Self {
        Self { mids: std::array::from_fn(|mid| u8::try_from(mid).unwrap_or(0)), swap: false, forks: Vec::new() }
    }

    fn swap() -> Self {
        let other = |mid: usize| if mid == 0 || mid == 8 { mid } else { mid ^ 8 };
        Self { mids: std::array::from_fn(|mid| u8::try_from(other(mid)).unwrap_or(0)), swap: true, forks: Vec::new() }
    }

    fn mid(&self, mid: Mid) -> Mid {
        self.mids[usize::from(mid & 15)]
    }

    fn mid64(&self, mid: u64) -> u64 {
        u8::try_from(mid).map_or(mid, |mid| self.mid(mid).into())
    }

    fn set(&self, set: u16) -> u16 {
        (1..16).filter(|mid| set & bit(*mid) != 0).fold(0, |renamed, mid| renamed | bit(self.mid(mid)))
    }

    fn conf(&self, conf: Conf) -> Conf {
        Conf { voters: self.set(conf.voters), learners: self.set(conf.learners), started: self.set(conf.started) }
    }

    fn forks(&self, old: Forks) -> Forks {
        let (forks, by) = self.forks.iter().find(|(from, _)| *from == old).map_or(old, |(_, to)| *to);
        (forks, if self.swap && by != 0 { 3 - by } else { by })
    }

    fn lineage(&self, lineage: &Lineage) -> Lineage {
        let (forks, by) = self.forks(forks_of(lineage));
        let by = if by == 0 { String::new() } else { NAMES[usize::from(by) - 1].to_owned() };
        Lineage { forks: forks.into(), by }
    }

    fn entry(&self, entry: Entry) -> Entry {
        match entry {
            Entry::Base { writes, conf } => Entry::Base { writes, conf: self.conf(conf) },
            Entry::Write(number) => Entry::Write(number),
            Entry::AddLearner(mid) => Entry::AddLearner(self.mid(mid)),
            Entry::Started(mid) => Entry::Started(self.mid(mid)),
            Entry::Promote(mid) => Entry::Promote(self.mid(mid)),
            Entry::Remove(mid) => Entry::Remove(self.mid(mid)),
        }
    }

    fn record(&self, record: &Record) -> Record {
        let mut record = record.clone();
        record.lineage = self.lineage(&record.lineage);
        if let DataDir::Present(history) = &mut record.disk {
            history.member_id = self.mid64(history.member_id);
            history.voters = history.voters.iter().map(|mid| self.mid64(*mid)).collect();
            history.learners = history.learners.iter().map(|mid| self.mid64(*mid)).collect();
        }
        record
    }

    fn memory(&self, memory: &BootMemory) -> BootMemory {
        let mut memory = memory.clone();
        if let Some(voter) = &mut memory.voter {
            voter.member_id = self.mid64(voter.member_id);
            voter.lineage = self.lineage(&voter.lineage);
        }
        memory
    }
}

fn forks_of(lineage: &Lineage) -> Forks {
    let by = NAMES.iter().position(|name| *name == lineage.by).map_or(0, |node| node + 1);
    (u8::try_from(lineage.forks).unwrap_or(u8::MAX), u8::try_from(by).unwrap_or(0))
}

/// Member ids are told apart and nothing else: each node's own comes first, and no number is left out. Counts of forks
/// are compared and nothing else: they are ranks. A disk that is replaced knows of no fork, so where disks may be lost no
/// rank is 0; the lowest has no author where everybody agrees on it, as only who announces his own asks.
fn renaming(sim: &mut Sim, world: &World) -> Renaming {
    let mut mids = 0_u16;
    let mut forks: Vec<Forks> = Vec::new();
    let mut announced = false;
    for node in &world.nodes {
        mids |= bit(node.data.mid);
        announced |= node.note != 0 && sim.notes.get(node.note).alone_since.is_some();
        forks.push(node.cib.lineage);
        // No note is the same as one that knows of no fork.
        forks.push(if node.note == 0 { (0, 0) } else { forks_of(&sim.notes.get(node.note).lineage) });
        let held = [
            (Table::Log, if node.data.is_blank() { None } else { Some(node.data.log) }),
            (Table::Record, Some(node.cib.record[0]).filter(|id| *id != 0)),
            (Table::Record, Some(node.cib.record[1]).filter(|id| *id != 0)),
            (Table::Memory, Some(node.memory).filter(|id| *id != 0)),
        ];
        for (table, id) in held.into_iter().filter_map(|(table, id)| Some((table, id?))) {
            let named = known_names(sim, table, id);
            mids |= named.mids;
            forks.extend(named.forks);
        }
    }
    let lowest = u8::from(sim.bounds.disks || sim.bounds.keeps_dead);
    if lowest == 1 {
        forks.retain(|(forks, _)| *forks != 0);
    }
    forks.sort_unstable();
    forks.dedup();
    Renaming { mids: renamed_mids(world, mids), swap: false, forks: ranks(&forks, lowest, announced) }
}

fn renamed_mids(world: &World, used: u16) -> [Mid; 16] {
    let mut renamed = Renaming::identity().mids;
    for (n, node) in world.nodes.iter().enumerate() {
        let own = Some(node.data.mid).filter(|mid| *mid != 0);
        let first = log::first_mid(n);
        let others = (first..first + 7).filter(|mid| used & bit(*mid) != 0 && Some(*mid) != own);
        let mut all: Vec<Mid> = own.into_iter().chain(others).collect();
        all.extend((first..first + 7).filter(|mid| !all.contains(mid)).collect::<Vec<_>>());
        for (mid, name) in all.into_iter().zip(first..) {
            renamed[usize::from(mid)] = name;
        }
    }
    renamed
}

fn ranks(forks: &[Forks], lowest: u8, announced: bool) -> Vec<(Forks, Forks)> {
    let mut ranks = Vec::new();
    let mut rank = lowest;
    let agreed = !announced && forks.iter().filter(|(count, _)| *count == forks[0].0).count() == 1;
    // Who announced it is asked of what is more than nothing.
    rank += u8::from(lowest == 0 && !agreed && forks.first().is_some_and(|(count, _)| *count != 0));
    for (index, (count, by)) in forks.iter().enumerate() {
        rank += u8::from(index > 0 && forks[index - 1].0 != *count);
        let to = (rank, if index == 0 && agreed { 0 } else { *by });
        if to != (*count, *by) {
            ranks.push(((*count, *by), to));
        }
    }
    ranks
}

fn known_names(sim: &mut Sim, table: Table, id: Id) -> Named {
    let known = sim.named[table as usize].get(id as usize).copied().flatten();
    known.unwrap_or_else(|| {
        let named = named(sim, table, id);
        keep(&mut sim.named[table as usize], id, named);
        named
    })
}

fn keep<T: Copy>(table: &mut Vec<Option<T>>, id: Id, value: T) {
    if table.len() <= id as usize {
        table.resize(id as usize + 1, None);
    }
    table[id as usize] = Some(value);
}

fn named(sim: &Sim, table: Table, id: Id) -> Named {
    match table {
        Table::Log => Named { mids: mids_of(sim.logs.get(id)), forks: None },
        Table::Record => sim.records.get(id).as_ref().map_or_else(Named::default, |record| Named {
            mids: match &record.disk {
                DataDir::Present(history) => history
                    .voters
                    .iter()
                    .chain(&history.learners)
                    .chain([&history.member_id])
                    .fold(0, |set, mid| set | bit(u8::try_from(*mid).unwrap_or(0) & 15)),
                DataDir::Blank | DataDir::Broken { .. } => 0,
            },
            forks: Some(forks_of(&record.lineage)),
        }),
        Table::Note => Named::default(),
        Table::Memory => sim.memories.get(id).voter.as_ref().map_or_else(Named::default, |voter| Named {
            mids: bit(u8::try_from(voter.member_id).unwrap_or(0) & 15),
            forks: Some(forks_of(&voter.lineage)),
        }),
    }
}

fn mids_of(entries: &[Entry]) -> u16 {
    entries.iter().fold(0, |set, entry| {
        set | match *entry {
            Entry::Base { conf, .. } => conf.voters | conf.learners | conf.started,
            Entry::AddLearner(mid) | Entry::Started(mid) | Entry::Promote(mid) | Entry::Remove(mid) => bit(mid),
            Entry::Write(_) => 0,
        }
    })
}

/// The value of a number under other names, as a number.
fn rename(sim: &mut Sim, table: Table, id: Id, key: Id, renaming: &Renaming) -> Id {
    let column = key as usize * TABLES + table as usize;
    if let Some(known) = sim.renamed.get(column).and_then(|known| known.get(id as usize).copied().flatten()) {
        return known;
    }
    let renamed = match table {
        Table::Log => {
            let entries = sim.logs.get(id).iter().map(|entry| renaming.entry(*entry)).collect();
            sim.logs.id(entries)
        }
        Table::Record => {
            let record = sim.records.get(id).as_ref().map(|record| renaming.record(record));
            sim.records.id(record)
        }
        Table::Note => {
            let note = sim.notes.get(id).clone();
            let note = Note { lineage: renaming.lineage(&note.lineage), ..note };
            // An empty one is as good as none.
            if note == Note::default() { 0 } else { sim.notes.id(note) }
        }
        Table::Memory => {
            let memory = renaming.memory(sim.memories.get(id));
            sim.memories.id(memory)
        }
    };
    if sim.renamed.len() <= column {
        sim.renamed.resize(column + 1, Vec::new());
    }
    keep(&mut sim.renamed[column], id, renamed);
    renamed
}

/// `world` under other names.
fn renamed(sim: &mut Sim, world: &World, renaming: &Renaming) -> World {
    let key = sim.renamings.id(renaming.clone());
    let mut next = *world;
    for node in &mut next.nodes {
        if !node.data.is_blank() {
            node.data.mid = renaming.mid(node.data.mid);
            node.data.log = rename(sim, Table::Log, node.data.log, key, renaming);
        }
        if node.note != 0 {
            node.note = rename(sim, Table::Note, node.note, key, renaming);
        }
        if node.memory != 0 {
            node.memory = rename(sim, Table::Memory, node.memory, key, renaming);
        }
        for record in node.cib.record.iter_mut().filter(|record| **record != 0) {
            *record = rename(sim, Table::Record, *record, key, renaming);
        }
        node.cib.lineage = renaming.forks(node.cib.lineage);
        if renaming.swap {
            let cib = &mut node.cib;
            cib.machine.swap(0, 1);
            cib.agent.swap(0, 1);
            cib.record.swap(0, 1);
            cib.recorded.swap(0, 1);
            cib.standalone = cib.standalone.map(|node| 1 - node);
            if let Some(action) = &mut node.action {
                let swap = |set: u8| (set & 1) << 1 | (set >> 1);
                let vars = action.notify;
                let (active, start, stop) = (swap(vars.active), swap(vars.start), swap(vars.stop));
                action.notify = Vars { active, start, stop, ..vars };
            }
        }
    }
    if renaming.swap {
        next.nodes.swap(0, 1);
        next.lagging = next.lagging.map(|node| 1 - node);
        if let Newer::Of(node) = &mut next.newer {
            *node = 1 - *node;
        }
    }
    next
}
