//! Virtual time. Every move takes as long as on ordinary machines, faults come when a script has them, and the move
//! that is due first happens. That is one run of many: it measures, while the search proves.

use std::collections::HashMap;

use super::strategy::{ALL, Strategy};
use crate::sim::model::initial_states::Beginning;
use crate::sim::model::pacemaker::Begin;
use crate::sim::model::timing::MOMENTS;
use crate::sim::model::world::{HISTORY, NAMES, Word, World};
use crate::sim::model::{etcd, reach};
use crate::sim::moves::{self, Move};
use crate::sim::reduce::symmetry::canonical;
use crate::sim::report::story;
use crate::sim::{Bounds, Sim};

/// A timed sequence of faults. Every strategy is run against it, so that the results can be compared.
#[derive(Clone, Debug)]
pub struct Script {
    pub name: &'static str,
    /// True if both nodes are blank and off at the beginning of the run.
    pub is_new: bool,
    /// The faults and other events of the run, each with its time in milliseconds.
    pub events: Vec<(u64, Move)>,
    /// True if clients write all the time. If false, a client writes only when the script contains a write.
    pub clients: bool,
}

/// An event that happened in a run.
#[derive(Clone, Debug)]
pub struct TimelineStep {
    pub at_ms: u64,
    pub what: Move,
    pub why: Vec<String>,
    pub world: World,
}

/// The figures of a run, by which strategies are compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    pub acknowledged: u32,
    pub lost: u32,
    pub without_writes_ms: u64,
    /// The largest number of nodes that took writes at the same time.
    pub writers: usize,
    pub fences: u32,
    pub manual: u32,
    /// True if a node takes writes at the end of the run.
    pub serves: bool,
    /// The index of the node that leads at the end of the run; `None` if neither leads.
    pub leader: Option<usize>,
}

/// The length of a run, in seconds.
const END_S: u64 = 300;
/// The time in a run at which an operator checks the cluster, in seconds.
const OPERATOR_S: u64 = 240;
/// The time of the first fault in a run, in milliseconds. A client begins a write 50 ms before it.
const FAULT_MS: u64 = 20_050;

/// Returns the runs of the comparison. At first node1 leads. Each fault comes just after a write was acknowledged, when the follower
/// does not yet know that the write is committed.
pub fn scripts() -> Vec<Script> {
    let script = |name, events: &[(u64, Move)]| Script { name, is_new: false, events: events.to_vec(), clients: true };
    let new = |name, events: &[(u64, Move)]| Script { is_new: true, ..script(name, events) };
    let (cut, back) = (Move::PowerCut, Move::Boot);
    vec![
        script("the leader loses power, and is back", &[(FAULT_MS, cut(0)), (60_000, back(0))]),
        script("the follower loses power, and is back", &[(FAULT_MS, cut(1)), (60_000, back(1))]),
        script("the leader is gone for good", &[(FAULT_MS, cut(0))]),
        script(
            "both lose power under writes",
            &[(FAULT_MS, cut(0)), (FAULT_MS, cut(1)), (60_000, back(0)), (60_000, back(1))],
        ),
        script("both lose power, one returns", &[(FAULT_MS, cut(0)), (FAULT_MS, cut(1)), (60_000, back(1))]),
        script(
            "the leader dies, its peer continues and dies, the leader returns",
            &[(FAULT_MS, cut(0)), (60_000, cut(1)), (80_000, back(0))],
        ),
        script("the network parts", &[(FAULT_MS, Move::CutLink), (80_000, Move::HealLink)]),
        script(
            "the leader is cut off from its peer and from users",
            &[
                (FAULT_MS, Move::CutUsers(0)),
                (FAULT_MS, Move::CutLink),
                (80_000, Move::HealLink),
                (80_000, Move::UsersBack(0)),
            ],
        ),
        script("etcd crashes on the follower", &[(FAULT_MS, Move::KillEtcd(1))]),
        new("a new pair, and the second node never starts", &[(0, back(0))]),
        new("a new pair, and the second node starts first", &[(0, back(1)), (30_000, back(0))]),
    ]
}

