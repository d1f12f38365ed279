//! `tandem confirm-recovery`: the operator's confirmation in rule R3. It shows the evidence, states which writes could
//! be lost, and asks the operator to type the lost node's name. It asks for quorum and fencing separately, and only if
//! they are missing.

mod bmc;
mod words;

use std::path::Path;

use clap::Args;
use serde::Serialize;

use self::bmc::{Bmc, ask_the_bmc};
use self::words::{Asked, Given, Needs, Off, WordArguments, check_off};
use super::exit::Exit;
use super::node::ResourceArgument;
use super::prompt::{self, Answers, Prompt};
use super::report::{Form, Report};
use super::{evidence, explain};
use crate::adapters::data_dir::{DataDir, History};
use crate::adapters::pacemaker::{by_hand, resource};
use crate::agent::resource::context::Context;
use crate::base::Fact;
use crate::decide::evidence::{Cib, Confirmation, Evidence, LogPosition, PeerNode};
use crate::decide::reason::LastWritten;
use crate::decide::{self, Plan, Progress, Request};
use crate::operate::failure::Failure;
use crate::operate::node;
use crate::records::events::{self, own};
use crate::records::state_file;

const HELP: &str = "\
The command first asks the BMC of the lost node, unless Pacemaker sees that node or has a confirmation that it is off. A
node whose BMC reports On probably serves, and only the network between the nodes is cut. The command then does nothing,
unless --node-is-on names that node.

It asks for up to three confirmations, all before it changes anything:
  - the name of the lost node, which is given up (--confirm NODE)
  - 'yes' to grant this node quorum alone, if it has none (--grant-quorum, or --yes)
  - the name of the lost node once more, if you have seen that it is off and Pacemaker has no confirmation of that
    (--confirm-off NODE). If its BMC answers, Pacemaker fences the node by itself, and this one is not needed.

--dry-run prints the command with the options that this state needs. With --no-input, or if stdin is no terminal and has
ended, the command asks nothing.

Exit codes:
  0  confirmed; with --dry-run, the command was printed
  1  refused or failed
  3  a confirmation is missing, and nothing was done

With --json, questions and warnings go to stderr. If nothing was done, only given_up, bmc, missing and command are there.
  given_up  name of the lost node
  bmc       what its BMC reports: on, off, unknown or not_asked
  missing   the options that are missing
  command   what to type
  quorum    had (before the command), granted or declined
  fencing   confirmed (Pacemaker has the confirmation that the node is off), left (Pacemaker has none, and starts nothing
            before it has fenced the node), online (the lost node is online, joining or leaving), or unknown (the CIB could
            not be read)
  plan      the effects of a start that Pacemaker would ask for now, and what follows them, as in 'tandem explain'
  because   the reason of that plan";

/// Lets this node serve without its peer although the peer may have taken writes alone; asks for the peer's name
#[derive(Args)]
#[command(after_help = HELP)]
pub(super) struct Arguments {
    #[command(flatten)]
    resource: ResourceArgument,
    /// Accepts that the lost node ran standalone and that its writes since then are lost
    #[arg(long)]
    accept_loss: bool,
    /// Gives up this lost node although its BMC reports On
    #[arg(long, value_name = "NODE")]
    node_is_on: Option<String>,
    #[command(flatten)]
    words: WordArguments,
    /// Prints all evidence, as 'tandem explain' does
    #[arg(long)]
    verbose: bool,
    #[command(flatten)]
    answers: Answers,
    #[command(flatten)]
    pub form: Form,
}

/// The state of this node's quorum after the command: present before, granted by the operator, or not granted.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum Quorum {
    Had,
    Granted,
    Declined,
}

/// The state of the confirmation to Pacemaker that the lost node is off.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Fencing {
    /// Pacemaker has the confirmation, possibly from this command.
    Confirmed,
    /// Pacemaker has no confirmation. It starts nothing before it has fenced the lost node, or before an operator confirms that the node
    /// is off.
    Left,
    /// No confirmation is needed, because the node is online, joining or leaving.
    Online,
    /// Unknown, because the CIB could not be read.
    Unknown,
}

impl Fencing {
    fn of(evidence: &Evidence) -> Self {
        Self::seen_in(evidence.cib.known().map(Cib::peer_machine))
    }

