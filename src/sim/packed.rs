//! A state in seven words: what a search keeps of millions of them.

#![expect(clippy::inline_always, reason = "a walk over some eighty fields is fast only where it is unrolled")]

use super::Sim;
use super::hash::Fast;
use super::intern::Id;
use super::world::{Action, Cib, Newer, Node, Operation, Run, Vars, Wanted, Word, World};
use crate::decide::Request;
use crate::decide::snapshot::{Moment, PeerAgent, PeerNode};
use std::hash::{Hash, Hasher};

const WORDS: usize = 7;
/// How wide a number of an interned value may be.
const ID_BITS: usize = 16;

/// All of a state but how many faults are left, and how much its logs were folded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Packed([u64; WORDS]);

const MACHINES: [PeerNode; 5] =
    [PeerNode::Online, PeerNode::Pending, PeerNode::Down, PeerNode::Lost, PeerNode::NeverSeen];
const AGENTS: [PeerAgent; 5] =
    [PeerAgent::Active, PeerAgent::Starting, PeerAgent::Stopping, PeerAgent::Stopped, PeerAgent::NoHistory];
const RUNS: [Run; 5] = [Run::Off, Run::Fresh, Run::Leaderless, Run::Follower, Run::Leader];
const WANTED: [Wanted; 3] = [Wanted::Running, Wanted::Standby, Wanted::Shutdown];
const WORDS_GIVEN: [Word; 5] = [
    Word::None,
    Word::Given { accept_loss: false },
    Word::Given { accept_loss: true },
    Word::Outdated { accept_loss: false },
    Word::Outdated { accept_loss: true },
];
const NEWER: [Newer; 4] = [Newer::Equal, Newer::Of(0), Newer::Of(1), Newer::Diverged];
const REQUESTS: [Request; 7] = [
    Request::Start,
    Request::Stop,
    Request::Monitor,
    Request::Probe,
    Request::Notify,
    Request::Promote,
    Request::Demote,
];
const MOMENTS: [Moment; 3] = [Moment::Pre, Moment::Post, Moment::Outside];
const OPERATIONS: [Operation; 3] = [Operation::None, Operation::Start, Operation::Stop];
const NODES: [Option<u8>; 3] = [None, Some(0), Some(1)];

impl Packed {
    /// `world`, packed.
    pub fn of(world: &World) -> Self {
        let mut bits = Bits::<false> { words: [0; WORDS], at: 0 };
        bits.world(&mut world.clone());
        Self(bits.words)
    }

    /// The state, with no fault left.
    pub fn world(&self) -> World {
        // All that is packed is filled in.
        let mut world = World::BLANK;
        Bits::<true> { words: self.0, at: 0 }.world(&mut world);
        world
    }
}

/// A digest of a state that does not depend on the numbers of its values.
pub fn digest(sim: &Sim, world: &World) -> u64 {
    let mut world = *world;
    for node in &mut world.nodes {
        if !node.data.is_blank() {
            node.data.log = sim.logs.mark(node.data.log).into();
        }
        (node.note, node.memory) = (sim.notes.mark(node.note).into(), sim.memories.mark(node.memory).into());
        node.cib.record = node.cib.record.map(|record| sim.records.mark(record).into());
        if let Some(action) = &mut node.action {
            action.progress = sim.progresses.mark(action.progress).into();
            action.plan = action.plan.map(|(plan, done)| (sim.todos.mark(plan).into(), done));
        }
    }
    let mut hasher = Fast::default();
    Packed::of(&world).hash(&mut hasher);
    hasher.finish()
}

/// A row of bits that is read or written, field after field, by the same walk. Every field has its place, so that the
/// compiler knows each shift.
struct Bits<const READS: bool> {
    words: [u64; WORDS],
    at: usize,
}

impl<const READS: bool> Bits<READS> {
    #[inline(always)]
    fn bits(&mut self, width: usize, value: u64) -> u64 {
        let (word, shift) = (self.at / 64, self.at % 64);
        let split = shift + width > 64;
        self.at += width;
        if READS {
            let low = self.words[word] >> shift;
            let high = if split { self.words[word + 1] << (64 - shift) } else { 0 };
            return (low | high) & ((1 << width) - 1);
        }
        assert!(value >> width == 0, "a state does not fit into its packed form");
        self.words[word] |= value << shift;
        if split {
            self.words[word + 1] |= value >> (64 - shift);
        }
        value
    }

