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
    /// Plays the same faults under other ways to run two members, and prints what each costs
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
    /// Breaks a rule, to see it caught
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
    /// Where the way to a violation is saved, as a scenario
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

/// Takes every order of everything that can happen, within bounds, and looks for what must never be
#[derive(Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option that is typed or not")]
pub(super) struct Check {
    /// How many faults and operator's actions there may be
    #[arg(long, default_value = "2", value_parser = value_parser!(u8).range(0..=7))]
    faults: u8,
    /// How many writes a client makes
    #[arg(long, default_value = "1", value_parser = value_parser!(u8).range(0..=7))]
    writes: u8,
    /// Leaves standby, shutdown and confirmed recoveries out
    #[arg(long)]
    no_operators: bool,
    /// An etcd without a leader answers, as 3.4 does
    #[arg(long = "etcd-3.4")]
    etcd_3_4: bool,
    /// Begins with two blank nodes, too
    #[arg(long)]
    blank: bool,
    /// Lets a power cut take the machine's disk with it
    #[arg(long)]
    disks: bool,
    /// Lets an operator unblock the quorum of a node that boots alone
    #[arg(long)]
    unblock: bool,
    #[arg(long, help = "Lets fencing take longer than the agent's patience")]
    slow_fencing: bool,
    /// Lets the other node's steps come between any two effects of a round, too: many more states
    #[arg(long)]
    fine: bool,
    /// Leaves out that Pacemaker ends while etcd runs on, and comes back in the same boot
    #[arg(long)]
    no_stacks: bool,
    /// Lets a start of etcd outlive its agent
    #[arg(long)]
    launches: bool,
    /// Lets a power cut leave data that looks whole and that no etcd starts from
    #[arg(long)]
    damage: bool,
    /// A sole voter acknowledges before it syncs, as etcd did before 3.5.5 and 3.4.21
    #[arg(long)]
    acks_before_sync: bool,
    /// After how many failed starts Pacemaker starts no more (3 at most); 0 is never
    #[arg(long, default_value = "0", value_parser = value_parser!(u8).range(0..=7))]
    threshold: u8,
    /// Disables dead-variable reduction: more states, the same verdict
    #[arg(long)]
    keep_dead: bool,
    /// Counts forced new clusters instead of ranking them: more states, and none may be announced in vain again
    #[arg(long)]
    count_forks: bool,
    /// Runs a promotable clone, whose instances Pacemaker promotes and demotes
    #[arg(long)]
    promotable: bool,
    #[arg(long, help = "Begins with two histories, too, and lets an operator choose (etcd_primary)")]
    choose: bool,
    #[arg(long, help = "Lets an operator or a program say whose data counts (force_new_cluster)")]
    tell: bool,
    #[arg(long, help = "Lets an operator have Pacemaker forget a node that is gone (pcs cluster node remove)")]
    forget: bool,
    #[arg(long, help = "Lets another controller, or an operator with etcdctl, promote the learner")]
    others_promote: bool,
    #[arg(long, help = "Lets a person with etcdctl remove the voter that follows")]
    others_remove: bool,
    #[arg(
        id = "guest",
        long = "guest",
        help = "Begins with a third voter outside of the pair, which may be lost (etcd_guest)"
    )]
    #[arg(conflicts_with_all = ["blank", "disks", "damage", "choose"])]
    third_voter: bool,
    /// Lets a look of an agent not find something out: the CIB, its note, its data, its container, an etcd; and Pacemaker erase a record
    #[arg(long)]
    hide: bool,
    /// Puts disks back to an earlier state, copies one node's disk over the other's, and has positions count
    #[arg(long, conflicts_with_all = ["guest", "blank", "damage", "choose"])]
    put_back: bool,
    /// How many terms leaders begin behind the first one (6 at most); with 0, positions have no terms
    #[arg(long, default_value = "0", value_parser = value_parser!(u8).range(0..=6), requires = "put_back")]
    terms: u8,
    /// Lets the disk of a node's data be missing after a power cut, and be mounted later
    #[arg(long, conflicts_with = "damage")]
    not_mounted: bool,
    #[arg(long, help = "Lets no survivor go on without a restart (recovery=restart)")]
    restart: bool,
    /// Has this node lead (`configured_primary`)
    #[arg(long, value_parser = PossibleValuesParser::new(NAMES), conflicts_with = "guest")]
    primary: Option<String>,
    #[arg(long, requires = "primary", help = "Lets the two etcds alone lose each other")]
    part_etcd: bool,
    #[arg(long, requires = "primary", help = "Keeps the primary's of two histories, and has parameters differ")]
    two_histories: bool,
    #[arg(long, conflicts_with = "guest", help = "Lets a sole voter boot alone by its peer's BMC (lone_boot)")]
    lone_boot: bool,
    #[arg(long, help = "Ends with the first violation")]
    first: bool,
    /// How many threads search; what they find does not depend on it
    #[arg(long, default_value = "2")]
    threads: usize,
    /// How many states are too many
    #[arg(long, default_value = "100000000")]
    max_states: usize,
    /// How long is too long
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
    #[arg(value_name = "SCENARIO")]
    scenario: PathBuf,
    #[command(flatten)]
    mutant: MutantArgument,
    /// Writes the run as a page: both nodes side by side, with the reason of every decision
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

/// Makes seeded random runs; what breaks an invariant is shrunk and saved as a scenario
#[derive(Args)]
pub(super) struct Explore {
    /// Equal seeds make equal runs
    #[arg(long, default_value = "1")]
    seed: u64,
    /// How many moves
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

/// Takes every order of two tools that change the members of an etcd, with faults of members and kills of tools
#[derive(Args)]
pub(super) struct Members {
    /// Up to how many voters the cluster has
    #[arg(long, default_value = "5", value_parser = value_parser!(u8).range(1..=5))]
    voters: u8,
    /// How many faults of members there may be
    #[arg(long, default_value = "2", value_parser = value_parser!(u8).range(0..=3))]
    faults: u8,
    /// Breaks a rule, to see it caught
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

/// Runs a network of fencing agents in simulated time, with faults, and looks for what must never happen
#[derive(Args)]
pub(super) struct Fencing {
    /// How many members the list has
    #[arg(long, default_value = "5", value_parser = value_parser!(u16).range(3..=100))]
    members: u16,
    /// Equal seeds make equal runs
    #[arg(long, default_value = "1")]
    seed: u64,
    /// How many minutes the network runs, in its own time
    #[arg(long, default_value = "10")]
    minutes: u64,
    /// How many datagrams are lost, in percent
    #[arg(long, default_value = "0", value_parser = value_parser!(u8).range(0..=90))]
    loss: u8,
    /// The longest way of a datagram, in milliseconds
    #[arg(long, default_value = "5", value_parser = value_parser!(u64).range(1..=10_000))]
    delay: u64,
    /// Leaves all faults out but loss and delay
    #[arg(long)]
    no_faults: bool,
    /// Breaks a rule, to see it caught
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
