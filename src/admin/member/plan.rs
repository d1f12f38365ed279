//! `tandem member plan`: prints whether a change may be made now, and its steps. It changes nothing.

use clap::{Args, Subcommand};

use super::source::SourceArguments;
use crate::admin::exit::Exit;
use crate::admin::report::{Form, Report, show};
use crate::decide::members::Newcomer;
use crate::operate::failure::Failure;
use crate::operate::members::judge::{Planned, Wanted};
use crate::operate::members::order::newcomer;
use crate::operate::members::planned::planned;

const HELP: &str = "\
It changes nothing. Programs that drain, reboot or delete machines may ask it, too. The answer is for one change:
to stop several nodes, ask for one, stop it, then ask for the next. 'tandem status --may-stop NODE' is another
name of 'tandem member plan stop NODE'.

Exit codes:
  0  it is allowed now
  1  the answer is not known
  2  the arguments are wrong
  3  a rule forbids it now

With --json:
  wish           stop, remove, promote, replace or add
  node           the node or member that would be changed
  allowed        whether it is allowed now
  rule           the rule that forbids it (M1 to M14 of docs/operate/recovery.md), or null
  because        the reason, or null
  instead        what to type or to wait for, or null
  voters, healthy_voters, quorum   the numbers now
  after          the numbers after the change: voters, quorum, tolerates (how many more voters may then be lost)
  seconds_with_one_voter   for how many seconds one voter serves alone while the new member copies its data, estimated
                 at 100 MB a second; null where more than one voter serves
  steps          each with what, who does it (tandem, agent or operator) and done";

/// Checks whether a change of the members, or a stop of a node, is allowed now, and prints its steps
#[derive(Subcommand)]
pub(in crate::admin) enum Plan {
    Stop(Stop),
    Remove(Remove),
    Promote(Promote),
    Replace(Replace),
    Add(Add),
}

/// Checks whether NODE may be stopped or rebooted now without a pause in the writes
#[derive(Args)]
#[command(after_help = HELP)]
pub(in crate::admin) struct Stop {
    /// The node, or the member by its name or id
    #[arg(value_name = "NODE")]
    node: String,
    #[command(flatten)]
    shared: Shared,
}

/// Checks whether NODE's member may be removed now
#[derive(Args)]
#[command(after_help = HELP)]
pub(in crate::admin) struct Remove {
    /// The node, or the member by its name or id
    #[arg(value_name = "NODE")]
    node: String,
    /// Plans the removal of a healthy voter that nothing replaces, as the same option of 'tandem member remove' allows
    #[arg(long)]
    allow_fewer_voters: bool,
    #[command(flatten)]
    shared: Shared,
}

/// Checks whether NODE's learner may be promoted now
#[derive(Args)]
#[command(after_help = HELP)]
pub(in crate::admin) struct Promote {
    /// The node, or the member by its name, id or peer URL
    #[arg(value_name = "NODE")]
    node: String,
    #[command(flatten)]
    shared: Shared,
}

/// Checks whether the replacement of OLD may begin or continue now
#[derive(Args)]
#[command(after_help = HELP)]
pub(in crate::admin) struct Replace {
    /// The node that leaves
    #[arg(value_name = "OLD")]
    old: String,
    /// The new member, and its address or peer URL; in a pair, without it a new machine takes over the name and address of OLD
    #[arg(long, value_name = "NAME=ADDRESS", value_parser = newcomer)]
    new: Option<Newcomer>,
    #[command(flatten)]
    shared: Shared,
}

/// Checks whether a member may be added now
#[derive(Args)]
#[command(after_help = HELP)]
pub(in crate::admin) struct Add {
    /// Name of the new member, and its address or peer URL; the default port is 2380
    #[arg(value_name = "NAME=ADDRESS", value_parser = newcomer)]
    new: Newcomer,
    #[command(flatten)]
    shared: Shared,
}

#[derive(Args)]
struct Shared {
    #[command(flatten)]
    source: SourceArguments,
    #[command(flatten)]
    form: Form,
}

impl Plan {
    pub(super) fn run(&self) -> Result<Exit, Failure> {
        let (wanted, shared) = match self {
            Self::Stop(of) => (Wanted::Stop(of.node.clone()), &of.shared),
            Self::Remove(of) => {
                (Wanted::Remove { node: of.node.clone(), allow_fewer: of.allow_fewer_voters }, &of.shared)
            }
            Self::Promote(of) => (Wanted::Promote(of.node.clone()), &of.shared),
            Self::Replace(of) => (Wanted::Replace { old: of.old.clone(), new: of.new.clone() }, &of.shared),
            Self::Add(of) => (Wanted::Add(of.new.clone()), &of.shared),
        };
        show(&planned(&wanted, &shared.source.target())?, shared.form)
    }
}

fn afterwards(voters: usize, may_be_lost: usize) -> String {
    match (voters, may_be_lost) {
        (1, _) => "one voter, which may not be lost".to_owned(),
        (_, 0) => format!("{voters} voters, and no more of them may be lost"),
        (_, more) => format!("{voters} voters, and {more} more of them may be lost"),
    }
}

impl Report for Planned {
    fn text(&self) -> String {
        let (wish, node) = (self.wish, &self.node);
        let figures = format!(
            "{} of {} voters are healthy, {} are a majority; afterwards {}",
            self.healthy_voters,
            self.voters,
            self.quorum,
            afterwards(self.after.voters(), self.after.tolerates())
        );
        let answer = match (&self.rule, &self.because, &self.instead) {
            (Some(rule), Some(because), Some(instead)) if self.is_known => {
                format!("no: {wish} {node} is not to be done now ({rule}): {because}\ninstead: {instead}")
            }
            (Some(_), Some(because), Some(instead)) => {
                format!("not known whether {node} may be stopped now: {because}\ninstead: {instead}")
            }
            _ => format!("yes: {wish} {node} may be done now"),
        };
        let steps = self.steps.iter().map(|step| {
            let mark = if step.done { "done" } else { "to do" };
            format!("\n  {mark:<5}  {:<8}  {}", step.who, step.what)
        });
        let alone =
            self.seconds_with_one_voter.map(|seconds| format!("\none voter carries everything for about {seconds} s"));
        format!("{answer}\n{figures}{}{}", alone.unwrap_or_default(), steps.collect::<String>())
    }

    fn exit(&self) -> Exit {
        match (self.allowed, self.is_known) {
            (true, _) => Exit::Done,
            (false, true) => Exit::Degraded,
            (false, false) => Exit::Failed,
        }
    }
}
