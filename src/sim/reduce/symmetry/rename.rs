//! Renames the members, the forks of the history, and the two nodes in a state.

use crate::decide::evidence::{BootState, DataDir, DataOwner, DurableState, Identity, Lineage, PublishedState};
use crate::decide::plan::{Effect, RunMode};
use crate::sim::Sim;
use crate::sim::model::log::{Conf, Data, Entry, Mid, bit};
use crate::sim::model::steps::Todo;
use crate::sim::model::swap;
use crate::sim::model::world::{Action, Cib, NAMES, Node, World};
use crate::sim::store::intern::Id;

/// The number of forced new clusters in a history, and the node that forced the last one. 1 and 2 are the nodes, and 0 is none.
pub(in crate::sim) type Forks = (u8, u8);

/// New names for members (`mids`) and for forced new clusters (`forks`). If `swap` is true, the two nodes also exchange their names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Renaming {
    pub(in crate::sim) mids: [Mid; 16],
    swap: bool,
    forks: Vec<(Forks, Forks)>,
}

/// The table of stored values to which a number belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Table {
    Log,
    PublishedState,
    Note,
    Memory,
}

/// The number of variants of [`Table`].
pub const TABLES: usize = 4;

impl Renaming {
    pub(in crate::sim) fn identity() -> Self {
        Self { mids: std::array::from_fn(|mid| u8::try_from(mid).unwrap_or(0)), swap: false, forks: Vec::new() }
    }

    pub(in crate::sim) fn new(mids: [Mid; 16], forks: Vec<(Forks, Forks)>) -> Self {
        Self { mids, swap: false, forks }
    }

    pub(in crate::sim) fn swap() -> Self {
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
            Entry::Elected => Entry::Elected,
        }
    }

    fn name(&self, name: &str) -> String {
        let other =
            |name: &str| NAMES.iter().find(|known| **known != name).map_or(String::new(), |name| (*name).to_owned());
        if self.swap { other(name) } else { name.to_owned() }
    }

    /// Returns `url` with the new name of the node that it contains.
    fn url(&self, url: &str) -> String {
        let node = NAMES.iter().find(|name| url.contains(**name));
        node.map_or_else(|| url.to_owned(), |name| url.replace(name, &self.name(name)))
    }

    fn note(&self, note: &DurableState) -> DurableState {
        let without = note.without.map(|mid| self.mid64(mid));
        let of = note.of.as_ref().map(|of| DataOwner {
            cluster_id: of.cluster_id,
            member_id: self.mid64(of.member_id),
            node: self.name(&of.node),
        });
        DurableState { lineage: self.lineage(&note.lineage), without, of, ..note.clone() }
    }

    /// Returns the plan `todo` with new names of nodes, members and forced new clusters.
    pub(in crate::sim) fn todo(&self, todo: &Todo) -> Todo {
        let effects = todo.effects.iter().map(|effect| self.effect(effect)).collect();
        Todo { effects, ..todo.clone() }
    }

    fn effect(&self, effect: &Effect) -> Effect {
        let name = |name: &Option<String>| name.as_ref().map(|name| self.name(name));
        match effect {
            Effect::PublishRecord(record) => Effect::PublishRecord(self.record(record)),
            Effect::PublishIdentity(Identity { cluster_id, member_id }) => {
                Effect::PublishIdentity(Identity { cluster_id: *cluster_id, member_id: self.mid64(*member_id) })
            }
            Effect::PublishLineage(lineage) => Effect::PublishLineage(self.lineage(lineage)),
            Effect::PublishPeerLineage(lineage) => Effect::PublishPeerLineage(self.lineage(lineage)),
            Effect::SetStandalone(node) => Effect::SetStandalone(name(node)),
            Effect::SetLearner(node) => Effect::SetLearner(name(node)),
            Effect::WriteNote(note) => Effect::WriteNote(self.note(note)),
            Effect::Remember(memory) => Effect::Remember(self.memory(memory)),
            Effect::RunContainer(RunMode::JoinAsLearner { initial_cluster }) => {
                let members = initial_cluster.iter().map(|(name, url)| (self.name(name), self.url(url)));
                let mut initial_cluster: Vec<_> = members.collect();
                // Ordered as in a member list: the first node's members first.
                initial_cluster.sort();
                Effect::RunContainer(RunMode::JoinAsLearner { initial_cluster })
            }
            Effect::MoveLeader { to } => Effect::MoveLeader { to: self.mid64(*to) },
            Effect::RemoveMember { id, via } => Effect::RemoveMember { id: self.mid64(*id), via: *via },
            Effect::AddLearner { peer_url, via } => Effect::AddLearner { peer_url: self.url(peer_url), via: *via },
            Effect::PromoteMember { id, via } => Effect::PromoteMember { id: self.mid64(*id), via: *via },
            Effect::ConsumeConfirmation
            | Effect::SetAlarm(_)
            | Effect::PublishImage(_)
            | Effect::ShowLeader(_)
            | Effect::ShowFenceWait(_)
            | Effect::SetRedundancy(_)
            | Effect::AnnounceLoneBoot(_)
            | Effect::HoldPeerOff(_)
            | Effect::CancelWaitForAll
            | Effect::SetReached(_)
            | Effect::EndLaunch
            | Effect::RestoreRecord
            | Effect::SetFailures { .. }
            | Effect::ForgetPrimary
            | Effect::TellOthers(_)
            | Effect::SetPromotionScore(_)
            | Effect::StopContainer { .. }
            | Effect::AdvanceCommit
            | Effect::MoveDataAside
            | Effect::MoveHistoryAside
            | Effect::DropBackups(_)
            | Effect::PruneBackups
            | Effect::NoteFailedStart(_)
            | Effect::ForgetFailedStarts
            | Effect::RunContainer(RunMode::Normally | RunMode::Bootstrap | RunMode::ForceNewCluster)
            | Effect::VoteProxy(_)
            | Effect::SettleConfig => effect.clone(),
        }
    }

    fn record(&self, record: &PublishedState) -> PublishedState {
        let mut record = record.clone();
        record.lineage = self.lineage(&record.lineage);
        if let DataDir::Present(history) = &mut record.disk {
            history.member_id = self.mid64(history.member_id);
            history.voters = history.voters.iter().map(|mid| self.mid64(*mid)).collect();
            history.learners = history.learners.iter().map(|mid| self.mid64(*mid)).collect();
        }
        record
    }

    fn memory(&self, memory: &BootState) -> BootState {
        let mut memory = memory.clone();
        if let Some(voter) = &mut memory.voter {
            voter.member_id = self.mid64(voter.member_id);
            voter.lineage = self.lineage(&voter.lineage);
        }
        if let Some(end) = &mut memory.ended_at {
            end.member_id = self.mid64(end.member_id);
        }
        memory
    }
}

