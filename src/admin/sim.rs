//! `tandem sim`: the agent's decisions in a model of two machines.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::PathBufValueParser;
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};

use super::{Failure, Subcommand, dispatch, tree};
use crate::sim::check::{self, Limits, Outcome, Trace};
use crate::sim::mutant::{self, Mutant};
use crate::sim::{Bounds, Sim, story};

pub(super) const SUBCOMMAND: Subcommand = Subcommand { command: declare, run };

const SUBCOMMANDS: &[Subcommand] = &[Subcommand { command: declare_check, run: run_check }];

fn declare() -> Command {
    tree("sim", SUBCOMMANDS).about("Runs the agent's own decisions in a model of two machines")
}

fn run(matches: &ArgMatches) -> Result<(), Failure> {
    dispatch(matches, SUBCOMMANDS)
}

fn declare_check() -> Command {
    let number = |name: &'static str, default: &'static str, help: &'static str| {
        Arg::new(name).long(name).default_value(default).value_parser(value_parser!(u8).range(0..=7)).help(help)
    };
    let size = |name: &'static str, default: &'static str, help: &'static str| {
        Arg::new(name).long(name).default_value(default).value_parser(value_parser!(u64)).help(help)
    };
    let flag = |name: &'static str, help: &'static str| Arg::new(name).long(name).action(ArgAction::SetTrue).help(help);
    Command::new("check")
        .about("Takes every order of everything that can happen, within bounds, and looks for what must never be")
        .arg(number("faults", "2", "How many faults and operator's actions there may be"))
        .arg(number("writes", "1", "How many writes a client makes"))
        .arg(flag("no-operators", "Leaves standby, shutdown and confirmed recoveries out"))
        .arg(flag("etcd-3.4", "An etcd without a leader answers, as 3.4 does"))
        .arg(flag("blank", "Begins with two blank nodes, too"))
        .arg(flag("slow-fencing", "Lets fencing take longer than the agent's patience"))
        .arg(flag("fine", "Lets the other node's steps come between any two effects of a round, too: many more states"))
        .arg(flag("first", "Ends with the first violation"))
        .arg(size("max-states", "20000000", "How many states are too many"))
        .arg(size("max-seconds", "600", "How long is too long"))
        .arg(
            Arg::new("mutant")
                .long("mutant")
                .value_parser(mutant::ALL.map(|(name, _)| name))
                .help("Breaks a rule, to see it caught"),
        )
        .arg(
            Arg::new("save")
                .long("save")
                .value_parser(PathBufValueParser::new())
                .default_value("violation.scn")
                .help("Where the way to a violation is saved, as a scenario"),
        )
}

fn run_check(matches: &ArgMatches) -> Result<(), Failure> {
    let number = |name: &str| matches.get_one::<u8>(name).copied().unwrap_or_default();
    let size = |name: &str| matches.get_one::<u64>(name).copied().unwrap_or_default();
    let bounds = Bounds {
        faults: number("faults"),
        writes: number("writes"),
        silent_without_leader: !matches.get_flag("etcd-3.4"),
        operators: !matches.get_flag("no-operators"),
        blank: matches.get_flag("blank"),
        slow_fencing: matches.get_flag("slow-fencing"),
        fine: matches.get_flag("fine"),
    };
    let wanted = matches.get_one::<String>("mutant").map_or("", String::as_str);
    let mutant = mutant::ALL.iter().find(|(name, _)| *name == wanted).map_or(Mutant::None, |(_, mutant)| *mutant);
    let limits = Limits {
        states: usize::try_from(size("max-states")).unwrap_or(usize::MAX),
        time: Duration::from_secs(size("max-seconds")),
        stop_at_first: matches.get_flag("first"),
    };
    let mut sim = Sim::new(bounds, mutant);
    let outcome = check::check(&mut sim, limits);
    print(&outcome);
    let Some((what, trace)) = worst(&outcome) else {
        return outcome.cut_short.map_or(Ok(()), |why| Err(Failure(format!("the search is not complete: {why}"))));
    };
    println!("{what}\n{}", story::tell(&mut sim, trace).0);
    let path = matches.get_one::<PathBuf>("save").cloned().unwrap_or_default();
    let lines: String = trace.moves.iter().map(|what| what.text() + "\n").collect();
    let root = if trace.from_blank { "blank" } else { "two voters" };
    std::fs::write(&path, format!("begin with {root}\n{lines}"))?;
    Err(Failure(format!("{what}; the way to it is saved as {}", path.display())))
}

fn print(outcome: &Outcome) {
    println!(
        "{} states, {} transitions, {:.1} s: {} violations, {} dead states",
        outcome.states,
        outcome.transitions,
        outcome.elapsed.as_secs_f64(),
        outcome.violations,
        outcome.dead
    );
    if let Some(why) = &outcome.cut_short {
        println!("not complete: {why}; dead states are not counted");
    }
}

fn worst(outcome: &Outcome) -> Option<(String, &Trace)> {
    let violation = outcome.first_violation.as_ref().map(|(violation, trace)| (violation.0.clone(), trace));
    let dead = outcome.first_dead.as_ref();
    violation.or_else(|| dead.map(|trace| ("no way leads back to two voters".to_owned(), trace)))
}
