//! Other names for what a state names: members, forks of the history, and the two nodes.

use super::intern::Id;
use super::log::{Conf, Entry, Mid, bit};
use super::world::World;
use super::{Sim, swap};
use crate::decide::snapshot::{BootMemory, DataDir, Lineage, Note, Record};
use crate::sim::view::NAMES;

/// Forks and, as 1 or 2, by whom last.
pub(super) type Forks = (u8, u8);

/// New names for members, for forks of the history and, where `swap` is set, for the nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Renaming {
    pub(super) mids: [Mid; 16],
    swap: bool,
    forks: Vec<(Forks, Forks)>,
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

impl Renaming {
    pub(super) fn identity() -> Self {
        Self { mids: std::array::from_fn(|mid| u8::try_from(mid).unwrap_or(0)), swap: false, forks: Vec::new() }
    }

    pub(super) fn new(mids: [Mid; 16], forks: Vec<(Forks, Forks)>) -> Self {
        Self { mids, swap: false, forks }
    }

    pub(super) fn swap() -> Self {
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

pub(super) fn forks_of(lineage: &Lineage) -> Forks {
    let by = NAMES.iter().position(|name| *name == lineage.by).map_or(0, |node| node + 1);
    (u8::try_from(lineage.forks).unwrap_or(u8::MAX), u8::try_from(by).unwrap_or(0))
}

/// The value of a number under other names, as a number.
pub(super) fn rename(sim: &mut Sim, table: Table, id: Id, key: Id, renaming: &Renaming) -> Id {
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
pub(super) fn renamed(sim: &mut Sim, world: &World, renaming: &Renaming) -> World {
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
    }
    if renaming.swap {
        for node in &mut next.nodes {
            swap::swap_cib(&mut node.cib);
            node.cib.record.swap(0, 1);
            swap::swap_action(node);
        }
        next.nodes.swap(0, 1);
        swap::swap_between(&mut next);
    }
    next
}

pub(super) fn keep<T: Copy>(table: &mut Vec<Option<T>>, id: Id, value: T) {
    if table.len() <= id as usize {
        table.resize(id as usize + 1, None);
    }
    table[id as usize] = Some(value);
}