/// Returns the milliseconds from the time at which a move becomes possible to the time at which it happens.
fn delay_ms(what: Move) -> u64 {
    match what {
        Move::Write | Move::CatchUp => 1_000,
        Move::Replicate => 5,
        // The follower gets the commit index with the next message; a sole voter writes its own with the next entry.
        Move::Learn | Move::Leave(_) => 100,
        Move::Persist(_) => 1_500,
        Move::Elect(n) | Move::StepDown(n) => 1_500 + 200 * index(n),
        Move::Boot(_) => 40_000,
        Move::Notice => 3_000,
        // The default of `failback_delay`.
        Move::DelayOver(_) => 60_000,
        Move::Meet(_) | Move::GiveUp(_) => 2_000,
        // The delays of two fence devices differ, so that one node wins.
        Move::Fence(n) => 4_000 + 6_000 * index(n),
        Move::Begin(n, begin, moment) => begin_ms(begin) + 10 * index(n) + MOMENTS[moment].elapsed_ms,
        Move::Decide(n, moment) => 300 + 10 * index(n) + MOMENTS[moment].elapsed_ms,
        Move::Effect(_) => 200,
        _ => 0,
    }
}

fn index(n: usize) -> u64 {
    n as u64
}

fn begin_ms(begin: Begin) -> u64 {
    match begin {
        Begin::Monitor => 10_000,
        Begin::Start { both: true } | Begin::Probe => 500,
        Begin::Start { both: false } => 600,
        Begin::Promote | Begin::Demote => 200,
        Begin::Stop { .. } | Begin::StopInVain | Begin::BeforeStart | Begin::AfterStart | Begin::AfterStop => 100,
    }
}

/// A run that has not ended yet.
struct Timeline<'a> {
    sim: &'a mut Sim,
    world: World,
    now_ms: u64,
    due: HashMap<Move, u64>,
    stays_off: [bool; 2],
    clients: bool,
    /// The number of writes that each number of a write represents. A state has only seven numbers of writes.
    weights: [u32; 7],
    figures: Figures,
    steps: Vec<TimelineStep>,
}

/// Plays a script with nodes that decide by `strategy`. Returns the events and the figures.
pub fn play(script: &Script, strategy: Strategy) -> (Sim, Vec<TimelineStep>, Figures) {
    let bounds = Bounds { primary: strategy.tandems_primary(), ..Bounds::for_scenarios() };
    let mut sim = Sim::new(bounds, crate::sim::mutant::Mutant::None);
    sim.strategy = strategy;
    // The first start of plain members has both in its configuration, so both have the same data then.
    let is_blank = script.is_new && strategy != Strategy::PlainRaft;
    let world = if is_blank { Beginning::Blank } else { Beginning::Voters }.world(&mut sim);
    let mut run = Timeline {
        sim: &mut sim,
        world: World { faults: u8::MAX, ..world },
        now_ms: 0,
        due: HashMap::new(),
        stays_off: [false; 2],
        clients: script.clients,
        weights: [1; 7],
        figures: Figures::default(),
        steps: Vec::new(),
    };
    if script.is_new {
        run.happens(Move::PowerCut(0));
        run.happens(Move::PowerCut(1));
    }
    let mut events: Vec<(u64, Option<Move>)> =
        script.events.iter().map(|(at_ms, what)| (*at_ms, Some(*what))).collect();
    events.push((OPERATOR_S * 1_000, None));
    for (at_ms, event) in events {
        run.until(at_ms);
        match event {
            Some(what) => run.happens(what),
            None => run.operator_looks(),
        }
    }
    run.until(END_S * 1_000);
    let (steps, figures) = run.end();
    (sim, steps, figures)
}

