//! `tandem sim`: the agent's decisions in a model of two machines.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::PathBufValueParser;
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};

use super::{Failure, Subcommand, dispatch, say, tree};
use crate::sim::check::{self, Outcome};
use crate::sim::mutant::{self, Mutant};
use crate::sim::scenario::Trace;
use crate::sim::search::Limits;
use crate::sim::{Bounds, Sim, explore, page, scenario, story, timeline};

pub(super) const SUBCOMMAND: Subcommand = Subcommand { command: declare, run };

const SUBCOMMANDS: &[Subcommand] = &[
    Subcommand { command: declare_check, run: run_check },
    Subcommand { command: declare_run, run: run_scenario },
    Subcommand { command: declare_explore, run: run_explore },
    Subcommand { command: declare_compare, run: run_compare },
];

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
        .arg(flag("disks", "Lets a power cut take the machine's disk with it"))
        .arg(flag("unblock", "Lets an operator unblock the quorum of a node that boots alone"))
        .arg(flag("slow-fencing", "Lets fencing take longer than the agent's patience"))
        .arg(flag("fine", "Lets the other node's steps come between any two effects of a round, too: many more states"))
        .arg(flag("no-stacks", "Leaves out that Pacemaker ends while etcd runs on, and comes back in the same boot"))
        .arg(flag("launches", "Lets a start of etcd outlive its agent"))
        .arg(flag("damage", "Lets a power cut leave data that looks whole and that no etcd starts from"))
        .arg(flag("acks-before-sync", "A sole voter acknowledges before it syncs, as etcd did before 3.5.5 and 3.4.21"))
        .arg(number("threshold", "0", "After how many failed starts Pacemaker starts no more (3 at most); 0 is never"))
        .arg(flag("keep-dead", "Disables dead-variable reduction: more states, the same verdict"))
        .arg(flag(
            "count-forks",
            "Counts forced new clusters instead of ranking them: more states, and none may be announced in vain again",
        ))
        .arg(flag("promotable", "Runs a promotable clone, whose instances Pacemaker promotes and demotes"))
        .arg(flag("choose", "Begins with two histories, too, and lets an operator choose (etcd_primary)"))
        .arg(flag("tell", "Lets an operator or a program say whose data counts (force_new_cluster)"))
        .arg(flag(
            "hide",
            "Lets a look of an agent not find something out: the CIB, its note, its data, its container, an etcd",
        ))
        .arg(flag("first", "Ends with the first violation"))
        .arg(size("threads", "2", "How many threads search; what they find does not depend on it"))
        .arg(size("max-states", "100000000", "How many states are too many"))
        .arg(size("max-seconds", "600", "How long is too long"))
        .arg(mutant_argument())
        .arg(save_argument())
}

fn declare_run() -> Command {
    Command::new("run")
        .about("Replays a scenario, and checks every invariant after every line")
        .arg(Arg::new("SCENARIO").required(true).value_parser(PathBufValueParser::new()))
        .arg(mutant_argument())
        .arg(
            Arg::new("html")
                .long("html")
                .value_parser(PathBufValueParser::new())
                .help("Writes the run as a page: both nodes side by side, with the reason of every decision"),
        )
}

fn run_scenario(matches: &ArgMatches) -> Result<(), Failure> {
    let path = matches.get_one::<PathBuf>("SCENARIO").cloned().unwrap_or_default();
    let text = std::fs::read_to_string(&path).map_err(|error| Failure(format!("{}: {error}", path.display())))?;
    let trace = scenario::parse(&text).map_err(|error| Failure(format!("{}, {error}", path.display())))?;
    let mut sim = Sim::new(Bounds::for_scenarios(), mutant(matches));
    let (story, result) = story::tell(&mut sim, &trace);
    say(story.trim_end())?;
    if let Some(to) = matches.get_one::<PathBuf>("html") {
        let title = path.file_stem().map_or_else(String::new, |name| name.to_string_lossy().replace('-', " "));
        std::fs::write(to, page::page(&mut sim, &title, &trace))?;
    }
    result.map_err(|violation| Failure(violation.0))
}

fn declare_explore() -> Command {
    let number = |name: &'static str, default: &'static str, help: &'static str| {
        Arg::new(name).long(name).default_value(default).value_parser(value_parser!(u64)).help(help)
    };
    Command::new("explore")
        .about("Makes seeded random runs; what breaks an invariant is shrunk and saved as a scenario")
        .arg(number("seed", "1", "Equal seeds make equal runs"))
        .arg(number("steps", "100000", "How many moves"))
        .arg(mutant_argument())
        .arg(save_argument())
}

