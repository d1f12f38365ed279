//! The model and its checker. The model contains two machines, their two etcd members and Pacemaker, and calls
//! [`crate::decide`] exactly as the agent does. `docs/design/model.md` lists what is abstracted, what counts as a
//! fault, and how far searches went.
//!
//! - [`model`]: the state, a [`world::World`], and how etcd, Pacemaker and the agent change it. A state has two
//!   machines with power, boot memory, durable note, data dir, etcd, a replica of the CIB and the agent's action, and
//!   the network between them.
//! - [`moves`]: the smallest things that can happen: an observation with its decision, an effect of a plan, an entry
//!   that is replicated, a machine that loses power. [`scenario`] reads an order of moves from a file.
//! - [`search`]: [`check`] takes the moves in every order, on several threads; [`explore`] takes them in random orders.
//! - [`store`]: states and decisions by the million: packed, hashed, and with numbers in place of large values.
//! - [`reduce`]: keeps the number of states small: dead-variable reduction, symmetry reduction, atomic steps.
//! - [`report`]: prints a run as a story or a page, for people.
//! - [`compare`]: plays the same faults under other ways to run two members.
//! - [`members`]: a separate model of an etcd of up to five voters. Two tools change its members.
//! - [`fencing`]: a network of fencing agents in simulated time, with the real core on each machine.
//! - [`race`]: the race of two fence agents, with the real rules on each node.
//! - [`mutant`]: rules broken on purpose. A checker that does not catch them proves nothing.
//! - [`process`]: `tandem-sim`, the program that runs all of this; `command_line` has its subcommands.
//!
//! All of them share a [`Sim`].

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

/// The tables of values that states refer to by number, and all decisions so far. The threads of a search use the same numbers.
#[derive(Clone, Debug)]
pub struct Sim {
    pub bounds: Bounds,
    pub mutant: Mutant,
    /// The rules by which the nodes decide. The invariants are asserted only for Tandem's own rules
    /// ([`Strategy::is_tandem`]).
    pub strategy: Strategy,
    pub logs: Logs,
    pub records: Interner<Option<PublishedState>>,
    pub notes: Interner<DurableState>,
    pub memories: Interner<BootState>,
    pub progresses: Interner<Progress>,
    pub todos: Interner<Todo>,
    pub plans: steps::Plans,
    /// The reasons of all decisions so far. A test finds by it the reasons that no search gives.
    pub said: Interner<Option<Reason>>,
    pub decided: decided::Decided,
    pub renamings: Interner<rename::Renaming>,
    /// The number that a value gets when the names in it are changed. The first index selects the renaming and the table of values. The
    /// second index is the value's old number.
    pub renamed: Vec<Vec<Option<intern::Id>>>,
    /// Properties of values that the reductions read often. The first index selects the table of values, and the second index is the
    /// value's number.
    pub known: [Vec<Option<known::Known>>; rename::TABLES],
}

impl Sim {
    /// Creates the model with empty tables.
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
        // Number 0 means "none". An empty note or memory is a value, so it gets a number of its own.
        sim.notes.reserve_default();
        sim.memories.reserve_default();
        sim.add_plans();
        sim
    }

    /// Adds the values that other threads have numbered since the last call.
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

    /// Returns whether the invariants are asserted. They are only for Tandem's own rules.
    pub fn judges(&self) -> bool {
        self.strategy.is_tandem()
    }
}

/// The description of a broken invariant, as a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation(pub String);

impl Violation {
    pub fn new(what: String) -> Self {
        Self(what)
    }
}
