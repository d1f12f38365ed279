//! A world of two nodes in which [`crate::decide`] is called exactly as the agent calls it.
//!
//! One state is a [`world::World`]: two machines with power, boot memory, durable note, data dir and etcd, one replica
//! of the CIB each, the network between them, and the action of the agent that runs on each. One move ([`moves`]) is the
//! smallest thing that can happen: one look and its decision, one effect of a plan, one entry that is replicated, one
//! machine that loses power. [`check`] takes every order of them, [`scenario`] takes one that is written down.
//!
//! What is abstracted:
//! - Time. A decision is taken at seven moments of its action (at once, past each patience of the core, at the end of its
//!   time, and in a phase that has just begun), whatever really passed. So a wait may end at any time, in every order; but
//!   nothing can be learned of how long it takes.
//! - One look is one moment. The agent asks its sources within some hundred milliseconds of each other; in the model what
//!   it finds is of one instant, and only the CIB can be stale, for as long as a fault keeps a replica from catching up. With
//!   `--hide` one look does not find one of six things out.
//! - Pacemaker decides less than it could: an action begins wherever the rules of a promotable clone's plain sibling
//!   would let it, a notification is given whenever its event holds, and the transition's variables are those of its
//!   beginning. That is more than the real scheduler does, so what is safe here is safe there; whether it really
//!   comes to pass is what the lab shows.
//! - etcd. Terms are left out: of two voters' logs without a fork one is the beginning of the other, so the longer one
//!   wins an election. A write that is acknowledged is in both logs; the follower hears of it one move later, writes
//!   that down one move later still, and a process that is killed loses what it had not written down. A removed
//!   member ends once a leader of its cluster, or its own log, tells it.
//! - Fencing always works, and is confirmed with the power cut. `wait_for_all` is on, as `two_node` sets it.
//! - Operators' errors are: standby and shutdown at any time, a confirmed recovery wherever the command allows it, and an end
//!   of Pacemaker in maintenance; with `--choose` either of two histories and with `--tell` `force_new_cluster`, where no etcd
//!   runs.
//! - Pacemaker's end. A node that asks to shut down is expected to be gone from then on, while its resources run; only its
//!   agent's history tells. Pacemaker and Corosync can end while etcd runs, in maintenance (the peer is told, and fences nobody)
//!   or killed (the peer misses it, and fences), and come back in the same boot, alone or not: `/run` and the note are as they
//!   were, and what was in the status section is gone. That a node is in maintenance is the same as that its Pacemaker ended:
//!   it is out of maintenance when it is back.
//! - Failures. With `--threshold` Pacemaker counts failed starts and then starts no more, until somebody cleans up. As time is
//!   abstracted, any number of them can fail within any wait. Failed monitors are not counted. With `--damage` one plain start
//!   that ends at once stands for as many as are counted beside the data; where no voter's data is whole, a human has to choose.
//! - A killed agent leaves nothing behind; with `--launches` its `podman` may be left, which starts etcd later. Of what else it
//!   had begun nothing goes on.
//!
//! What it cannot show: how real etcd reads a damaged log, what Pacemaker really schedules, and how long anything takes.
//!
//! How a search is kept small, and why nothing is hidden by it ([`mod@reduce`], [`check`]):
//! - *Steps that do not last* ([`reduce::atomic_steps`]). Between two effects of a round, and while entries go from one etcd to the
//!   other, only faults come. The effects of a round take some hundred milliseconds and etcd's messages less; what the other
//!   agent could see in between is given up here, and comes back with `--fine`, which lets everything come between any two
//!   steps. The states between are gone through and not kept. A stop that finds no etcd and, where no fault is left, a
//!   machine that boots come right before what others see of them; and once no fault is left, a stop of an etcd without a
//!   leader decides as soon as it begins.
//! - *Names.* Member ids are told apart and nothing else, and the two nodes differ by their names only where both are
//!   blank, and where each made a fork of the same rank, which rules order by its author: other states that differ by such
//!   names are one. What leads to two forks of one rank is gone through in both ways round. Counts of forks are compared and
//!   nothing else: they are ranks, but with `--count-forks`. Where disks may be lost, a node that knows of no fork keeps 0,
//!   which is what a new disk has.
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
//! [`check::missed`] tests the search itself: every state that lasts on a given run must be among those found. Tests
//! (`mirror`) decide every view and its mirror image, and go on from both. `tests/sim_coverage.rs` lists every move,
//! effect, rule and refusal that no search reaches, with its reason.
//!
//! What counts as a fault (`--faults`): a power cut, a killed etcd or agent, a cut network, a replica of the CIB that
//! stands still, a killed Pacemaker, with `--disks` a power cut that takes the disk, with `--damage` one that takes what etcd
//! needs of data that looks whole, with `--launches` an agent that is killed while it starts etcd, with `--hide` one look that
//! does not find one thing out, and each of an operator's standby, shutdown, confirmed recovery, choice between two histories
//! (`--choose`), `force_new_cluster` (`--tell`), end of Pacemaker in maintenance and cleaning up. Boot, repair, fencing and
//! catching up are free, at any time or never.
//!
//! Where an operator had a node go on alone beside the other's own fork, there are two histories. The word is directional: what
//! only the other one took counts as given up once the confirmed one serves; the other way round only where the other one
//! starts before it could hear of that word. Until one of them is moved aside, or both share one history again, no way back to
//! two voters is asked for: a human has to choose.
//!
//! What is known to be wrong with today's rules, each with a bound that is off in a search of every day:
//! - `--faults 2 --acks-before-sync`: what a sole voter of such a release acknowledged last goes with its power. No rule mends
//!   that.
//! - `--faults 2 --choose --no-operators`: an operator chooses one history and, once its node has written down that it goes on,
//!   the other one. The first choice is carried out.
//!
//! How far it went (a release build on two busy cores):
//! - `tandem sim check --faults 1`: 2,927 states, 18,154 transitions, 0.1 s.
//! - `tandem sim check --faults 2`: 551,270 states, 4,009,262 transitions, 3 s; no violation, and from every state two voters
//!   can be reached again. `--launches` (554,387 states) and `--threshold 3` (1,050,681): the same.
//! - `tandem sim check --faults 1 --fine`: 4,810,695 states; `--faults 1 --blank --disks`: 98,572 states; `--faults 1 --blank
//!   --launches`: 80,707; `--faults 1 --choose --no-operators`: 5,039; `--faults 1 --damage`: 4,991; the same.
//! - `tandem sim check --faults 2` with `--hide`: 596,508 states; with `--promotable`: 1,449,854; with `--tell --no-operators`:
//!   493,825; with `--count-forks`: 651,918; with `--unblock`: 1,889,842. No violation, and a way back from each; 2 s to 10 s.
//! - `tandem sim check --faults 2 --disks --no-operators`: 613,635 states, 4,287,107 transitions; no violation, and 3,027 states
//!   without a way back. A voter has recorded that it goes on alone, and its disk is lost, mostly before it did: its peer is
//!   refused its start by name of the command. An operator's action counts as a fault, so it is in no way back; that it leads
//!   to two voters is the scenario `fork-on-a-disk-that-is-lost`. The same with `--damage` for `--disks`: 812,258 states, and 9,797
//!   without a way back, the first of them for that reason.
//! - `tandem sim check --faults 3`: 36,312,689 states, 317,582,688 transitions, 263 s, 4.4 GB; no violation, and a way back from
//!   each. That is too much for every day.
//!
//! Where the model is weaker than the world, on purpose:
//! - A decision is of one instant. In the agent a fault can come between two of its questions; a fault between the look
//!   and any of its effects is in the search.
//! - A plan's effects are not interleaved with the other agent's, except with `--fine`.
//! - Late decisions come only when everything else has come to rest ([`agent::may_wait`]), and, without `--slow-fencing`,
//!   not while somebody is to be fenced.
//! - That nobody forces a new cluster while its peer runs unfenced is asserted of a peer that claims to go on alone: one
//!   that has booted since it was confirmed down cannot, and a plan made before it booted is carried out.

