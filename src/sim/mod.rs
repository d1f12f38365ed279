//! The model and its checker: two machines, their two etcd members and Pacemaker, in which [`crate::decide`] is called exactly
//! as the agent calls it. `docs/design/model.md` says what is abstracted, what counts as a fault, and how far searches went.
//!
//! - [`model`]: one state is a [`world::World`], two machines with power, boot memory, durable note, data dir and etcd, one
//!   replica of the CIB each, the network between them, and the agent's action on each. Etcd, Pacemaker and the agent are
//!   what changes it.
//! - [`moves`]: the smallest things that can happen: one look and its decision, one effect of a plan, one entry that is
//!   replicated, one machine that loses power. [`scenario`] reads an order of them that is written down.
//! - [`search`]: [`check`] takes every order of them, over shards of the states; [`explore`] takes random ones.
//! - [`store`]: states and decisions by the million: packed, hashed, and with numbers in place of large values.
//! - [`reduce`]: why there are not more states: dead-variable reduction, symmetry reduction, atomic steps.
//! - [`told`]: a run as a story or a page, for people.
//! - [`compare`]: the same faults under other ways to run two members.
//! - [`members`]: a model of its own, of an etcd of up to five voters whose members two tools change.
//! - [`fencing`]: a network of fencing agents in simulated time, with the real core on each machine.
//! - [`race`]: the race of two fence agents, with the real rules on each node.
//! - [`mutant`]: rules broken on purpose: a checker that does not catch them proves nothing.
//! - [`process`]: `tandem-sim`, the program that runs all of this; `command_line` has its subcommands.
//!
//! [`Sim`] is what all of them share.

mod bounds;
mod command_line;
pub mod compare;
pub mod fencing;
pub mod members;
pub mod model;
pub mod moves;
pub mod mutant;
pub mod process;
pub mod race;
pub mod reduce;
pub mod report;
pub mod search;
pub mod store;

pub use bounds::Bounds;
pub use compare::{strategy, timeline};
pub use model::{agent, etcd, initial_states, pacemaker, world};
pub use moves::scenario;
pub use report::{page, story};
pub use search::{check, explore};
pub use store::packed;

use crate::decide::evidence::{BootState, DurableState, PublishedState};
use crate::decide::{Progress, Reason};
use model::log::Logs;
use model::steps::{self, Todo};
use mutant::Mutant;
use reduce::symmetry::{known, rename};
use store::decided;
use store::intern::{self, Interner};
use strategy::Strategy;

/// What a search shares: the tables behind the numbers of its states, and the decisions that it has taken.
#[derive(Clone, Debug)]
pub struct Sim {
    pub bounds: Bounds,
    pub mutant: Mutant,
    /// Who decides; another than the real core is not held to the invariants, but measured.
    pub strategy: Strategy,
    pub logs: Logs,
    pub records: Interner<Option<PublishedState>>,
    pub notes: Interner<DurableState>,
    pub memories: Interner<BootState>,
    pub progresses: Interner<Progress>,
    pub todos: Interner<Todo>,
    pub plans: steps::Plans,
    /// The reasons of all decisions: what a search has reached.
    pub said: Interner<Option<Reason>>,
    pub decided: decided::Decided,
    pub renamings: Interner<rename::Renaming>,
    /// By renaming and table, and then by number: what it is under other names.
    pub renamed: Vec<Vec<Option<intern::Id>>>,
    /// By table and number: what is asked of it again and again.
    pub known: [Vec<Option<known::Known>>; rename::TABLES],
}

impl Sim {
    /// An empty one.
    pub fn new(bounds: Bounds, mutant: Mutant) -> Self {
        let mut sim = Self {
            bounds,
            mutant,
            strategy: Strategy::Tandem,
            logs: Logs::default(),
            records: Interner::default(),
            notes: Interner::default(),
            memories: Interner::default(),
            progresses: Interner::default(),
            todos: Interner::default(),
            plans: steps::Plans::default(),
            said: Interner::default(),
            decided: decided::Decided::default(),
            renamings: Interner::default(),
            renamed: Vec::new(),
            known: Default::default(),
        };
        // Number 0 says that there is none; an empty note or memory is something else.
        sim.notes.reserve_default();
        sim.memories.reserve_default();
        sim.add_plans();
        sim
    }

    /// Learns the numbers that other threads have given.
    fn catch_up(&mut self) {
        self.logs.catch_up();
        self.records.catch_up();
        self.notes.catch_up();
        self.memories.catch_up();
        self.progresses.catch_up();
        self.todos.catch_up();
        self.said.catch_up();
        self.add_plans();
    }

    /// Whether the invariants are asserted.
    pub fn judges(&self) -> bool {
        self.strategy == Strategy::Tandem
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
