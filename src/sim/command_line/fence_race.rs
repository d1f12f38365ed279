//! The subcommand `tandem-sim race`.

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::value_parser;

use super::{Failure, say};
use crate::sim::race;

/// Searches every order of two fence agents that race for a reset, with faults of agents, BMCs and the network
#[derive(Args)]
pub(in crate::sim) struct Race {
    /// Most faults in one run
    #[arg(long, default_value = "1", value_parser = value_parser!(u8).range(0..=3))]
    faults: u8,
    /// Lets BMCs drop the Context of a session
    #[arg(long)]
    no_context: bool,
    /// Lets BMCs answer in time only, and counts how often a node waits for race_delay
    #[arg(long)]
    timely: bool,
    /// Lets the preferred node be a learner, which holds no vote
    #[arg(long)]
    learner: bool,
    /// Breaks this rule, to show that the model finds the violation
    #[arg(long, value_parser = broken_race())]
    mutant: Option<race::mutant::Mutant>,
}

fn broken_race() -> impl TypedValueParser<Value = race::mutant::Mutant> {
    use race::mutant::{ALL, Mutant};
    let find = |wanted: String| ALL.iter().find(|(name, _)| *name == wanted).map(|(_, mutant)| *mutant);
    PossibleValuesParser::new(ALL.map(|(name, _)| name)).map(move |name| find(name).unwrap_or(Mutant::None))
}

pub(super) fn check(arguments: &Race) -> Result<(), Failure> {
    let found = race::check(race::Options {
        faults: arguments.faults,
        context: !arguments.no_context,
        timely: arguments.timely,
        learner: arguments.learner,
        mutant: arguments.mutant.unwrap_or_default(),
    });
    let (states, transitions, seconds) = (found.states, found.transitions, found.elapsed.as_secs_f64());
    say(format_args!("{states} states, {transitions} transitions, {seconds:.1} s"))?;
    let Some((fault, way)) = found.wrong else { return Ok(()) };
    say(way.join("\n"))?;
    Err(Failure(fault))
}
