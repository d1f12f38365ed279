//! `tandem status`: the state of the cluster, asked on either node and shown for both.

mod bmcs;
mod check;
mod document;
mod output;
mod table;
#[cfg(test)]
mod tests;
mod watch;

use std::borrow::Cow;
use std::time::Duration;

use clap::Args;
use serde::Serialize;

use self::bmcs::Bmcs;
use self::document::Status;
use self::output::Output;
use self::watch::Wanted;
use super::exit::Exit;
use super::node;
use super::report::{Form, Report, show};
use crate::base::duration;
use crate::operate::cluster::{Cluster, ask};
use crate::operate::failure::Failure;
use crate::operate::health::{Problem, Verdict};
use crate::operate::members::judge::Wanted::Stop;
use crate::operate::members::planned::planned;
use crate::operate::members::source::Target;
use crate::os::clock;
use crate::os::output::{Painted, complain};

/// Default for `--timeout` with `--wait-for`.
const PATIENCE: Duration = Duration::from_secs(600);

const HELP: &str = "\
The command changes nothing. What could not be asked counts as not known, and never as healthy. It answers within
5 seconds, whatever hangs, because each question has a time-out. It also asks the BMC of a node that the cluster does
not see, for 3 seconds at most, unless Pacemaker is fencing that node. With --may-stop, --check and --output it asks no
BMC; with --watch and --wait-for it asks each 10 seconds. On a terminal the verdict and the problems have colours,
unless NO_COLOR is set.

Exit codes:
  0  redundant: there are two voters, and no problem needs an operator
  3  degraded: etcd takes writes, and something is missing
  4  down: etcd takes no writes
  1  not known
With --wait-for: 0 as soon as the cluster is in that state, else as above.
With --may-stop: 0 yes, 3 no, 1 not known.
With --check, as monitoring plugins: 0 OK (redundant), 1 WARNING (degraded), 2 CRITICAL (down), 3 UNKNOWN.

With --json, times are in RFC 3339, ids of members are hexadecimal strings, and what is not known is null:
  at               when the cluster was asked
  here             the node that was asked
  resource         id of the etcd resource
  verdict          redundant, degraded, down or unknown
  since            since when there are two voters, or fewer; a later start of either voter counts as a new beginning; the
                   same on both nodes
  voters           how many of the nodes run a voter
  writes           whether etcd takes writes
  problems         the worst first, each with id (it never changes), severity (critical, warning, notice), node, device (a
                   fence device), text, and command (what to type)
  cluster          pacemaker_running (on the node that was asked), quorum, waits_for_peer (Corosync's wait_for_all), votes,
                   expected_votes, token_millis (Corosync's), lost_after_millis (the longest time until Corosync counts a
                   lost node as lost), maintenance (of the whole cluster), stonith_enabled, dc, leader (the node whose etcd
                   leads), primary (the node that configured_primary names), two_histories (what happens after both nodes
                   ran standalone: refuse, or primary)
  nodes            for each configured node:
    name, online, standby, maintenance, pending, unclean, in_partition (whether the node that was asked sees it)
    power          on, off or unknown, as its BMC reports; null if its BMC was not asked
    etcd           role (leader, voter, learner, stopped), why_unknown, cluster_id, member_id, leader (the leading member's
                   id), term, index, lag (how many of the leader's entries it lacks), db_bytes, db_in_use_bytes,
                   quota_bytes, alarms, reads (whether it answered a linearizable read), answer_millis, certificate_ends
                   (of the certificate that it shows)
    fence_devices  those that fence this node: id, runs_on, healthy (as Pacemaker sees it), and from its last monitor
                   checked (when), checked_by, check_millis, failure, last_login (when it last worked)
    last_fencing   action, result (success, failed, pending), completed, delegate (the node that carried it out)
    certificates   file, ends
    versions       tandem, etcd, pacemaker
    collected      when the node's collector (tandem-collect.timer) last published; without it, what only that node knows is
                   null
    free_bytes, size_bytes   of the file system with etcd's data
    moved_aside    data that was moved aside and is still there: path, since, bytes
If nothing could be asked, as on a machine without a cluster, the verdict is unknown, and the only problem is
status-unknown. --wait-for adds reached: whether the cluster is in that state. --watch --json prints each object in one
line. With --may-stop the keys are those of 'tandem member plan stop'.";

/// Shows the state of the cluster, on either node: a verdict, both nodes, and every problem with what to type
#[derive(Args)]
#[command(after_help = HELP)]
pub(super) struct Arguments {
    #[command(flatten)]
    resource: node::ResourceArgument,
    /// Asks again each TIME, from 1s to 1h, by default 2s: redraws a terminal; otherwise, and with --json, prints a line or an
    /// object for each change
    #[arg(short, long, value_name = "TIME", num_args = 0..=1, default_missing_value = "2s",
        value_parser = interval, conflicts_with_all = ["wait_for", "may_stop", "check"])]
    watch: Option<Duration>,
    /// Waits until the cluster is in this state
    #[arg(long, value_name = "STATE", conflicts_with_all = ["may_stop", "check"])]
    wait_for: Option<Wanted>,
    /// Longest wait of --wait-for, such as 90s; the default is 10m
    #[arg(long, value_name = "TIME", requires = "wait_for", value_parser = duration)]
    timeout: Option<Duration>,
    /// Checks whether NODE may be stopped now without a pause in the writes; the same as tandem member plan stop
    #[arg(long, value_name = "NODE", conflicts_with = "check")]
    may_stop: Option<String>,
    /// Prints one line with performance data, and ends with the exit code of a monitoring plugin
    #[arg(long, conflicts_with = "json")]
    check: bool,
    /// Prints the state of the cluster in this form instead of text
    #[arg(short, long, value_name = "FORM", conflicts_with = "json")]
    output: Option<Output>,
    #[command(flatten)]
    form: Form,
}