fn run_explore(matches: &ArgMatches) -> Result<(), Failure> {
    let number = |name: &str| matches.get_one::<u64>(name).copied().unwrap_or_default();
    let mut sim = Sim::new(Bounds::for_scenarios(), mutant(matches));
    match explore::explore(&mut sim, number("seed"), number("steps")) {
        Ok(steps) => say(format_args!("{steps} moves, no violation")),
        Err((violation, trace)) => {
            say(story::tell(&mut sim, &trace).0)?;
            Err(saved(matches, &violation.0, &trace)?)
        }
    }
}

fn declare_compare() -> Command {
    Command::new("compare")
        .about("Plays the same faults under other ways to run two members, and prints what each costs")
}

fn run_compare(_: &ArgMatches) -> Result<(), Failure> {
    say(timeline::table().trim_end())
}

fn save_argument() -> Arg {
    Arg::new("save")
        .long("save")
        .value_parser(PathBufValueParser::new())
        .default_value("violation.scn")
        .help("Where the way to a violation is saved, as a scenario")
}

fn saved(matches: &ArgMatches, what: &str, trace: &Trace) -> Result<Failure, Failure> {
    let path = matches.get_one::<PathBuf>("save").cloned().unwrap_or_default();
    std::fs::write(&path, scenario::format(trace))?;
    Ok(Failure(format!("{what}; the way to it is saved as {}", path.display())))
}

fn mutant_argument() -> Arg {
    Arg::new("mutant")
        .long("mutant")
        .value_parser(mutant::ALL.map(|(name, _)| name))
        .help("Breaks a rule, to see it caught")
}

fn mutant(matches: &ArgMatches) -> Mutant {
    let wanted = matches.get_one::<String>("mutant").map_or("", String::as_str);
    mutant::ALL.iter().find(|(name, _)| *name == wanted).map_or(Mutant::None, |(_, mutant)| *mutant)
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
        disks: matches.get_flag("disks"),
        unblocks: matches.get_flag("unblock"),
        slow_fencing: matches.get_flag("slow-fencing"),
        fine: matches.get_flag("fine"),
        stacks: !matches.get_flag("no-stacks"),
        launches: matches.get_flag("launches"),
        damage: matches.get_flag("damage"),
        acks_before_sync: matches.get_flag("acks-before-sync"),
        threshold: number("threshold").min(3),
        keeps_dead: matches.get_flag("keep-dead"),
        counts_forks: matches.get_flag("count-forks"),
        promotable: matches.get_flag("promotable"),
        chooses: matches.get_flag("choose"),
        tells: matches.get_flag("tell"),
        hides: matches.get_flag("hide"),
    };
    let limits = Limits {
        states: usize::try_from(size("max-states")).unwrap_or(usize::MAX),
        time: Duration::from_secs(size("max-seconds")),
        stop_at_first: matches.get_flag("first"),
        threads: usize::try_from(size("threads")).unwrap_or(1),
    };
    let mut sim = Sim::new(bounds, mutant(matches));
    let outcome = check::check(&mut sim, limits);
    print(&outcome)?;
    let Some((what, trace)) = worst(&outcome) else {
        return outcome.cut_short.map_or(Ok(()), |why| Err(Failure(format!("the search is not complete: {why}"))));
    };
    say(format_args!("{what}\n{}", story::tell(&mut sim, trace).0))?;
    Err(saved(matches, &what, trace)?)
}

fn print(outcome: &Outcome) -> Result<(), Failure> {
    say(format_args!(
        "{} states, {} transitions, {:.1} s: {} violations, {} dead states",
        outcome.states,
        outcome.transitions,
        outcome.elapsed.as_secs_f64(),
        outcome.violations,
        outcome.dead
    ))?;
    match &outcome.cut_short {
        Some(why) => say(format_args!("not complete: {why}; dead states are not counted")),
        None => Ok(()),
    }
}

fn worst(outcome: &Outcome) -> Option<(String, &Trace)> {
    let violation = outcome.first_violation.as_ref().map(|(violation, trace)| (violation.0.clone(), trace));
    let dead = outcome.first_dead.as_ref();
    violation.or_else(|| dead.map(|trace| ("no way leads back to two voters".to_owned(), trace)))
}