impl Timeline<'_> {
    fn until(&mut self, end_ms: u64) {
        loop {
            let mut next: Vec<(u64, Move)> = Vec::new();
            let mut enabled = Vec::new();
            moves::apply_all(self.sim, &self.world, |what, result| {
                if result.is_ok() && !what.is_fault() {
                    enabled.push(what);
                }
            });
            enabled.retain(|what| self.is_wanted(*what));
            self.due.retain(|what, _| enabled.contains(what));
            for what in enabled {
                let due = *self.due.entry(what).or_insert(self.now_ms + delay_ms(what));
                next.push((due, what));
            }
            match next.into_iter().min_by_key(|(due, _)| *due) {
                Some((due, what)) if due < end_ms => {
                    self.pass_to(due);
                    self.due.remove(&what);
                    self.happens(what);
                }
                _ => break,
            }
        }
        self.pass_to(end_ms);
    }

    /// Returns whether a move may happen by itself. If this returns false, the move happens only if the script contains it, or never in
    /// this comparison.
    fn is_wanted(&self, what: Move) -> bool {
        match what {
            Move::Write => self.clients,
            Move::HealLink | Move::UsersBack(_) | Move::Want(..) | Move::Unblock(_) => false,
            Move::Boot(n) => !self.stays_off[n],
            _ => true,
        }
    }

    fn takes_writes(&self) -> bool {
        (0..2).any(|n| reach::takes_writes(&self.world, n))
    }

    fn pass_to(&mut self, at_ms: u64) {
        if !self.takes_writes() {
            self.figures.without_writes_ms += at_ms.saturating_sub(self.now_ms);
        }
        self.now_ms = self.now_ms.max(at_ms);
    }

    fn happens(&mut self, what: Move) {
        let why = story::reasons(self.sim, &self.world, what);
        let (before, seen) = (self.world, self.as_clients_see_it(what));
        let Ok(Some(next)) = moves::apply(self.sim, &seen, what) else { return };
        let lost_to_users = if what == Move::Write { before.lost_to_users } else { next.lost_to_users };
        self.world = World { faults: u8::MAX, lost_to_users, ..next };
        match what {
            Move::PowerCut(n) | Move::Destroy(n) => self.stays_off[n] = true,
            Move::Boot(n) => {
                self.stays_off[n] = false;
                // Without Pacemaker a node that boots waits for nothing.
                self.world.nodes[n].quorum |= !self.sim.strategy.has_pacemaker();
            }
            Move::Fence(by) => self.figures.fences += u32::from(before.nodes[1 - by].on && !next.nodes[1 - by].on),
            Move::Confirm(..) => self.figures.manual += 1,
            _ => {}
        }
        self.figures.acknowledged += (self.world.acked & !before.acked & !HISTORY).count_ones();
        let writers = (0..2).filter(|n| reach::takes_writes(&self.world, *n)).count();
        self.figures.writers = self.figures.writers.max(writers);
        self.steps.push(TimelineStep { at_ms: self.now_ms, what, why, world: self.world });
        self.free_numbers();
    }

    /// Returns the state that the next client to write sees. There are clients on both sides of a partition. If two nodes lead, the
    /// clients write to each in turn.
    fn as_clients_see_it(&self, what: Move) -> World {
        let mut world = self.world;
        if what == Move::Write && (0..2).all(|n| reach::takes_writes(&world, n)) {
            world.lost_to_users[usize::from(self.figures.acknowledged & 1 == 0)] = true;
        }
        world
    }

    /// Makes numbers of writes free again, because a state has only seven. A write that both nodes hold durably needs no number. Two
    /// writes that are held by the same nodes can share a number.
    fn free_numbers(&mut self) {
        canonical::absorb_writes(self.sim, &mut self.world);
        let held = self.world.nodes.map(|node| node.data.newest(&self.sim.logs).writes);
        let is_alike = |a: u8, b: u8| held.iter().all(|held| (held >> a & 1) == (held >> b & 1));
        for a in 0..7_u8 {
            for b in a + 1..7 {
                let both = 1 << a | 1 << b;
                if self.world.acked & both == both && is_alike(a, b) && etcd::forget_write(self.sim, &mut self.world, b)
                {
                    self.weights[usize::from(a)] += self.weights[usize::from(b)];
                    self.weights[usize::from(b)] = 1;
                }
            }
        }
        for number in (0..7_u8).filter(|number| self.world.writes & (1 << number) == 0) {
            self.weights[usize::from(number)] = 1;
        }
    }

    /// Lets an operator start one node without the other one, even if writes are lost. Does nothing if a node has a leader or the
    /// strategy has no command for it.
    fn operator_looks(&mut self) {
        for (n, accept_loss) in [(0, false), (1, false), (0, true), (1, true)] {
            if etcd::leader(&self.world).is_some() || self.figures.manual > 0 {
                return;
            }
            match self.sim.strategy {
                Strategy::PlainRaft => {}
                Strategy::Tandem | Strategy::TandemPrimary => {
                    let node_is_on = self.world.nodes[1 - n].on;
                    self.happens(Move::Confirm(n, accept_loss, node_is_on));
                }
                _ if self.world.nodes[n].on => {
                    let node = &mut self.world.nodes[n];
                    (node.word, node.quorum) = (Word::Given { accept_loss: true, node_is_on: false }, true);
                    self.figures.manual += 1;
                }
                _ => {}
            }
        }
    }

    fn end(mut self) -> (Vec<TimelineStep>, Figures) {
        let leader = etcd::leader(&self.world);
        let held = |n: usize| self.world.nodes[n].data.newest(&self.sim.logs).writes;
        let kept = leader.map_or_else(|| held(0) | held(1), held);
        let lost = self.world.acked & !kept;
        let weights = (0..7).filter(|number| lost & (1 << number) != 0).map(|number: usize| self.weights[number]);
        self.figures.lost = weights.sum();
        self.figures.serves = self.takes_writes();
        self.figures.leader = leader;
        (self.steps, self.figures)
    }
}