pub(in crate::sim) fn forks_of(lineage: &Lineage) -> Forks {
    let by = NAMES.iter().position(|name| *name == lineage.by).map_or(0, |node| node + 1);
    (u8::try_from(lineage.forks).unwrap_or(u8::MAX), u8::try_from(by).unwrap_or(0))
}

/// Returns the number of a stored value after its names were changed.
pub(in crate::sim) fn rename(sim: &mut Sim, table: Table, id: Id, key: Id, renaming: &Renaming) -> Id {
    let column = key as usize * TABLES + table as usize;
    if let Some(known) = sim.renamed.get(column).and_then(|known| known.get(id as usize).copied().flatten()) {
        return known;
    }
    let renamed = match table {
        Table::Log => {
            let entries = sim.logs.get(id).iter().map(|entry| renaming.entry(*entry)).collect();
            sim.logs.id(entries)
        }
        Table::PublishedState => {
            let record = sim.records.get(id).as_ref().map(|record| renaming.record(record));
            sim.records.id(record)
        }
        Table::Note => {
            let note = renaming.note(sim.notes.get(id));
            // An empty note equals none.
            if note == DurableState::default() { 0 } else { sim.notes.id(note) }
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

/// Returns `world` with new names of nodes, members and forced new clusters.
pub(in crate::sim) fn renamed(sim: &mut Sim, world: &World, renaming: &Renaming) -> World {
    let key = sim.renamings.id(renaming.clone());
    let mut next = *world;
    for node in &mut next.nodes {
        // Fields without a name are listed, too. A new field does not compile until its author has decided about it.
        let Node {
            cib,
            data,
            note,
            memory,
            etcd: _,
            action,
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
            lineage,
            machine: _,
            agent: _,
            standalone: _,
            recorded: _,
            score: _,
            told: _,
            primary: _,
            reached: _,
            said: _,
        } = cib;
        let is_blank = data.is_blank();
        let Data { mid, log, cluster: _, commit: _, durable: _, folded: _ } = data;
        if !is_blank {
            *mid = renaming.mid(*mid);
            *log = rename(sim, Table::Log, *log, key, renaming);
        }
        if *note != 0 {
            *note = rename(sim, Table::Note, *note, key, renaming);
        }
        if *memory != 0 {
            *memory = rename(sim, Table::Memory, *memory, key, renaming);
        }
        for record in record.iter_mut().filter(|record| **record != 0) {
            *record = rename(sim, Table::PublishedState, *record, key, renaming);
        }
        *lineage = lineage.map(|forks| renaming.forks(forks));
        if let Some(Action { plan: Some((plan, _)), request: _, notify: _, progress: _ }) = action {
            let todo = renaming.todo(sim.todos.get(*plan));
            *plan = sim.plan(todo);
        }
    }
    if renaming.swap {
        exchange(&mut next);
    }
    next
}

/// Exchanges the two nodes in a state. Does not change the values to which the state refers by number.
fn exchange(world: &mut World) {
    for node in &mut world.nodes {
        swap::swap_cib(&mut node.cib);
        node.cib.record.swap(0, 1);
        swap::swap_action(&mut node.action);
    }
    world.nodes.swap(0, 1);
    swap::swap_between(world);
}

pub(in crate::sim) fn keep<T: Copy>(table: &mut Vec<Option<T>>, id: Id, value: T) {
    if table.len() <= id as usize {
        table.resize(id as usize + 1, None);
    }
    table[id as usize] = Some(value);
}
