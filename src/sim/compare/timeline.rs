//! Virtual time: every move takes as long as on ordinary machines, faults come when a script says so, and the move that
//! is due first happens. That is one run of many: it measures, while the search proves.

use std::collections::HashMap;

use super::strategy::Strategy;
use crate::sim::model::pacemaker::Begin;
use crate::sim::model::timing::MOMENTS;
use crate::sim::model::world::{HISTORY, Run, Word, World};
use crate::sim::model::{etcd, initial_states};
use crate::sim::moves::{self, Move};
use crate::sim::reduce::symmetry::canonical;
use crate::sim::report::story;
use crate::sim::{Bounds, Sim};

/// A run that is to be measured.
#[derive(Clone, Debug)]
pub struct Script {
    pub name: &'static str,
    /// Milliseconds, and what happens then.
    pub events: Vec<(u64, Move)>,
    /// Whether clients write all the time; else only when an event says so.
    pub clients: bool,
}

/// One thing that happened.
#[derive(Clone, Debug)]
pub struct TimelineStep {
    pub at_ms: u64,
    pub what: Move,
    pub why: Vec<String>,
    pub world: World,
}

/// What a run came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    pub acknowledged: u32,
    pub lost: u32,
    pub without_writes_ms: u64,
    /// Most simultaneous writers.
    pub writers: usize,
    pub fences: u32,
    pub manual: u32,
    /// Whether writes are taken at the end.
    pub serves: bool,
}

/// How long a run is watched, and when an operator comes to look, in seconds.
const END_S: u64 = 300;
const OPERATOR_S: u64 = 240;
/// When things fail: 50 ms after a client began a write.
const FAULT_MS: u64 = 20_050;

/// The runs of the comparison. The first node leads, and what fails does so just after a write was acknowledged, when
/// the follower has not heard of that yet.
pub fn scripts() -> Vec<Script> {
    let script = |name, events: &[(u64, Move)]| Script { name, events: events.to_vec(), clients: true };
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
        script("the network parts", &[(FAULT_MS, Move::CutLink), (80_000, Move::HealLink)]),
        script("etcd crashes on the follower", &[(FAULT_MS, Move::KillEtcd(1))]),
    ]
}

