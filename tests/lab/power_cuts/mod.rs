//! Power cuts at random moments under sixteen writers. Every acknowledged write must exist afterwards if one voter's
//! disk survived. Each run is drawn from a seed that it prints.

mod draw;
mod ending;
mod newest;
mod run;
mod slow;
mod summary;
mod swap;
mod unclean;

use std::path::Path;
use std::time::Instant;

use crate::cluster::lone_boot;
use crate::cluster::teardown;
use crate::cluster::up::{self, Wish};
use crate::host;
use crate::host::state::{self, Lab};
use crate::interrupt;
use crate::judge::decisions;
use crate::judge::journals;
use crate::judge::results::{self, Row};
use crate::programs::shell_agent::Agent;
use crate::sh::Result;
use draw::Draw;
pub use draw::{Kind, draws_every_swap};
pub use newest::tells_logs_apart;
use summary::Summary;

/// The options of `cargo lab power-cuts`, a series of runs.
#[derive(Clone, Copy, Debug)]
pub struct Series {
    pub runs: u64,
    /// The seed of the first run. Each later run takes the next number. `None` takes the seed from the clock.
    pub seed: Option<u64>,
    /// The only kind of runs in the series. `None` draws the kind of each run.
    pub kind: Option<Kind>,
    /// True if a node that boots without its peer may serve (`lone_boot=sole_voter`).
    pub lone_boot: bool,
}

/// The result of a run that came to its end.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    pub acknowledged: usize,
    pub lost: usize,
    /// The number of writes that an operator gave up by name.
    pub given_up: usize,
    /// The longest time without an acknowledged write.
    pub gap: std::time::Duration,
    /// The fault of the run. `None` if the run is good.
    pub wrong: Option<String>,
    /// The final state after a run in which a data dir was swapped. `None` for other runs.
    pub ending: Option<Ending>,
}

/// The final state of a run: whether both members vote, and the state of each node as text.
#[derive(Clone, Debug)]
pub struct Ending {
    pub both_vote: bool,
    pub words: String,
}

impl Outcome {
    fn leaves_two_voters(&self) -> bool {
        self.wrong.is_none() && self.ending.as_ref().is_none_or(|ending| ending.both_vote)
    }
}

/// Runs the series. It continues after a failed run, and fails at the end if there was one.
pub fn run(lab: &Lab, wish: Wish, series: Series, results: Option<&Path>) -> Result<()> {
    if wish.hosts == host::Kind::Vm {
        series.kind.map_or(Ok(()), Kind::check_for_vms)?;
    }
    if series.lone_boot && wish.agent != Agent::Tandem {
        return Err("--lone-boot is for Tandem's agent: leave --agent out".into());
    }
    teardown::make_room(lab)?;
    let first = series.seed.unwrap_or_else(|| state::since_epoch().as_secs());
    let (last, etcd, agent) = (first + series.runs - 1, wish.etcd.number(), wish.agent.word());
    println!("{} power cuts, seeds {first} to {last}, etcd {etcd}, {agent} agent", series.runs);
    let _guard = teardown::AtEnd(lab);
    let mut summary = Summary::default();
    for number in 0..series.runs {
        let draw = match wish.hosts {
            host::Kind::Namespaces => Draw::new(first + number, series.kind, wish.agent == Agent::Tandem),
            host::Kind::Vm => Draw::for_vms(first + number, series.kind),
        };
        println!("run {:>3}  seed {}  {}: {}", number + 1, draw.seed, draw.kind.name(), draw.words());
        let began = Instant::now();
        let outcome = one(lab, wish, series.lone_boot, &draw);
        interrupt::check()?;
        let outcome = outcome.unwrap_or_else(|error| Outcome { wrong: Some(error.to_string()), ..Outcome::default() });
        println!("         {} ({:.0} s)", summary::line(&outcome), began.elapsed().as_secs_f64());
        if outcome.wrong.is_some() && lab.exists() {
            let kept = teardown::keep_logs(lab, &format!("power-cut-{}", draw.seed));
            println!("         logs: {}", kept.display());
        }
        if !outcome.leaves_two_voters() && lab.exists() {
            // So no later run begins with two different stores, or with a node that refuses.
            teardown::down(lab);
        }
        summary.add(&draw, outcome);
    }
    let left = if lab.exists() { teardown::down(lab) } else { Vec::new() };
    summary.print();
    if let Some(path) = results {
        let kind = series.kind.map(|kind| format!(" --kind {}", kind.name())).unwrap_or_default();
        let lone_boot = if series.lone_boot { " --lone-boot" } else { "" };
        let row = Row {
            run: format!("power-cuts --runs {} --seed {first}{kind}{lone_boot}", series.runs),
            hosts: results::hosts(wish),
            day: results::today(),
            result: summary.result(),
            figures: summary.figures(),
        };
        results::keep(path, vec![row])?;
    }
    if !left.is_empty() {
        return Err(format!("teardown left behind: {}", left.join(", ")).into());
    }
    summary.verdict()
}

fn one(lab: &Lab, wish: Wish, is_lone_boot_allowed: bool, draw: &Draw) -> Result<Outcome> {
    if !lab.exists() {
        up::up(lab, wish)?;
        if is_lone_boot_allowed {
            lone_boot::allow(lab)?;
        }
    }
    lab.event(&format!("seed {}: {}", draw.seed, draw.words()));
    lab.set("boot-delay", &draw.boot_delay.to_string())?;
    let began = state::since_epoch();
    let mut outcome = run::run(lab, draw)?;
    if outcome.wrong.is_none() {
        outcome.wrong =
            journals::must_hold_no_error(lab, began, draw.blow.errors()).err().map(|error| error.to_string());
    }
    if outcome.wrong.is_none() {
        outcome.wrong = match decisions::replay(lab, &format!("power-cut-{}", draw.seed)) {
            Ok(0) if wish.agent == Agent::Tandem => Some("no decision was recorded".to_owned()),
            Ok(_) => None,
            Err(error) => Some(error.to_string()),
        };
    }
    Ok(outcome)
}
