//! The decisions that were taken, by view. A view is packed into a few words.

#![expect(clippy::inline_always, reason = "a row of some forty fields is fast only where each has its place")]

use super::hash::{self, Found};
use crate::sim::model::log::Conf;
use crate::sim::model::timing::MOMENTS;
use crate::sim::model::view::{Disk, Heard, Told, View};
use crate::sim::model::world::{Cib, CibReached, Vars, Word};

/// The facts of a [`View`] in packed form. Equal views have equal keys.
pub(in crate::sim) type Key = [u64; 7];

/// The number of a plan. It has as few bits here as in a packed state.
pub type Number = u16;
/// The numbers of the plans that follow from a view, one for each moment of the action.
pub type Plans = [Number; MOMENTS.len()];

/// The value in place of a plan's number that means "not decided yet".
pub const UNDECIDED: Number = Number::MAX;

/// The decisions that were made so far, by view and moment.
#[derive(Clone, Debug, Default)]
pub struct Decided(Found<Decision>);

/// A packed view and its plans, in one line of the processor's cache. Two of them are equal if their keys are equal.
#[derive(Clone, Copy, Debug, Eq)]
#[repr(align(64))]
struct Decision {
    key: Key,
    plans: Plans,
}

impl PartialEq for Decision {
    fn eq(&self, other: &Self) -> bool {
        hash::are_equal(&self.key, &other.key)
    }
}

impl Decided {
    /// Returns the index at which the plans for a view are stored.
    pub fn place(&mut self, view: &View) -> usize {
        let key = key(view);
        let (number, _) = self.0.add(Decision { key, plans: [UNDECIDED; MOMENTS.len()] }, hash::hash(&key));
        number as usize
    }

    /// Returns the plans at the index `place`.
    pub fn at(&mut self, place: usize) -> &mut Plans {
        &mut self.0.values[place].plans
    }
}

/// A key that is being written. Its fields follow each other without unused bits between them.
#[derive(Default)]
struct Row {
    words: Key,
    at: usize,
}

impl Row {
    #[inline(always)]
    fn add(&mut self, width: usize, value: impl Into<u64>) {
        let value = value.into();
        assert!(value >> width == 0, "a view does not fit into its key");
        let (word, shift) = (self.at / 64, self.at % 64);
        self.words[word] |= value << shift;
        if shift + width > 64 {
            self.words[word + 1] |= value >> (64 - shift);
        }
        self.at += width;
    }

    #[inline(always)]
    fn conf(&mut self, Conf { voters, learners, started }: Conf) {
        self.add(16, voters);
        self.add(16, learners);
        self.add(16, started);
    }
}

#[inline(always)]
pub(in crate::sim) fn key(view: &View) -> Key {
    let View {
        me,
        request,
        vars,
        progress,
        cib,
        runs,
        forces,
        launching,
        has_failures,
        breaks_down,
        is_not_mounted,
        disk,
        note,
        memory,
        word,
        own,
        peer,
        blind,
        keeps_record,
        leaderless,
        links,
        delay_over,
        reach,
        kept,
    } = *view;
    let mut row = Row::default();
    add_request(&mut row, me, request as u64, vars);
    for id in [progress, note, memory] {
        row.add(16, id);
    }
    add_cib(&mut row, cib);
    row.add(1, runs);
    row.add(1, forces);
    row.add(1, launching);
    row.add(1, has_failures);
    row.add(1, breaks_down);
    row.add(1, is_not_mounted);
    let (word, accept_loss) = match word {
        Word::None => (0_u8, false),
        Word::Given { accept_loss, node_is_on: _ } => (1, accept_loss),
        Word::Outdated { accept_loss } => (2, accept_loss),
    };
    row.add(2, word);
    row.add(1, accept_loss);
    // The data is read while no etcd runs, and only a running etcd answers. `runs` shows which of the two is here.
    add_disk(&mut row, disk.or(leaderless.map(in_the_place_of_a_disk)));
    add_answer(&mut row, own);
    add_answer(&mut row, peer);
    add_what_is_told(&mut row, cib);
    row.add(3, blind as u64);
    row.add(1, keeps_record);
    row.add(2, links as u64);
    for flag in [delay_over, reach[0], reach[1]] {
        row.add(1, flag);
    }
    row.add(2, kept as u64);
    row.words
}

#[inline(always)]
fn add_request(row: &mut Row, me: u8, request: u64, vars: Vars) {
    let Vars { given, moment, operation, active, start, stop, in_vain } = vars;
    row.add(1, me);
    row.add(3, request);
    row.add(1, given);
    row.add(2, moment as u64);
    row.add(2, operation as u64);
    for nodes in [active, start, stop] {
        row.add(2, nodes);
    }
    row.add(1, in_vain);
}

#[inline(always)]
fn add_cib(row: &mut Row, cib: Cib) {
    let Cib { machine, agent, record, standalone, lineage, recorded, score: _, told: _, primary: _, reached, said } =
        cib;
    let CibReached { forks, term, index, is_redundant } = reached;
    row.add(4, forks);
    row.add(3, term);
    row.add(6, index);
    row.add(1, is_redundant);
    row.add(2, said as u64);
    for n in 0..2 {
        row.add(3, machine[n] as u64);
        row.add(3, agent[n] as u64);
        row.add(16, record[n]);
        row.add(1, recorded[n]);
    }
    row.add(2, standalone.map_or(0, |node| node + 1));
    for (forks, by) in lineage {
        row.add(8, forks);
        row.add(2, by);
    }
}

/// Adds the fields of a CIB that follow those in the first words of the key.
#[inline(always)]
fn add_what_is_told(row: &mut Row, Cib { score, told, primary, .. }: Cib) {
    for flag in [score[0], score[1], told[0], told[1]] {
        row.add(1, flag);
    }
    row.add(2, primary.map_or(0, |node| node + 1));
}

#[inline(always)]
fn add_disk(row: &mut Row, disk: Option<Disk>) {
    row.add(1, disk.is_some());
    let Disk { mid, cluster, conf, has_left, has_tail, term, index, commit } = disk.unwrap_or_default();
    row.add(3, term);
    row.add(6, commit);
    row.add(4, mid);
    row.add(8, cluster);
    row.conf(conf);
    row.add(1, has_left);
    row.add(1, has_tail);
    row.add(16, index);
}

#[inline(always)]
fn in_the_place_of_a_disk(told: Told) -> Disk {
    let Told { mid, cluster, conf, applied, term, term_has_moved } = told;
    Disk { mid, cluster, conf, has_left: term_has_moved, has_tail: false, term, index: 0, commit: applied }
}

#[inline(always)]
fn add_answer(row: &mut Row, answer: Heard) {
    let (kind, etcd) = match answer {
        Heard::NotAsked => (0_u8, (0, 0, 0, 0, 0, false, Conf::default())),
        Heard::Refused => (1, (0, 0, 0, 0, 0, false, Conf::default())),
        Heard::Silent => (2, (0, 0, 0, 0, 0, false, Conf::default())),
        Heard::Etcd { mid, cluster, leader, term, index, is_learner, conf } => {
            (3, (mid, cluster, leader, term, index, is_learner, conf))
        }
    };
    let (mid, cluster, leader, term, index, is_learner, conf) = etcd;
    row.add(3, term);
    row.add(2, kind);
    row.add(4, mid);
    row.add(8, cluster);
    row.add(4, leader);
    row.add(8, index);
    row.add(1, is_learner);
    row.conf(conf);
}