/// How long after it became possible a move happens.
fn delay_ms(what: Move) -> u64 {
    match what {
        Move::Write | Move::CatchUp => 1_000,
        Move::Replicate => 5,
        // The follower hears of a commit with the next message; a sole voter writes it down with the next entry.
        Move::Learn | Move::Leave(_) => 100,
        Move::Persist(_) => 1_500,
        Move::Elect(n) | Move::StepDown(n) => 1_500 + 200 * index(n),
        Move::Boot(_) => 40_000,
        Move::Notice => 3_000,
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

/// A run under way.
struct Timeline<'a> {
    sim: &'a mut Sim,
    world: World,
    now_ms: u64,
    due: HashMap<Move, u64>,
    stays_off: [bool; 2],
    clients: bool,
    /// How many writes a bit stands for.
    weights: [u32; 7],
    figures: Figures,
    steps: Vec<TimelineStep>,
}

/// Plays a script under a strategy.
pub fn play(script: &Script, strategy: Strategy) -> (Sim, Vec<TimelineStep>, Figures) {
    let mut sim = Sim::new(Bounds::for_scenarios(), crate::sim::mutant::Mutant::None);
    sim.strategy = strategy;
    let world = World { faults: u8::MAX, ..initial_states::healthy(&mut sim) };
    let mut run = Timeline {
        sim: &mut sim,
        world,
        now_ms: 0,
        due: HashMap::new(),
        stays_off: [false; 2],
        clients: script.clients,
        weights: [1; 7],
        figures: Figures::default(),
        steps: Vec::new(),
    };
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

    /// What a script decides, and what these controllers do not do.
    fn is_wanted(&self, what: Move) -> bool {
        match what {
            Move::Write => self.clients,
            Move::HealLink | Move::Want(..) | Move::Unblock(_) => false,
            Move::Boot(n) => !self.stays_off[n],
            _ => true,
        }
    }

    fn pass_to(&mut self, at_ms: u64) {
        if etcd::leader(&self.world).is_none() {
            self.figures.without_writes_ms += at_ms.saturating_sub(self.now_ms);
        }
        self.now_ms = self.now_ms.max(at_ms);
    }

    fn happens(&mut self, what: Move) {
        let why = story::reasons(self.sim, &self.world, what);
        let before = self.world;
        let Ok(Some(next)) = moves::apply(self.sim, &before, what) else { return };
        self.world = World { faults: u8::MAX, ..next };
        match what {
            Move::PowerCut(n) | Move::Destroy(n) => self.stays_off[n] = true,
            Move::Boot(n) => self.stays_off[n] = false,
            Move::Fence(by) => self.figures.fences += u32::from(before.nodes[1 - by].on && !next.nodes[1 - by].on),
            Move::Confirm(..) => self.figures.manual += 1,
            _ => {}
        }
        self.figures.acknowledged += (self.world.acked & !before.acked & !HISTORY).count_ones();
        let writers = self.world.nodes.iter().filter(|node| node.etcd == Run::Leader).count();
        self.figures.writers = self.figures.writers.max(writers);
        self.steps.push(TimelineStep { at_ms: self.now_ms, what, why, world: self.world });
        self.free_numbers();
    }

    /// There are few numbers for writes: a write that both nodes hold durably needs none, and two writes that the same
    /// nodes hold share one.
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

    /// An operator finds that no node has a leader and gives up what is lost, if the strategy knows such a command.
    fn operator_looks(&mut self) {
        for (n, accept_loss) in [(0, false), (1, false), (0, true), (1, true)] {
            if etcd::leader(&self.world).is_some() || self.figures.manual > 0 {
                return;
            }
            match self.sim.strategy {
                Strategy::PlainRaft => {}
                Strategy::Tandem => {
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
        self.figures.serves = leader.is_some();
        (self.steps, self.figures)
    }
}

/// What the table is about, before it.
const BEFORE_THE_TABLE: &str = "\
One client writes once a second. What fails does so after 20 s, just after a write was acknowledged, and an operator comes
to look after 240 s. The seconds are the model's own (a boot takes 40 s, fencing 4 to 10 s): they compare, and measure nothing.
";
/// What its columns say, after it.
const AFTER_THE_TABLE: &str = "\
acknowledged      writes that the client was told are safe
lost              how many of these are gone at the end
s without writes  how long nobody took any
writers           the most nodes that took writes at one time; two make two histories, and one of them is thrown away
fences            running machines that fencing switched off
manual            what an operator had to do
";

impl Figures {
    /// How it ended, in words.
    fn verdict(self) -> String {
        let said = [
            ("takes no writes any more", !self.serves),
            ("an operator acted", self.manual > 0),
            ("two histories", self.writers > 1),
            ("writes lost", self.lost > 0),
        ];
        let said: Vec<&str> = said.into_iter().filter(|(_, is_so)| *is_so).map(|(words, _)| words).collect();
        if said.is_empty() { "serves".to_owned() } else { said.join(", ") }
    }
}

/// The table for people who must choose.
pub fn table() -> String {
    use std::fmt::Write;
    let mut text = format!("{BEFORE_THE_TABLE}\n");
    for (_, name, about) in crate::sim::compare::strategy::ALL {
        let _ = writeln!(text, "{name:<25}{about}");
    }
    for script in scripts() {
        let _ = writeln!(
            text,
            "\n{}\n  {:<24}{:>12}{:>6}{:>18}{:>9}{:>8}{:>8}  at the end",
            script.name, "", "acknowledged", "lost", "s without writes", "writers", "fences", "manual"
        );
        for (strategy, name, _) in crate::sim::compare::strategy::ALL {
            let (_, _, figures) = play(&script, strategy);
            let Figures { acknowledged, lost, without_writes_ms, writers, fences, manual, .. } = figures;
            let (seconds, verdict) = (without_writes_ms / 1_000, figures.verdict());
            let _ = writeln!(
                text,
                "  {name:<24}{acknowledged:>12}{lost:>6}{seconds:>18}{writers:>9}{fences:>8}{manual:>8}  {verdict}"
            );
        }
    }
    text + "\n" + AFTER_THE_TABLE
}
