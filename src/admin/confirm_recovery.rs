//! `tandem confirm-recovery`: the operator's word in rule R3. It shows the evidence, says what could be lost, and asks
//! for the lost node's name to be typed; quorum and fencing are asked for separately, and only where they are missing.

use std::io::{BufRead, Write};
use std::time::Duration;

use clap::{Arg, ArgAction, ArgMatches, Command};

use super::{Failure, Subcommand, evidence, explain, node, say};
use crate::command::Programs;
use crate::data_dir::{DataDir, History};
use crate::decide::evidence::{Authorisation, Cib, Evidence, LogPosition, PeerNode};
use crate::decide::reason::LastWritten;
use crate::decide::{self, Progress, Request};
use crate::pacemaker::resource;
use crate::resource::context::Context;
use crate::state_file;

pub(super) const SUBCOMMAND: Subcommand = Subcommand { command: declare, run };

const TOOL_TIMEOUT: Duration = Duration::from_secs(60);

fn declare() -> Command {
    let help = "Accepts that the lost node went on alone and that its writes since then are lost";
    Command::new("confirm-recovery")
        .about("Lets this node run without its peer although nothing proves that the peer did not go on; asks for the peer's name")
        .arg(node::resource_argument())
        .arg(Arg::new("accept-loss").long("accept-loss").action(ArgAction::SetTrue).help(help))
}

fn run(matches: &ArgMatches) -> Result<(), Failure> {
    let context = node::context(matches)?;
    let evidence = node::look(&context).0;
    say(format_args!("evidence\n{}", evidence::text(&evidence).trim_end()))?;
    let accept_loss = matches.get_flag("accept-loss");
    let history = recoverable(&evidence, accept_loss)?;
    let peer = evidence.peer_name().to_owned();
    warn(&evidence, history, accept_loss)?;
    let asked = format!("Type the name of the node that is given up ({peer}) to go on without it");
    if ask(&asked)? != peer {
        return Err(Failure(format!("nothing was done: '{peer}' was not typed")));
    }
    authorise(&context, &evidence, history, accept_loss)?;
    say("The word is given, for this boot and for the data as it is now.")?;
    grant_quorum(&context)?;
    confirm_fencing(&evidence, &peer)?;
    retry(&context)?;
    let (evidence, _) = node::look(&context);
    let plan = decide::decide(Request::Start, &evidence, &Progress::default());
    say(explain::decision(Request::Start, &plan).trim_end())
}

/// The data that may be gone on with, or why not.
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
    let history = match evidence.disk.known() {
        Some(DataDir::Present(history)) => history,
        Some(DataDir::Blank | DataDir::Broken { .. }) | None => {
            return Err(Failure(format!("this node holds no data to go on with: start {peer}, or restore a snapshot")));
        }
    };
    if !history.is_voter() {
        return Err(Failure(format!(
            "this node's data is a learner's or a departed member's, which etcd cannot go on with: start {peer}, or restore this data with 'etcdutl snapshot restore --skip-hash-check member/snap/db'"
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
            "{peer} went on alone, so writes that it acknowledged are missing here: start it, or accept that they are lost with --accept-loss"
        )));
    }
    Ok(history)
}

fn warn(evidence: &Evidence, history: &History, accept_loss: bool) -> Result<(), Failure> {
    let peer = evidence.peer_name();
    let written = LastWritten(evidence.local.log_written);
    say(format_args!("This node's data reaches term {} index {}{written}.", history.last_term, history.last_index))?;
    if accept_loss {
        say(format_args!("Every write that {peer} acknowledged after that WILL BE LOST."))?;
    } else {
        say(format_args!("If {peer} went on alone after that, every write that it acknowledged since is lost."))?;
    }
    say(format_args!("Nothing is lost if you start {peer} instead."))
}

fn ask(question: &str) -> Result<String, Failure> {
    // A question that nobody can read is not asked.
    let mut stdout = std::io::stdout().lock();
    write!(stdout, "{question}: ")?;
    stdout.flush()?;
    drop(stdout);
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer)?;
    Ok(answer.trim().to_owned())
}

fn authorise(context: &Context, evidence: &Evidence, history: &History, accept_loss: bool) -> Result<(), Failure> {
    let word = Authorisation {
        boot_id: evidence.boot_id.clone(),
        lost_node: evidence.peer_name().to_owned(),
        cluster_id: history.cluster_id,
        member_id: history.member_id,
        position: LogPosition { term: history.last_term, index: history.last_index },
        accept_loss,
    };
    state_file::write(&context.authorisation_path, &word)?;
    Ok(())
}

/// A node that boots alone waits for its peer before anything may run (`wait_for_all`).
fn grant_quorum(context: &Context) -> Result<(), Failure> {
    if resource::has_quorum(&context.programs)? {
        return Ok(());
    }
    say("This node has no quorum: Pacemaker starts nothing here until it has seen its peer.")?;
    if ask("Type 'yes' to grant it quorum alone")? != "yes" {
        say("Quorum is not granted; when you want it: 'pcs quorum unblock'.")?;
        return Ok(());
    }
    tool("corosync-cmapctl", &["-s", "quorum.cancel_wait_for_all", "u8", "1"])
}

/// Pacemaker starts nothing while a node may still be running that it cannot fence.
fn confirm_fencing(evidence: &Evidence, peer: &str) -> Result<(), Failure> {
    let node = evidence.cib.known().map(Cib::peer_machine);
    if !matches!(node, Some(PeerNode::Lost | PeerNode::NeverSeen)) {
        return Ok(());
    }
    say(format_args!(
        "Pacemaker has no confirmation that {peer} is off. It fences {peer} by itself if its BMC answers."
    ))?;
    if ask(&format!("If you have seen yourself that {peer} is off, type its name; else press Enter"))? != peer {
        say(format_args!(
            "Fencing is left to Pacemaker; when you have seen that {peer} is off: 'pcs stonith confirm {peer}'."
        ))?;
        return Ok(());
    }
    tool("stonith_admin", &["--confirm", peer])
}

/// Old failures must not keep Pacemaker from trying again.
fn retry(context: &Context) -> Result<(), Failure> {
    tool("crm_resource", &["--cleanup", "--resource", &context.resource, "--node", &context.me.name])
}

fn tool(program: &str, args: &[&str]) -> Result<(), Failure> {
    let output = Programs::default().run(program, args, TOOL_TIMEOUT)?;
    if output.code == 0 {
        return Ok(());
    }
    Err(Failure(format!("'{program} {}' failed: {}", args.join(" "), output.complaint())))
}