    /// Returns the variant for the lost node's state in the CIB, before the operator confirms anything.
    fn seen_in(machine: Option<PeerNode>) -> Self {
        match machine {
            Some(PeerNode::Down) => Self::Confirmed,
            Some(PeerNode::Lost | PeerNode::NeverSeen) => Self::Left,
            Some(PeerNode::Online | PeerNode::Pending) => Self::Online,
            None => Self::Unknown,
        }
    }
}

/// The report of `tandem confirm-recovery`: what was confirmed, or which options are missing.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Answer {
    Confirmed(Box<Confirmed>),
    Needs(Needs),
}

impl Report for Answer {
    fn text(&self) -> String {
        match self {
            Self::Confirmed(done) => done.text(),
            Self::Needs(needs) => needs.text(),
        }
    }

    fn exit(&self) -> Exit {
        match self {
            Self::Confirmed(done) => done.exit(),
            Self::Needs(needs) => needs.exit(),
        }
    }
}

/// The confirmation that was given, and the plan that follows from it.
#[derive(Serialize)]
pub(super) struct Confirmed {
    given_up: String,
    bmc: Bmc,
    quorum: Quorum,
    fencing: Fencing,
    plan: Plan,
    because: String,
}

impl Report for Confirmed {
    /// Returns as text only what a start on this node would decide now. The rest was already printed during the command.
    fn text(&self) -> String {
        explain::decision(Request::Start, &self.plan).trim_end().to_owned()
    }
}

pub(super) fn run(arguments: &Arguments) -> Result<Answer, Failure> {
    let prompt = Prompt::new(&arguments.answers, arguments.form);
    let context = node::context(arguments.resource.id())?;
    let evidence = node::look(&context).0;
    let shown = if arguments.verbose { evidence::text(&evidence) } else { evidence::in_short(&evidence) };
    prompt.tell(format_args!("evidence\n{}", shown.trim_end()))?;
    let accept_loss = arguments.accept_loss;
    let history = recoverable(&evidence, accept_loss)?;
    let peer = evidence.peer_name().to_owned();
    let bmc = ask_the_bmc(&prompt, &context, &evidence, arguments.node_is_on.as_deref())?;
    let (asked, given) = asked(arguments, &context, &evidence, bmc)?;
    if arguments.words.dry_run {
        return Ok(Answer::Needs(asked.needs(given, bmc, true)));
    }
    warn(&prompt, &evidence, history, accept_loss)?;
    let lacks_words = !asked.missing(given).is_empty();
    let is_silent = arguments.words.no_input || (lacks_words && prompt::is_at_an_end());
    if is_silent && lacks_words {
        return Ok(Answer::Needs(asked.needs(given, bmc, false)));
    }
    prompt.name(&format!("Type the name of the node that is given up ({peer}) to continue without it"), &peer)?;
    let Some(words) = ask(&prompt, &asked, given, is_silent)? else {
        return Ok(Answer::Needs(asked.needs(Given { confirm: true, ..given }, bmc, false)));
    };
    confirm(&context, &evidence, history, accept_loss)?;
    prompt.tell("The confirmation is written, for this boot and for the data as it is now.")?;
    let quorum = grant_quorum(&prompt, &context, words.quorum)?;
    let fencing = confirm_fencing(&prompt, &context, &evidence, words.off)?;
    // Old failures must not keep Pacemaker from trying again.
    by_hand::forget_failures(&context.programs, &context.resource, &context.me.name)?;
    let (evidence, _) = node::look(&context);
    let plan = decide::decide(Request::Start, &evidence, &Progress::default()).plan;
    let because = plan.because.to_string();
    Ok(Answer::Confirmed(Box::new(Confirmed { given_up: peer, bmc, quorum, fencing, plan, because })))
}

/// Returns the confirmations that this state needs, and those that the options of the command give. Refuses options that contradict the
/// state.
fn asked(arguments: &Arguments, context: &Context, evidence: &Evidence, bmc: Bmc) -> Result<(Asked, Given), Failure> {
    let peer = evidence.peer_name().to_owned();
    let seen = Fencing::of(evidence);
    if let Some(named) = &arguments.words.confirm_off {
        check_off(named, &peer, &seen, bmc)?;
    }
    let asked = Asked {
        accept_loss: arguments.accept_loss,
        node_is_on: bmc == Bmc::On,
        quorum: !resource::has_quorum(&context.programs)?,
        off: Off::of(&seen, bmc),
        peer,
    };
    let given = Given {
        confirm: arguments.answers.has_name(),
        quorum: arguments.words.grant_quorum || arguments.answers.has_leave(),
        off: arguments.words.confirm_off.is_some(),
    };
    Ok((asked, given))
}

