//! `tandem explain`: what the agent would do now on this node, and why, without doing it.

use std::fmt::Write;

use clap::{Arg, ArgAction, ArgMatches, Command};
use serde::Serialize;

use super::{Failure, Subcommand, evidence, node, say};
use crate::decide::{self, Evidence, Next, Plan, Progress, Reason, Request};

pub(super) const SUBCOMMAND: Subcommand = Subcommand { command, run };

fn command() -> Command {
    Command::new("explain")
        .about("Shows what the agent would do on this node now, and why, without doing it")
        .arg(node::resource_argument())
        .arg(Arg::new("json").long("json").action(ArgAction::SetTrue).help("Prints evidence and decision as JSON"))
}

/// What `--json` prints.
#[derive(Serialize)]
struct Explanation<'a> {
    request: Request,
    /// Scripts know it by the name that the files of decisions have for it.
    #[serde(rename = "snapshot")]
    evidence: &'a Evidence,
    plan: &'a Plan,
    because: String,
}

fn run(matches: &ArgMatches) -> Result<(), Failure> {
    let context = node::context(matches)?;
    let (evidence, request) = node::look(&context);
    let plan = decide::decide(request, &evidence, &Progress::default());
    if matches.get_flag("json") {
        let because = plan.because.to_string();
        let explanation = Explanation { request, evidence: &evidence, plan: &plan, because };
        return say(serde_json::to_string_pretty(&explanation)?);
    }
    say(format_args!("resource {} on {}\nevidence", context.resource, context.me.name))?;
    say(evidence::text(&evidence).trim_end())?;
    say(decision(request, &plan).trim_end())?;
    match after_waiting(request, &evidence, &plan) {
        Some(because) => say(format_args!("  if that lasts      {because}")),
        None => Ok(()),
    }
}

/// What a wait comes to if nothing changes: that is what an administrator reads in `crm_mon`.
fn after_waiting(request: Request, evidence: &Evidence, plan: &Plan) -> Option<Reason> {
    if !plan.effects.is_empty() || !matches!(plan.next, Next::Reobserve { .. }) {
        return None;
    }
    let late = Evidence { elapsed_ms: evidence.budget_ms, ..evidence.clone() };
    let because = decide::decide(request, &late, &Progress::default()).because;
    (because != plan.because).then_some(because)
}

/// The decision as lines of text.
pub(super) fn decision(request: Request, plan: &Plan) -> String {
    let asked = match request {
        Request::Start => "if Pacemaker asked for a start now",
        _ => "if Pacemaker asked for a monitor now",
    };
    format!("decision, {asked}\n{}", outcome(plan))
}

/// A plan as lines of text.
pub(super) fn outcome(plan: &Plan) -> String {
    let mut text = format!("  because            {}\n", plan.because);
    for effect in &plan.effects {
        let _ = writeln!(text, "  effect             {effect}");
    }
    if plan.effects.is_empty() {
        text += "  effect             none\n";
    }
    let next = match plan.next {
        Next::Exit(exit) => exit.to_string(),
        Next::Reobserve { after_ms, .. } => format!("looks again after {after_ms} ms"),
    };
    text + &format!("  then               {next}\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decide::plan::Exit;
    use crate::decide::reason::Health;

    #[test]
    fn scripts_find_what_they_look_for() {
        let text = include_str!("../../tests/fixtures/decisions/one.jsonl");
        let entry: crate::decision_log::Entry = serde_json::from_str(text.lines().next().unwrap()).unwrap();
        let plan = Plan::exit(Vec::new(), Exit::Success, Reason::Running(Health::VoterOfTwo));
        let explanation =
            Explanation { request: Request::Monitor, evidence: &entry.evidence, plan: &plan, because: String::new() };
        let value = serde_json::to_value(&explanation).unwrap();
        let keys: Vec<&str> = value.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(keys, ["because", "plan", "request", "snapshot"]);
    }
}