pub mod compare;
pub mod model;
pub mod moves;
pub mod mutant;
pub mod reduce;
pub mod search;
pub mod store;
pub mod told;

pub use compare::{strategy, timeline};
pub use model::{agent, etcd, initial_states, pacemaker, world};
pub use moves::scenario;
pub use search::{check, explore};
pub use store::packed;
pub use told::{page, story};

use crate::decide::snapshot::{BootMemory, Note, Record};
use crate::decide::{Progress, Reason};
use model::log::Logs;
use model::steps::{self, Todo};
use mutant::Mutant;
use reduce::symmetry::{known, rename};
use store::decided;
use store::intern::{self, Interner};
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
    /// Whether Pacemaker and Corosync end on a node whose etcd goes on, and come back in the same boot.
    pub stacks: bool,
    /// Whether a start of etcd can outlive its agent.
    pub launches: bool,
    /// Whether a power cut may leave data that looks whole and from which no etcd starts.
    pub damage: bool,
    /// Whether a sole voter acknowledges a write before it is on its disk, as etcd did before 3.5.5 and 3.4.21.
    pub acks_before_sync: bool,
    /// After how many failed starts, beyond those that are in vain, Pacemaker starts no more; 0 is never.
    pub threshold: u8,
    /// Whether states keep what nothing reads any more ([`reduce::dead_variables`]): more of them, and the same verdict.
    pub keeps_dead: bool,
    /// Whether forks are counted and not ranked: more states, and an invariant more ([`agent::check`]).
    pub counts_forks: bool,
    /// Whether Pacemaker runs a promotable clone, whose instances it promotes and demotes.
    pub promotable: bool,
    /// Whether two histories are a beginning, too, and an operator chooses between histories (`etcd_primary`).
    pub chooses: bool,
    /// Whether an operator, or a program for him, says whose data counts (`force_new_cluster`).
    pub tells: bool,
    /// Whether a look may not find something out: the CIB, the note, the data, the container, either etcd.
    pub hides: bool,
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
            stacks: true,
            launches: true,
            damage: false,
            acks_before_sync: false,
            threshold: 0,
            keeps_dead: false,
            counts_forks: false,
            promotable: false,
            chooses: false,
            tells: false,
            hides: false,
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
            stacks: true,
            launches: true,
            damage: true,
            acks_before_sync: false,
            threshold: 0,
            keeps_dead: true,
            counts_forks: true,
            promotable: false,
            chooses: true,
            tells: true,
            hides: true,
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