/// The operator's two confirmations: that this node is to be granted quorum, and that the lost node is off.
#[derive(Clone, Copy, Debug)]
struct Words {
    quorum: bool,
    off: bool,
}

/// Asks the operator for the confirmations that this state needs and no option gives. Returns `None` if the input ends first.
fn ask(prompt: &Prompt<'_>, asked: &Asked, given: Given, is_silent: bool) -> Result<Option<Words>, Failure> {
    let peer = &asked.peer;
    let mut words = Words { quorum: given.quorum, off: given.off };
    if asked.quorum && !given.quorum {
        prompt.tell("This node has no quorum: Pacemaker starts nothing here until it has seen its peer.")?;
        let Some(answer) = prompt.answer("Type 'yes' to grant it quorum alone")? else { return Ok(None) };
        words.quorum = answer == "yes";
    }
    if asked.off != Off::Known && !given.off && !is_silent {
        prompt.tell(format_args!(
            "Pacemaker has no confirmation that {peer} is off. It fences {peer} by itself if its BMC answers."
        ))?;
        let question = format!("If you have seen yourself that {peer} is off, type its name; else press Enter");
        words.off = match prompt.answer(&question)? {
            Some(answer) => answer == *peer,
            None if asked.off == Off::Unproven => return Ok(None),
            None => false,
        };
    }
    Ok(Some(words))
}

/// Returns the data from which this node may continue. The error is the reason why it may not.
fn recoverable(evidence: &Evidence, accept_loss: bool) -> Result<&History, Failure> {
    let peer = evidence.peer_name();
    if evidence.container_may_run() {
        return Err(Failure(
            "etcd runs here, or may run: there is nothing to recover; see 'tandem explain'".to_owned(),
        ));
    }
    if evidence.peer_etcd.known().is_some_and(|etcd| etcd.leader.is_some()) {
        return Err(Failure(format!("{peer}'s etcd serves: it is to be joined, see 'pcs status'")));
    }
    let history = match &evidence.disk {
        Fact::Known(DataDir::Present(history)) => history,
        Fact::Known(DataDir::Blank | DataDir::Broken { .. }) | Fact::Absent => {
            return Err(Failure(format!(
                "this node holds no data to continue with: start {peer}, or restore a snapshot"
            )));
        }
        // The data may be the only copy.
        Fact::Unknown(_) | Fact::NotAsked => {
            let why = evidence.disk.why_unknown();
            return Err(Failure(format!(
                "what this node holds cannot be read ({why}), and may be all that there is: see 'tandem data-dir show', then type \
                 this again, or start {peer}"
            )));
        }
    };
    if !history.is_voter() {
        return Err(Failure(format!(
            "this node's data is a learner's or a departed member's, which etcd cannot continue with: start {peer}, or restore this data with 'etcdutl snapshot restore --skip-hash-check member/snap/db'"
        )));
    }
    // If the peer continued from this data, the confirmation gives that up, and a plain start follows. So the third
    // voter counts only if the peer did not.
    if evidence.is_among_many(&DataDir::Present(history.clone())) && !evidence.was_left_behind() {
        return Err(Failure(format!(
            "a third member votes, so nothing is forced: start {peer} or that one; if both are gone for good, restore this data with 'etcdutl snapshot restore --skip-hash-check member/snap/db'"
        )));
    }
    if history.database_ahead.is_some() {
        return Err(Failure(format!("start {peer}, or 'etcdutl snapshot restore': the log's end is lost")));
    }
    if evidence.last_note().is_none() {
        return Err(Failure(format!(
            "start {peer}, mv 'tandem-note.json', or 'tandem confirm-recovery': this node's note cannot be read"
        )));
    }
    if evidence.was_left_behind() && !accept_loss {
        return Err(Failure(format!(
            "{peer} ran standalone, so writes that it acknowledged are missing here: start it, or accept that they are lost with --accept-loss"
        )));
    }
    Ok(history)
}

fn warn(prompt: &Prompt<'_>, evidence: &Evidence, history: &History, accept_loss: bool) -> Result<(), Failure> {
    let peer = evidence.peer_name();
    let written = LastWritten(evidence.local.log_written);
    let (term, index) = (history.last_term, history.last_index);
    prompt.tell(format_args!("This node's data reaches term {term} index {index}{written}."))?;
    if accept_loss {
        prompt.tell(format_args!("Every write that {peer} acknowledged after that WILL BE LOST."))?;
    } else {
        prompt.tell(format_args!(
            "If {peer} ran standalone after that, every write that it acknowledged since is lost."
        ))?;
    }
    prompt.tell(format_args!("Nothing is lost if you start {peer} instead."))
}

