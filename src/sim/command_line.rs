//! The subcommands of `tandem-sim`: their arguments, and what each prints.

mod fence_race;

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand, value_parser};

use super::check::{self, Outcome};
use super::mutant::{self, Mutant};
use super::scenario::Trace;
use super::search::Limits;
use super::world::NAMES;
use super::{Bounds, Sim, explore, fencing, members, page, scenario, story, timeline};
use crate::os::output;

/// The reason why a subcommand failed, as a sentence.
#[derive(Debug)]
pub(super) struct Failure(pub(super) String);

impl<E: std::error::Error> From<E> for Failure {
    fn from(error: E) -> Self {
        Self(error.to_string())
    }
}

/// Prints the result of a subcommand.
fn say(lines: impl Display) -> Result<(), Failure> {
    Ok(output::say(lines)?)
}

#[derive(Subcommand)]
pub(super) enum Command {
    Check(Check),
    Run(Run),
    Explore(Explore),
    /// Runs the same faults under other ways to run two members, and prints what each way costs
    Compare,
    Members(Members),
    Fencing(Fencing),
    Race(fence_race::Race),
}

impl Command {
    pub(super) fn run(&self) -> Result<(), Failure> {
        match self {
            Self::Check(arguments) => run_check(arguments),
            Self::Run(arguments) => run_scenario(arguments),
            Self::Explore(arguments) => run_explore(arguments),
            Self::Compare => say(timeline::table().trim_end()),
            Self::Members(arguments) => check_members(arguments),
            Self::Fencing(arguments) => run_fencing(arguments),
            Self::Race(arguments) => fence_race::check(arguments),
        }
    }
}

/// The rule to break.
#[derive(Args)]
struct MutantArgument {
    /// Breaks this rule, to show that the model finds the violation
    #[arg(long, value_parser = mutants())]
    mutant: Option<Mutant>,
}

impl MutantArgument {
    fn get(&self) -> Mutant {
        self.mutant.unwrap_or(Mutant::None)
    }
}

fn mutants() -> impl TypedValueParser<Value = Mutant> {
    let find = |wanted: String| mutant::ALL.iter().find(|(name, _)| *name == wanted).map(|(_, mutant)| *mutant);
    PossibleValuesParser::new(mutant::ALL.map(|(name, _)| name)).map(move |name| find(name).unwrap_or(Mutant::None))
}

/// Where the way to a violation goes.
#[derive(Args)]
struct SaveArgument {
    /// File to save the way to a violation in, as a scenario
    #[arg(long, default_value = "violation.scn")]
    save: PathBuf,
}

impl SaveArgument {
    /// Saves `trace`, which leads to the violation `what`, as a scenario. Returns a failure that names the scenario's file.
    fn save(&self, what: &str, trace: &Trace) -> Result<Failure, Failure> {
        std::fs::write(&self.save, scenario::format(trace))?;
        Ok(Failure(format!("{what}; the way to it is saved as {}", self.save.display())))
    }
}

