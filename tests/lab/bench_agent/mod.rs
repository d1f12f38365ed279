//! The bench compares Tandem with the shell agent: same lab, fence devices and time-outs, one agent after the other. It
//! prints the median of each figure.

mod blows;
mod cost;
mod image;
mod table;

use std::time::{Duration, Instant};

use crate::cluster;
use crate::cluster::teardown;
use crate::cluster::up::{self, Wish};
use crate::host::state::Lab;
use crate::interrupt;
use crate::load::writer;
use crate::programs::shell_agent::Agent;
use crate::sh::Result;
use table::{Figure, Sheet};

/// A function that causes one kind of failure, and adds what it measures to the [`Sheet`]. The `u32` is the number of
/// the run.
type Blow = fn(&Lab, u32, &mut Sheet) -> Result<()>;

const BLOWS: &[(&str, Blow)] = &[
    ("power-cut", blows::power_cut),
    ("node-hung", blows::node_hung),
    ("etcd-killed", blows::etcd_killed),
    ("graceful-stop", blows::graceful_stop),
    ("image", image::changed),
    ("both-cut", blows::both_cut),
];
/// The number of `monitor` calls that the bench measures for each agent.
const MONITORS: usize = 9;
/// The time that the bench waits after a promotion under the shell agent. The shell agent's `monitor`, which runs
/// every 30 s, must first read the new member id. If a stop came before that, the shell agent would remove a member
/// that no longer exists. The bench does not measure this known fault.
const SHELL_SETTLES: Duration = Duration::from_secs(40);

/// The agent that the bench measures, and the recovery that it uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contestant {
    Shell,
    /// Tandem with `recovery=restart`. It differs from [`Contestant::VoteProxy`] only after a power cut.
    Restart,
    VoteProxy,
}

impl Contestant {
    pub const ALL: [Self; 3] = [Self::Shell, Self::Restart, Self::VoteProxy];

    pub fn parse(text: &str) -> Result<Self> {
        let found = Self::ALL.into_iter().find(|one| one.word() == text);
        found.ok_or_else(|| format!("nobody is called '{text}'; type --agent shell, restart or standin").into())
    }

    fn word(self) -> &'static str {
        match self {
            Self::Shell => "shell",
            Self::Restart => "restart",
            Self::VoteProxy => "standin",
        }
    }

    fn agent(self) -> Agent {
        if self == Self::Shell { Agent::Shell } else { Agent::Tandem }
    }

    /// Returns whether the bench measures this agent under the failure `blow`. [`Contestant::Restart`] differs from
    /// [`Contestant::VoteProxy`] only in a power cut.
    fn is_struck_by(self, blow: &str) -> bool {
        self != Self::Restart || blow == "power-cut"
    }
}

/// The options of `cargo lab bench-agent`.
#[derive(Clone, Debug)]
pub struct Bench {
    pub contestants: Vec<Contestant>,
    /// The megabytes that the database holds at the beginning.
    pub megabytes: u32,
    /// The number of runs for each kind of failure.
    pub runs: u32,
    /// The name of the only kind of failure to measure. `None` measures all.
    pub only: Option<String>,
    /// True if Tandem's fence devices race, and have no delay. The shell agent's devices keep their delays.
    pub race: bool,
}

impl Bench {
    /// Returns the target for the outage after the loss of a node, in seconds. `token` is Corosync's token time-out
    /// in milliseconds if it is not the default.
    fn loss_target(&self, token: Option<u32>) -> f64 {
        match (self.race, token) {
            (true, Some(..=1000)) => 4.0,
            (true, _) => 8.0,
            (false, _) => table::LOSS_TO_WRITE_S,
        }
    }
}

/// Measures the agents of `bench` one after the other, and prints their figures.
pub fn run(lab: &Lab, wish: Wish, bench: &Bench) -> Result<()> {
    let blows: Vec<_> = BLOWS.iter().filter(|(name, _)| bench.only.as_ref().is_none_or(|only| only == name)).collect();
    if blows.is_empty() {
        let names: Vec<&str> = BLOWS.iter().map(|(name, _)| *name).collect();
        return Err(format!("there is no such blow; type --only with one of {}", names.join(", ")).into());
    }
    teardown::make_room(lab)?;
    let _guard = teardown::AtEnd(lab);
    let mut sheets = Vec::new();
    for contestant in &bench.contestants {
        let blows: Vec<_> = blows.iter().copied().filter(|(name, _)| contestant.is_struck_by(name)).collect();
        let wish = Wish { agent: contestant.agent(), restarts: *contestant == Contestant::Restart, ..wish };
        sheets.push(measure(lab, wish, *contestant, &blows, bench)?);
    }
    table::print(&sheets);
    println!("  no, never: not within {} s of the crash", blows::CRASH_LIMIT.as_secs());
    let missed = sheets.iter().filter(|sheet| sheet.of == Contestant::VoteProxy).map(Sheet::missed).sum::<usize>();
    if missed == 0 { Ok(()) } else { Err(format!("{missed} targets are missed").into()) }
}

fn measure(lab: &Lab, wish: Wish, contestant: Contestant, blows: &[&(&str, Blow)], bench: &Bench) -> Result<Sheet> {
    let mut sheet = Sheet::new(contestant, bench.loss_target(wish.token));
    let races = bench.race && wish.agent == Agent::Tandem;
    let up = || {
        up::up(lab, wish)?;
        if races {
            cluster::set_race(lab, true)?;
        }
        writer::fill(lab, bench.megabytes)
    };
    up()?;
    cost::measure(lab, MONITORS, &mut sheet)?;
    for (name, blow) in blows {
        for run in 0..bench.runs {
            if !lab.exists() {
                up()?;
            }
            if wish.agent == Agent::Shell && ["graceful-stop", "image"].contains(name) {
                std::thread::sleep(SHELL_SETTLES);
            }
            let began = Instant::now();
            let done = blow(lab, run, &mut sheet);
            interrupt::check()?;
            let (seconds, agent) = (began.elapsed().as_secs_f64(), contestant.word());
            sheet.add(Figure::Load, load());
            match done {
                Ok(()) => {
                    println!("{agent}: {name}, run {}: {} ({seconds:.0} s)", run + 1, sheet.newest());
                }
                Err(error) => {
                    println!("{agent}: {name}, run {}: {}; FAILED: {error}", run + 1, sheet.newest());
                    println!("   logs: {}", teardown::keep_logs(lab, "bench-agent").display());
                    sheet.add(Figure::Failed, 1.0);
                    teardown::down(lab);
                }
            }
        }
    }
    teardown::down(lab);
    Ok(sheet)
}

/// Returns the machine's load: the mean number of processes that waited for a processor in the last minute.
fn load() -> f64 {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().and_then(|first| first.parse().ok()).unwrap_or(f64::NAN)
}
