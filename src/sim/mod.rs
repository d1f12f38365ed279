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
//!
//! How a search is kept small, and why nothing is hidden by it ([`canon`], [`dead`], [`mod@passing`], [`check`]):
//! - *Steps that do not last* ([`mod@passing`]). Between two effects of a round, and while entries go from one etcd to the
//!   other, only faults come. The effects of a round take some hundred milliseconds and etcd's messages less; what the other
//!   agent could see in between is given up here, and comes back with `--fine`, which lets everything come between any two
//!   steps. The states between are gone through and not kept. A stop that finds no etcd and, where no fault is left, a
//!   machine that boots come right before what others see of them; and once no fault is left, a stop of an etcd without a
//!   leader decides as soon as it begins.
//! - *Names.* Member ids are told apart and nothing else, and the two nodes differ by their names only where both are
//!   blank: states that differ by such names are one. Counts of forks are compared and nothing else: they are ranks. Where
//!   disks may be lost, a node that knows of no fork keeps 0, which is what a new disk has.
//! - *Writes.* A write that both data dirs hold below what they can lose is part of what was written before, and its
//!   number is free again: `--writes 1` is one write at a time, not one in all. One bit stands for all that was before,
//!   and its loss is a violation.
//! - *Logs.* What both nodes hold for good is folded into one entry, and so is what one of them holds for good once it
//!   does not know the other's member: the two logs are never compared again. How much a sole voter knows to be
//!   committed is left out where every entry that made it the sole voter is among it: it commits all when it starts.
//! - *Positions.* No rule compares terms or indices; that an operator's word is about this data is kept as a fact of its
//!   own, and whether a log has a tail above its commit index as another. A record that would differ by its position
//!   only is not published again.
//! - *What nothing reads.* Notify variables that an action's decisions do not ask for, a memory that holds no voter, the
//!   nonce of a record that nobody waits for, the force in the configuration of an etcd that does not run, and what is left on
//!   a machine that waits to be fenced.
//!   `--keep-dead` tells states apart by that, too: the verdict must be the same.
//! - *Variables that are old.* Once no fault is left, a start's notify variables say what the CIB says: that they may be older
//!   is searched as long as a fault is left, and with `--keep-dead` to the end.
//! - *Fewest faults first.* A state is not looked at again with fewer faults left.
//!
//! [`check::missed`] tests the search itself: every state that lasts on a given run must be among those found.
//!
//! What counts as a fault (`--faults`): a power cut, a killed etcd or agent, a cut network, a replica of the CIB that
//! stands still, with `--disks` a power cut that takes the disk, and each of an operator's standby, shutdown and
//! confirmed recovery. Boot, repair, fencing and catching up are free, at any time or never.
//!
//! Where an operator had a node go on alone beside the other's own fork, there are two histories: what the other one took
//! counts as given up once one of them serves, as the word said, and no way back to two voters is asked for.
//!
//! How far it went, in processor time on a busy machine with two cores:
//! - `tandem sim check --faults 1`: 2,054 states, 11,169 transitions, 0.1 s.
//! - `tandem sim check --faults 2`: 238,568 states, 1,643,535 transitions, 2 s; no violation, and from every state two voters
//!   can be reached again. `--unblock` (704,729 states) and `--slow-fencing` (652,848 states): the same.
//! - `tandem sim check --faults 1 --blank --disks`: no violation, and a way back from every state.
//! - `tandem sim check --faults 2 --disks --no-operators`: 364,552 states, 2,314,670 transitions; no violation, and 2,068
//!   states without a way back. A voter has recorded that it goes on alone, and its disk is lost, mostly before it did: its
//!   peer, whose data knows of no such fork, is refused its start by name of the command,
//!   `tandem confirm-recovery --accept-loss`. An operator's action counts as a fault, so it is in no way back; that it leads
//!   to two voters is the scenario `fork-on-a-disk-that-is-lost`.
//! - `tandem sim check --faults 3`: 11,308,465 states, 97,117,702 transitions, 106 s on two threads, so about 55 s by the clock on
//!   two cores that do nothing else (1.5 GB); no violation, and from every state two voters can be reached again.
//! - The largest so far, with the same rules and old variables to the end: 12,687,775 states, 105,557,027 transitions, the same.
//! - `tandem sim check --faults 3 --etcd-3.4`: 8,446,577 states, 67,156,105 transitions; no violation, a way back from each.
//! - `tandem sim check --faults 2 --blank --disks --no-operators`: 9,707,529 states, 65,894,767 transitions; no violation. From
//!   35,822 states, in each of which a disk is lost, no way leads back without an operator.
//! - `tandem sim explore --seed 7 --steps 10000000`: 10 million moves without a violation, 39 s of processor time.
//!
//! Where the model is weaker than the world, on purpose:
//! - A decision is of one instant. In the agent a fault can come between two of its questions; a fault between the look
//!   and any of its effects is in the search.
//! - A plan's effects are not interleaved with the other agent's, except with `--fine`.
//! - Late decisions come only when everything else has come to rest ([`agent::may_wait`]), and, without `--slow-fencing`,
//!   not while somebody is to be fenced.
//! - That nobody forces a new cluster while its peer runs unfenced is asserted of a peer that claims to go on alone: one
//!   that has booted since it was confirmed down cannot, and a plan made before it booted is carried out.