/// Searches every order of all moves within the bounds for a violation of an invariant
#[derive(Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option that is typed or not")]
pub(super) struct Check {
    /// Most faults and operator's actions in one run
    #[arg(long, default_value = "2", value_parser = value_parser!(u8).range(0..=7))]
    faults: u8,
    /// Most writes of a client at the same time
    #[arg(long, default_value = "1", value_parser = value_parser!(u8).range(0..=7))]
    writes: u8,
    /// Leaves out standby, shutdown and confirmed recoveries
    #[arg(long)]
    no_operators: bool,
    /// Lets an etcd without a leader answer, as etcd 3.4 does
    #[arg(long = "etcd-3.4")]
    etcd_3_4: bool,
    /// Also begins with two nodes without data
    #[arg(long)]
    blank: bool,
    /// Lets a power cut destroy the machine's disk
    #[arg(long)]
    disks: bool,
    /// Lets an operator unblock the quorum of a node that boots alone
    #[arg(long)]
    unblock: bool,
    #[arg(long, help = "Lets fencing take longer than the agent's patience")]
    slow_fencing: bool,
    /// Lets the other node's moves come between any two effects of an action: many more states
    #[arg(long)]
    fine: bool,
    /// Leaves out that Pacemaker ends while etcd continues, and comes back in the same boot
    #[arg(long)]
    no_stacks: bool,
    /// Lets a start of etcd outlive the agent that began it
    #[arg(long)]
    launches: bool,
    /// Lets a power cut leave data that seems whole, but from which etcd does not start
    #[arg(long)]
    damage: bool,
    /// Lets a sole voter acknowledge a write before it syncs it, as etcd did before 3.5.5 and 3.4.21
    #[arg(long)]
    acks_before_sync: bool,
    /// Number of failed starts after which Pacemaker starts no more, at most 3; 0 is never
    #[arg(long, default_value = "0", value_parser = value_parser!(u8).range(0..=7))]
    threshold: u8,
    /// Keeps variables that no later decision reads: more states, the same verdict
    #[arg(long)]
    keep_dead: bool,
    /// Counts forced new clusters instead of ranking them: more states, and asserts that faults bound their number
    #[arg(long)]
    count_forks: bool,
    /// Runs a promotable clone: Pacemaker promotes and demotes its instances
    #[arg(long)]
    promotable: bool,
    #[arg(long, help = "Also begins with two histories, and lets an operator choose one (etcd_primary)")]
    choose: bool,
    #[arg(long, help = "Lets an operator or a program set force_new_cluster")]
    tell: bool,
    #[arg(long, help = "Lets an operator remove a lost node from Pacemaker (pcs cluster node remove)")]
    forget: bool,
    #[arg(long, help = "Lets another controller, or an operator with etcdctl, promote the learner")]
    others_promote: bool,
    #[arg(long, help = "Lets an operator with etcdctl remove the follower")]
    others_remove: bool,
    #[arg(
        id = "guest",
        long = "guest",
        help = "Begins with a third voter outside of the pair (etcd_guest), which may be lost"
    )]
    #[arg(conflicts_with_all = ["blank", "disks", "damage", "choose"])]
    third_voter: bool,
    /// Lets an observation fail to read the CIB, the durable note, the data, the container or an etcd; and lets Pacemaker erase a
    /// node's published state
    #[arg(long)]
    hide: bool,
    /// Puts disks back to an earlier state, copies one node's disk over the other's, and keeps positions in the log
    #[arg(long, conflicts_with_all = ["guest", "blank", "damage", "choose"])]
    put_back: bool,
    /// Number of terms that leaders begin after the first one, at most 6; with 0, positions have no terms
    #[arg(long, default_value = "0", value_parser = value_parser!(u8).range(0..=6), requires = "put_back")]
    terms: u8,
    /// Lets the disk with a node's data be missing after a power cut, and be mounted later
    #[arg(long, conflicts_with = "damage")]
    not_mounted: bool,
    #[arg(long, help = "Restarts etcd in each recovery (recovery=restart)")]
    restart: bool,
    /// Node that is to lead (`configured_primary`)
    #[arg(long, value_parser = PossibleValuesParser::new(NAMES), conflicts_with = "guest")]
    primary: Option<String>,
    #[arg(long, requires = "primary", help = "Lets the network fail between the two etcds only")]
    part_etcd: bool,
    #[arg(
        long,
        requires = "primary",
        help = "Keeps the primary's history of two (two_histories=primary), and lets the nodes' parameters differ"
    )]
    two_histories: bool,
    #[arg(
        long,
        conflicts_with = "guest",
        help = "Lets a sole voter boot without its peer, if the peer's BMC reports Off (lone_boot)"
    )]
    lone_boot: bool,
    #[arg(long, help = "Ends with the first violation")]
    first: bool,
    /// Number of threads; the result does not depend on it
    #[arg(long, default_value = "2")]
    threads: usize,
    /// Number of states at which the search ends, incomplete
    #[arg(long, default_value = "100000000")]
    max_states: usize,
    /// Time in seconds after which the search ends, incomplete
    #[arg(long, default_value = "600")]
    max_seconds: u64,
    #[command(flatten)]
    mutant: MutantArgument,
    #[command(flatten)]
    save: SaveArgument,
}