    #[inline(always)]
    fn flag(&mut self, flag: &mut bool) {
        *flag = self.bits(1, (*flag).into()) != 0;
    }

    #[inline(always)]
    fn small(&mut self, width: usize, value: &mut u8) {
        *value = u8::try_from(self.bits(width, (*value).into())).unwrap_or_default();
    }

    #[inline(always)]
    fn id(&mut self, id: &mut Id) {
        *id = Id::try_from(self.bits(ID_BITS, (*id).into())).unwrap_or_default();
    }

    #[inline(always)]
    fn one_of<T: Copy + PartialEq>(&mut self, all: &[T], value: &mut T) {
        let width = (usize::BITS - (all.len() - 1).leading_zeros()) as usize;
        let index = if READS { 0 } else { all.iter().position(|one| one == value).unwrap_or_default() };
        *value = all[usize::try_from(self.bits(width, index as u64)).unwrap_or_default()];
    }

    #[inline(always)]
    fn world(&mut self, world: &mut World) {
        for node in &mut world.nodes {
            self.node(node);
        }
        self.flag(&mut world.link);
        self.flag(&mut world.joined);
        self.flag(&mut world.overridden);
        self.one_of(&NODES, &mut world.lagging);
        self.one_of(&NEWER, &mut world.newer);
        for set in [&mut world.acked, &mut world.given_up, &mut world.writes] {
            self.small(8, set);
        }
    }

    #[inline(always)]
    fn node(&mut self, node: &mut Node) {
        for flag in [&mut node.on, &mut node.quorum, &mut node.forces, &mut node.failed, &mut node.unclean] {
            self.flag(flag);
        }
        self.one_of(&WANTED, &mut node.wanted);
        self.one_of(&WORDS_GIVEN, &mut node.word);
        self.one_of(&RUNS, &mut node.etcd);
        self.id(&mut node.note);
        self.id(&mut node.memory);
        self.cib(&mut node.cib);
        self.small(4, &mut node.data.mid);
        self.id(&mut node.data.log);
        for byte in [&mut node.data.cluster, &mut node.data.commit, &mut node.data.durable] {
            self.small(8, byte);
        }
        let mut is_some = node.action.is_some();
        self.flag(&mut is_some);
        let mut action = node.action.unwrap_or(NO_ACTION);
        self.action(&mut action);
        node.action = is_some.then_some(action);
    }

    #[inline(always)]
    fn cib(&mut self, cib: &mut Cib) {
        for n in 0..2 {
            self.one_of(&MACHINES, &mut cib.machine[n]);
            self.one_of(&AGENTS, &mut cib.agent[n]);
            self.id(&mut cib.record[n]);
            self.flag(&mut cib.recorded[n]);
        }
        self.one_of(&NODES, &mut cib.standalone);
        self.small(8, &mut cib.lineage.0);
        self.small(2, &mut cib.lineage.1);
    }

    #[inline(always)]
    fn action(&mut self, action: &mut Action) {
        self.one_of(&REQUESTS, &mut action.request);
        self.id(&mut action.progress);
        let vars = &mut action.notify;
        self.flag(&mut vars.given);
        self.flag(&mut vars.in_vain);
        self.one_of(&MOMENTS, &mut vars.moment);
        self.one_of(&OPERATIONS, &mut vars.operation);
        for set in [&mut vars.active, &mut vars.start, &mut vars.stop] {
            self.small(2, set);
        }
        let mut is_some = action.plan.is_some();
        self.flag(&mut is_some);
        let mut plan = action.plan.unwrap_or_default();
        self.id(&mut plan.0);
        self.small(8, &mut plan.1);
        action.plan = is_some.then_some(plan);
    }
}

const NO_ACTION: Action = Action {
    request: Request::Start,
    notify: Vars {
        given: false,
        in_vain: false,
        moment: Moment::Outside,
        operation: Operation::None,
        active: 0,
        start: 0,
        stop: 0,
    },
    progress: 0,
    plan: None,
};
