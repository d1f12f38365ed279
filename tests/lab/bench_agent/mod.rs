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

/// A blow, which the bench strikes in the order of the table.
type Blow = fn(&Lab, u32, &mut Sheet) -> Result<()>;

const BLOWS: &[(&str, Blow)] = &[
    ("power-cut", blows::power_cut),
    ("node-hung", blows::node_hung),
    ("etcd-killed", blows::etcd_killed),
    ("graceful-stop", blows::graceful_stop),
    ("image", image::changed),
    ("both-cut", blows::both_cut),
];
/// The number of measured `monitor` calls.
const MONITORS: usize = 9;
/// The time that the shell agent needs after a promotion to read its member id in a monitor, which runs every 30 s. A
/// stop before that removes a member that no longer exists. That fault is known, and the bench does not measure it.
const SHELL_SETTLES: Duration = Duration::from_secs(40);

/// The agent that the bench measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contestant {
    Shell,
    /// Tandem with `recovery=restart`. It differs from `VoteProxy` only in a power cut.
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

    /// Returns whether this contestant can differ from the others under this blow.
    fn is_struck_by(self, blow: &str) -> bool {
        self != Self::Restart || blow == "power-cut"
    }
}

/// The options of a run of the bench.
#[derive(Clone, Debug)]
pub struct Bench {
    pub contestants: Vec<Contestant>,
    /// The size of the database at the beginning.
    pub megabytes: u32,
    /// The number of runs of each blow.
    pub runs: u32,
    /// The only blow to strike, if one is given.
    pub only: Option<String>,
    /// True if Tandem's fence devices race, and have no delay. The shell agent's devices keep their delays.
    pub race: bool,
}

impl Bench {
    /// Returns the target for the outage after the loss of a node, in seconds.
    fn loss_target(&self, token: Option<u32>) -> f64 {
        match (self.race, token) {
            (true, Some(..=1000)) => 4.0,
            (true, _) => 8.0,
            (false, _) => table::LOSS_TO_WRITE_S,
        }
    }
}

/// Measures the requested agents, one after the other.
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

/// Returns the number of processes that wait for a processor, as a mean of the last minute.
fn load() -> f64 {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().and_then(|first| first.parse().ok()).unwrap_or(f64::NAN)
}