impl Check {
    fn bounds(&self) -> Bounds {
        Bounds {
            faults: self.faults,
            writes: self.writes,
            silent_without_leader: !self.etcd_3_4,
            operators: !self.no_operators,
            blank: self.blank,
            disks: self.disks,
            unblocks: self.unblock,
            slow_fencing: self.slow_fencing,
            fine: self.fine,
            stacks: !self.no_stacks,
            launches: self.launches,
            damage: self.damage,
            unmounts: self.not_mounted,
            acks_before_sync: self.acks_before_sync,
            threshold: self.threshold.min(3),
            keeps_dead: self.keep_dead,
            counts_forks: self.count_forks || self.put_back,
            puts_back: self.put_back,
            terms: self.terms,
            promotable: self.promotable,
            chooses: self.choose,
            tells: self.tell,
            forgets: self.forget,
            others_promote: self.others_promote,
            others_remove: self.others_remove,
            vote_proxies: !self.restart,
            third_voter: self.third_voter,
            hides: self.hide,
            cuts_users: self.primary.is_some(),
            parts_etcd: self.part_etcd,
            primary: self.primary.as_ref().map(|name| u8::from(name == NAMES[1])),
            two_histories: self.two_histories,
            lone_boot: self.lone_boot,
        }
    }

    fn limits(&self) -> Limits {
        Limits {
            states: self.max_states,
            time: Duration::from_secs(self.max_seconds),
            stop_at_first: self.first,
            threads: self.threads,
        }
    }
}

fn run_check(arguments: &Check) -> Result<(), Failure> {
    let mut sim = Sim::new(arguments.bounds(), arguments.mutant.get());
    let outcome = check::check(&mut sim, arguments.limits());
    print(&outcome)?;
    let Some((what, trace)) = worst(&outcome) else {
        return outcome.cut_short.map_or(Ok(()), |why| Err(Failure(format!("the search is not complete: {why}"))));
    };
    say(format_args!("{what}\n{}", story::tell(&mut sim, trace).0))?;
    Err(arguments.save.save(&what, trace)?)
}

/// Replays a scenario, and checks every invariant after every line
#[derive(Args)]
pub(super) struct Run {
    /// File of moves, such as one of tests/model/scenarios
    #[arg(value_name = "SCENARIO")]
    scenario: PathBuf,
    #[command(flatten)]
    mutant: MutantArgument,
    /// Writes the run to this file as a page in HTML: both nodes side by side, with the reason of every decision
    #[arg(long)]
    html: Option<PathBuf>,
}

fn run_scenario(arguments: &Run) -> Result<(), Failure> {
    let path: &Path = &arguments.scenario;
    let text = std::fs::read_to_string(path).map_err(|error| Failure(format!("{}: {error}", path.display())))?;
    let trace = scenario::parse(&text).map_err(|error| Failure(format!("{}, {error}", path.display())))?;
    let mut sim = Sim::new(Bounds::for_scenarios(), arguments.mutant.get());
    let (story, result) = story::tell(&mut sim, &trace);
    say(story.trim_end())?;
    if let Some(to) = &arguments.html {
        let title = path.file_stem().map_or_else(String::new, |name| name.to_string_lossy().replace('-', " "));
        std::fs::write(to, page::page(&mut sim, &title, &trace))?;
    }
    result.map_err(|violation| Failure(violation.0))
}

/// Makes random runs from a seed; shrinks a run that violates an invariant, and saves it as a scenario
#[derive(Args)]
pub(super) struct Explore {
    /// Seed of the random numbers; equal seeds make equal runs
    #[arg(long, default_value = "1")]
    seed: u64,
    /// Number of moves in all
    #[arg(long, default_value = "100000")]
    steps: u64,
    #[command(flatten)]
    mutant: MutantArgument,
    #[command(flatten)]
    save: SaveArgument,
}

fn run_explore(arguments: &Explore) -> Result<(), Failure> {
    let mut sim = Sim::new(
        Bounds { cuts_users: false, parts_etcd: false, others_remove: false, ..Bounds::for_scenarios() },
        arguments.mutant.get(),
    );
    match explore::explore(&mut sim, arguments.seed, arguments.steps) {
        Ok(steps) => say(format_args!("{steps} moves, no violation")),
        Err((violation, trace)) => {
            say(story::tell(&mut sim, &trace).0)?;
            Err(arguments.save.save(&violation.0, &trace)?)
        }
    }
}

/// Searches every order of two tools that change the members of an etcd, with faults of members and kills of tools
#[derive(Args)]
pub(super) struct Members {
    /// Most voters of the cluster
    #[arg(long, default_value = "5", value_parser = value_parser!(u8).range(1..=5))]
    voters: u8,
    /// Most faults of members in one run
    #[arg(long, default_value = "2", value_parser = value_parser!(u8).range(0..=3))]
    faults: u8,
    /// Breaks this rule, to show that the model finds the violation
    #[arg(long, value_parser = broken_rules())]
    mutant: Option<members::mutant::Mutant>,
}