/// Parses the interval of `--watch`, which must be from one second to one hour.
fn interval(text: &str) -> Result<Duration, String> {
    let read = duration(text)?;
    let is_usual = (Duration::from_secs(1)..=Duration::from_secs(3_600)).contains(&read);
    if is_usual { Ok(read) } else { Err(format!("'{text}' is not from 1s to 1h")) }
}

/// Returns the typed option that cannot be used together with the given `--output`; `None` if all fit.
fn conflict(arguments: &Arguments) -> Option<&'static str> {
    let is_other = match arguments.output? {
        Output::Json => false,
        Output::PacemakerCluster => true,
    };
    let typed = [
        ("--check", arguments.check),
        ("--watch", is_other && arguments.watch.is_some()),
        ("--wait-for", is_other && arguments.wait_for.is_some()),
        ("--may-stop", is_other && arguments.may_stop.is_some()),
    ];
    typed.into_iter().find(|(_, is_typed)| *is_typed).map(|(option, _)| option)
}

pub(super) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    if let Some(option) = conflict(arguments) {
        complain(format_args!("tandem: this --output cannot be used with {option}: see 'tandem status --help'"));
        return Ok(Exit::Usage);
    }
    let look = || ask(arguments.resource.id());
    let mut bmcs = Bmcs::default();
    let form = Form { json: arguments.form.json || arguments.output == Some(Output::Json) };
    if let Some(node) = &arguments.may_stop {
        let target = Target::Pair { resource: arguments.resource.id().map(str::to_owned) };
        return show(&planned(&Stop(node.clone()), &target)?, form);
    }
    if arguments.check {
        return check::run(look().map(|cluster| Status::of(&cluster)));
    }
    if arguments.output == Some(Output::PacemakerCluster) {
        return output::show(&look()?);
    }
    let status = || bmcs.status(arguments.resource.id());
    if let Some(wanted) = arguments.wait_for {
        return show(&watch::wait(wanted, arguments.timeout.unwrap_or(PATIENCE), status)?, form);
    }
    match arguments.watch {
        Some(interval) => watch::watch(interval, form, status),
        None => match bmcs.status(arguments.resource.id()) {
            Ok(status) => show(&status, form),
            Err(why) if form.json => show(&Refused::because(why), form),
            Err(why) => Err(why),
        },
    }
}

/// The report of a cluster that could not be queried at all. With it, `--json` always prints an object.
#[derive(Serialize)]
struct Refused {
    #[serde(flatten)]
    status: Status,
    #[serde(skip)]
    why: String,
}

impl Refused {
    fn because(Failure(why): Failure) -> Self {
        let mut status = Status::of(&Cluster { at: clock::wall_seconds(), ..Cluster::default() });
        status.problems = vec![Problem::nothing_known(why.clone())];
        Self { status, why }
    }
}

impl Report for Refused {
    fn text(&self) -> String {
        String::new()
    }

    fn complaint(&self) -> Option<Cow<'_, str>> {
        Some(Cow::Borrowed(&self.why))
    }
}

/// Returns the status as text, for `tandem gather`.
pub(super) fn text() -> Result<String, Failure> {
    Ok(Bmcs::default().status(None)?.text())
}

impl Report for Status {
    fn text(&self) -> String {
        table::text(self)
    }

    fn painted(&self) -> &'static Painted {
        table::PAINTED
    }

    fn exit(&self) -> Exit {
        match self.verdict {
            Verdict::Redundant => Exit::Done,
            Verdict::Degraded => Exit::Degraded,
            Verdict::Down => Exit::Worst,
            Verdict::Unknown => Exit::Failed,
        }
    }
}