fn confirm(context: &Context, evidence: &Evidence, history: &History, accept_loss: bool) -> Result<(), Failure> {
    let word = Confirmation {
        boot_id: evidence.boot_id.clone(),
        lost_node: evidence.peer_name().to_owned(),
        cluster_id: history.cluster_id,
        member_id: history.member_id,
        position: LogPosition { term: history.last_term, index: history.last_index },
        accept_loss,
    };
    state_file::write(&context.confirmation_path, &word)?;
    // A command's context has no directory for events, because that is a parameter of the agent's actions.
    let directory = context.events.as_deref().unwrap_or(Path::new(events::DIRECTORY));
    let (node, who) = (&context.me.name, operator());
    own::tell(directory, Some(own::of_given_up(node, &word.lost_node, word.position, &who)));
    Ok(())
}

/// Returns the name of the user that typed the command, also through `sudo`.
fn operator() -> String {
    let named = ["SUDO_USER", "LOGNAME", "USER"].into_iter().find_map(|name| std::env::var(name).ok());
    named.filter(|name| !name.is_empty()).unwrap_or_else(|| "root".to_owned())
}

/// Grants this node quorum if it has none and `is_granted`. After a boot without its peer, Corosync withholds quorum until it has seen
/// the peer (`wait_for_all`).
fn grant_quorum(prompt: &Prompt<'_>, context: &Context, is_granted: bool) -> Result<Quorum, Failure> {
    if resource::has_quorum(&context.programs)? {
        return Ok(Quorum::Had);
    }
    if !is_granted {
        prompt.tell("Quorum is not granted; when you want it: 'pcs quorum unblock'.")?;
        return Ok(Quorum::Declined);
    }
    by_hand::grant_quorum(&context.programs)?;
    Ok(Quorum::Granted)
}

/// Confirms to Pacemaker that the lost node is off, if `is_seen_off`. Without the confirmation Pacemaker starts nothing, because a node
/// that it cannot fence may still run.
fn confirm_fencing(
    prompt: &Prompt<'_>,
    context: &Context,
    evidence: &Evidence,
    is_seen_off: bool,
) -> Result<Fencing, Failure> {
    let peer = evidence.peer_name();
    let seen = Fencing::of(evidence);
    if seen != Fencing::Left {
        return Ok(seen);
    }
    if !is_seen_off {
        prompt.tell(format_args!(
            "Fencing is left to Pacemaker; when you have seen that {peer} is off: 'pcs stonith confirm {peer}'."
        ))?;
        return Ok(Fencing::Left);
    }
    by_hand::confirm_off(&context.programs, peer)?;
    Ok(Fencing::Confirmed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::report::golden;

    #[test]
    fn fencing_is_confirmed_where_pacemaker_has_it_and_nowhere_else() {
        let seen = [PeerNode::Down, PeerNode::Lost, PeerNode::NeverSeen, PeerNode::Online, PeerNode::Pending].map(Some);
        let told = [Fencing::Confirmed, Fencing::Left, Fencing::Left, Fencing::Online, Fencing::Online];
        assert_eq!(seen.map(Fencing::seen_in), told);
        assert_eq!(Fencing::seen_in(None), Fencing::Unknown);
    }

    #[test]
    fn data_that_cannot_be_read_is_not_called_none() {
        let there_is = |disk: Fact<DataDir>| {
            let evidence = Evidence { container: Fact::Absent, disk, ..golden::recorded().evidence };
            recoverable(&evidence, true).map(|_| ()).map_err(|Failure(why)| why)
        };
        let unread = there_is(Fact::Unknown("input/output error".to_owned())).unwrap_err();
        assert!(unread.contains("cannot be read (input/output error)") && !unread.contains("restore"), "{unread}");
        let none = there_is(Fact::Known(DataDir::Blank)).unwrap_err();
        assert!(none.contains("holds no data"), "{none}");
    }

    #[test]
    fn what_was_done_is_told() {
        let entry = golden::recorded();
        let because = entry.plan.because.to_string();
        let (quorum, fencing) = (Quorum::Granted, Fencing::Left);
        let bmc = Bmc::Off;
        let done = Confirmed { given_up: "node2".to_owned(), bmc, quorum, fencing, plan: entry.plan, because };
        golden::compare("confirm-recovery", &done);
    }
}