fn broken_rules() -> impl TypedValueParser<Value = members::mutant::Mutant> {
    use members::mutant::{ALL, Mutant};
    let find = |wanted: String| ALL.iter().find(|(name, _)| *name == wanted).map(|(_, mutant)| *mutant);
    PossibleValuesParser::new(ALL.map(|(name, _)| name)).map(move |name| find(name).unwrap_or(Mutant::None))
}

fn check_members(arguments: &Members) -> Result<(), Failure> {
    let found = members::check(1..=arguments.voters, arguments.faults, arguments.mutant.unwrap_or_default());
    let (states, transitions, seconds) = (found.states, found.transitions, found.elapsed.as_secs_f64());
    say(format_args!("{states} states, {transitions} transitions, {seconds:.1} s"))?;
    let Some(fault) = found.fault().map(str::to_owned) else { return Ok(()) };
    let way = found.wrong.map(|(_, way)| way).or(found.endless).unwrap_or_default();
    say(way.join("\n"))?;
    Err(Failure(fault))
}

/// Runs a network of fencing agents in simulated time, with faults, and searches for a violation of an invariant
#[derive(Args)]
pub(super) struct Fencing {
    /// Number of members in the list
    #[arg(long, default_value = "5", value_parser = value_parser!(u16).range(3..=100))]
    members: u16,
    /// Seed of the random numbers; equal seeds make equal runs
    #[arg(long, default_value = "1")]
    seed: u64,
    /// Simulated time in minutes
    #[arg(long, default_value = "10")]
    minutes: u64,
    /// Share of the datagrams that are lost, in percent
    #[arg(long, default_value = "0", value_parser = value_parser!(u8).range(0..=90))]
    loss: u8,
    /// Longest delay of a datagram, in milliseconds
    #[arg(long, default_value = "5", value_parser = value_parser!(u64).range(1..=10_000))]
    delay: u64,
    /// Leaves out all faults except loss and delay of datagrams
    #[arg(long)]
    no_faults: bool,
    /// Breaks this rule, to show that the model finds the violation
    #[arg(long, value_parser = broken_fencing())]
    mutant: Option<fencing::mutant::Mutant>,
    /// Prints the log of all agents
    #[arg(long)]
    log: bool,
}

fn broken_fencing() -> impl TypedValueParser<Value = fencing::mutant::Mutant> {
    use fencing::mutant::{ALL, Mutant};
    let find = |wanted: String| ALL.iter().find(|(name, _)| *name == wanted).map(|(_, mutant)| *mutant);
    PossibleValuesParser::new(ALL.map(|(name, _)| name)).map(move |name| find(name).unwrap_or(Mutant::None))
}

fn run_fencing(arguments: &Fencing) -> Result<(), Failure> {
    let found = fencing::run(&fencing::Options {
        members: arguments.members.into(),
        seed: arguments.seed,
        minutes: arguments.minutes,
        loss: arguments.loss,
        delay: Duration::from_millis(arguments.delay),
        faults: !arguments.no_faults,
        mutant: arguments.mutant.unwrap_or_default(),
    });
    let shown = if arguments.log { 0 } else { found.log.len().saturating_sub(40) };
    if arguments.log || found.fault.is_some() {
        say(found.log[shown..].join("\n"))?;
    }
    let fencing::Outcome { datagrams, bytes_a_second, resets, left, join, slowest_left, .. } = found;
    let slowest = slowest_left.as_secs_f64();
    say(format_args!(
        "{datagrams} datagrams, at most {bytes_a_second} bytes/s each; {resets} resets, {left} LEFT, {join} JOIN; \
         {slowest:.1} s from a cut to the last LEFT"
    ))?;
    found.fault.map_or(Ok(()), |fault| Err(Failure(fault)))
}

fn print(outcome: &Outcome) -> Result<(), Failure> {
    let Outcome { states, transitions, violations, dead, .. } = outcome;
    say(format_args!(
        "{states} states, {transitions} transitions, {:.1} s: {violations} violations, {dead} dead states",
        outcome.elapsed.as_secs_f64()
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