pub mod agent;
pub mod canon;
pub mod check;
pub mod dead;
pub mod etcd;
pub mod explore;
pub mod hash;
pub mod intern;
pub mod key;
pub mod known;
mod line;
pub mod log;
pub mod members;
pub mod moves;
pub mod mutant;
pub mod pacemaker;
pub mod packed;
pub mod page;
pub mod passing;
pub mod rename;
pub mod roots;
pub mod scenario;
mod search;
mod share;
pub mod steps;
pub mod story;
pub mod strategy;
mod swap;
pub mod timeline;
pub mod view;
pub mod words;
pub mod world;

use crate::decide::Progress;
use crate::decide::snapshot::{BootMemory, Note, Record};
use agent::Todo;
use intern::Interner;
use log::Logs;
use mutant::Mutant;
use strategy::Strategy;

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
    /// Whether a power cut may take a machine's disk with it.
    pub disks: bool,
    /// Whether an operator lets a node that boots alone act (`pcs quorum unblock`); that costs no fault.
    pub unblocks: bool,
    /// Whether fencing may take longer than the agent's patience with a silent etcd.
    pub slow_fencing: bool,
    /// Whether the other node's steps come between any two effects, too, and not only faults.
    pub fine: bool,
    /// Whether states keep what nothing reads any more ([`dead`]): more of them, and the same verdict.
    pub keeps_dead: bool,
}

impl Bounds {
    /// What a search looks at unless it is told otherwise: two voters, one write at a time, and an operator.
    pub fn of_search(faults: u8) -> Self {
        Self {
            faults,
            writes: 1,
            silent_without_leader: true,
            operators: true,
            blank: false,
            disks: false,
            unblocks: false,
            slow_fencing: false,
            fine: false,
            keeps_dead: false,
        }
    }

    /// A scenario says itself how much happens.
    pub fn for_scenarios() -> Self {
        Self {
            faults: u8::MAX,
            writes: 7,
            silent_without_leader: true,
            operators: true,
            blank: true,
            disks: true,
            unblocks: true,
            slow_fencing: true,
            fine: true,
            keeps_dead: true,
        }
    }
}

/// What a search shares: the tables behind the numbers of its states, and the decisions that it has taken.
#[derive(Clone, Debug)]
pub struct Sim {
    pub bounds: Bounds,
    pub mutant: Mutant,
    /// Who decides; another than the real core is not held to the invariants, but measured.
    pub strategy: Strategy,
    pub logs: Logs,
    pub records: Interner<Option<Record>>,
    pub notes: Interner<Note>,
    pub memories: Interner<BootMemory>,
    pub progresses: Interner<Progress>,
    pub todos: Interner<Todo>,
    pub plans: steps::Plans,
    pub decided: key::Decided,
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
            decided: key::Decided::default(),
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