/// The text that is printed in front of the comparison's table.
const BEFORE_THE_TABLE: &str = "\
One client writes once a second. What fails does so after 20 s, just after a write was acknowledged, and an operator comes
to look after 240 s. node1 leads at first, and is the configured primary of those that have one. The seconds are the model's
own (a boot takes 40 s, fencing 4 to 10 s): they compare, and measure nothing.
";
/// The meaning of the table's columns, which is printed after the table.
const AFTER_THE_TABLE: &str = "\
acknowledged      writes that the client was told are safe
lost              how many of these are gone at the end, also those that an operator gave up
s without writes  how long no node took any
writers           the most nodes that took writes at one time; two make two histories, and one of them is thrown away
fences            running machines that fencing switched off
manual            what an operator had to do
leads             the node that leads at the end
";
/// The text in the table in place of the shell agent's figures for a new pair of nodes.
const HAS_ITS_DATA: &str = "OpenShift's installer makes its first member";

impl Figures {
    /// Returns how a run ended, in words for the table.
    fn verdict(self) -> String {
        let said = [
            ("takes no writes", !self.serves),
            ("an operator acted", self.manual > 0),
            ("two histories", self.writers > 1),
            ("writes lost", self.lost > 0),
        ];
        let said: Vec<&str> = said.into_iter().filter(|(_, is_so)| *is_so).map(|(words, _)| words).collect();
        if said.is_empty() { "serves".to_owned() } else { said.join(", ") }
    }

    /// Returns the figures of a run as the columns of a row of Markdown.
    fn row(self) -> String {
        let Self { acknowledged, lost, without_writes_ms, writers, fences, manual, leader, serves: _ } = self;
        let (seconds, leader) = (without_writes_ms / 1_000, leader.map_or("none", |n| NAMES[n]));
        let verdict = self.verdict();
        format!("{acknowledged:>12}{lost:>6}{seconds:>18}{writers:>9}{fences:>8}{manual:>8}{leader:>7}  {verdict}")
    }
}

/// Returns the table that compares the strategies, with explanations for operators.
pub fn table() -> String {
    use std::fmt::Write;
    let mut text = format!("{BEFORE_THE_TABLE}\n");
    for (_, name, about) in ALL {
        let _ = writeln!(text, "{name:<23}{about}");
    }
    for script in scripts() {
        let _ = writeln!(
            text,
            "\n{}\n  {:<22}{:>12}{:>6}{:>18}{:>9}{:>8}{:>8}{:>7}  at the end",
            script.name, "", "acknowledged", "lost", "s without writes", "writers", "fences", "manual", "leads"
        );
        for (strategy, name, _) in ALL {
            let row = match (script.is_new, strategy) {
                (true, Strategy::ShellAgent) => format!("  {HAS_ITS_DATA}"),
                _ => play(&script, strategy).2.row(),
            };
            let _ = writeln!(text, "  {name:<22}{row}");
        }
    }
    text + "\n" + AFTER_THE_TABLE
}
