//! A world of two nodes in which [`crate::decide`] is called exactly as the agent calls it.
//!
//! One state is a [`world::World`]: two machines with power, boot memory, durable note, data dir and etcd, one replica
//! of the CIB each, the network between them, and the action of the agent that runs on each. One move ([`moves`]) is the
//! smallest thing that can happen: one look and its decision, one effect of a plan, one entry that is replicated, one
//! machine that loses power. [`check`] takes every order of them, [`scenario`] takes one that is written down.
//!
//! What is abstracted:
//! - Time. A decision is taken at four moments of its action (at once, and past each patience of the core), whatever
//!   really passed. So a wait may end at any time, in every order; but nothing can be learned of how long it takes.
//! - One look is one moment. The agent asks its sources within some hundred milliseconds of each other; in the model what
//!   it finds is of one instant, and only the CIB can be stale, for as long as a fault keeps a replica from catching up.
//! - Pacemaker decides less than it could: an action begins wherever the rules of a promotable clone's plain sibling
//!   would let it, a notification is given whenever its event holds, and the transition's variables are those of its
//!   beginning. That is more than the real scheduler does, so what is safe here is safe there; whether it really
//!   comes to pass is what the lab shows.
//! - etcd. Terms are left out: of two voters' logs without a fork one is the beginning of the other, so the longer one
//!   wins an election. A write that is acknowledged is in both logs; the follower hears of it one move later, writes
//!   that down one move later still, and a process that is killed loses what it had not written down. A removed
//!   member ends once a leader of its cluster, or its own log, tells it.
//! - Fencing always works, and is confirmed with the power cut. `wait_for_all` is on, as `two_node` sets it.
//! - Operators' errors are: standby and shutdown at any time, and a confirmed recovery wherever the command allows it.
//!
//! What it cannot show: how real etcd reads a damaged log, what Pacemaker really schedules, and how long anything takes.

pub mod agent;
pub mod check;
pub mod etcd;
pub mod explore;
pub mod hash;
pub mod intern;
pub mod log;
pub mod moves;
pub mod mutant;
pub mod pacemaker;
pub mod roots;
pub mod scenario;
pub mod story;
pub mod view;
pub mod world;

use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use crate::decide::Progress;
use crate::decide::snapshot::{BootMemory, Note, Record};
use agent::Todo;
use hash::Fast;
use intern::Interner;
use log::Entry;
use mutant::Mutant;
use view::View;

/// How far a search goes.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own on the command line")]
pub struct Bounds {
    pub faults: u8,
    pub writes: u8,
    /// Whether an etcd that lost its leader answers nobody, as from 3.5 on.
    pub silent_without_leader: bool,
    /// Whether operators act: standby, shutdown, and the confirmed recovery.
    pub operators: bool,
    /// Whether two blank nodes are a beginning, too.
    pub blank: bool,
    /// Whether fencing may take longer than the agent's patience with a silent etcd.
    pub slow_fencing: bool,
    /// Whether the other node's steps come between any two effects, too, and not only faults.
    pub fine: bool,
}

impl Bounds {
    /// A scenario says itself how much happens.
    pub fn for_scenarios() -> Self {
        Self {
            faults: u8::MAX,
            writes: 7,
            silent_without_leader: true,
            operators: true,
            blank: true,
            slow_fencing: true,
            fine: true,
        }
    }
}

/// What a search shares: the tables behind the numbers of its states, and the decisions that it has taken.
#[derive(Debug)]
pub struct Sim {
    pub bounds: Bounds,
    pub mutant: Mutant,
    pub logs: Interner<Vec<Entry>>,
    pub records: Interner<Option<Record>>,
    pub notes: Interner<Note>,
    pub memories: Interner<BootMemory>,
    pub progresses: Interner<Progress>,
    pub todos: Interner<Todo>,
    pub decided: HashMap<View, [u32; 4], BuildHasherDefault<Fast>>,
}

impl Sim {
    /// An empty one.
    pub fn new(bounds: Bounds, mutant: Mutant) -> Self {
        let mut sim = Self {
            bounds,
            mutant,
            logs: Interner::default(),
            records: Interner::default(),
            notes: Interner::default(),
            memories: Interner::default(),
            progresses: Interner::default(),
            todos: Interner::default(),
            decided: HashMap::default(),
        };
        // Number 0 says that there is none; an empty note or memory is something else.
        sim.notes.reserve_default();
        sim.memories.reserve_default();
        sim
    }
}

/// Something that must never happen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation(pub String);

impl Violation {
    /// It, in words.
    pub fn new(what: String) -> Self {
        Self(what)
    }
}
