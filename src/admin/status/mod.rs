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
It changes nothing. What could not be asked is not known, and never healthy. Each question has a time of its own: the answer is
there within 5 seconds, whatever hangs. The BMC of a node that is out of sight is asked too, for 3 seconds at most, unless the node is
being fenced; --may-stop, --check and --output do not ask it, and --watch and --wait-for ask it each 10 seconds.
On a terminal the verdict and each problem have a colour, unless NO_COLOR is set.

Exit codes: 0 redundant: two voters, and nothing that needs a human; 3 degraded: writes are taken, and something is missing; 4 down:
no writes are taken; 1 not known. With --wait-for 0 as soon as that state is there, else as above. With --may-stop 0 yes, 3 no, 1 not
known. With --check those of monitoring plugins: 0 OK (redundant), 1 WARNING (degraded), 2 CRITICAL (down), 3 UNKNOWN.

With --json, times are in RFC 3339, ids of members are hexadecimal strings, and what is not known is null:
  at               when it was asked
  here             the node that was asked
  resource         the id of the etcd resource
  verdict          redundant, degraded, down or unknown
  since            since when two voters exist, counted from the last start of either, or do not; the same on both nodes
  voters           how many of the nodes run a voter
  writes           whether writes are taken
  problems         worst first: id (stable), severity (critical, warning, notice), node, device (a fence device), text, command (what to
                   type)
  cluster          pacemaker_running (on the node that was asked), quorum, waits_for_peer (wait_for_all), votes, expected_votes,
                   token_millis (Corosync's), lost_after_millis (at most, until a lost node is out of the membership),
                   maintenance (of the whole cluster), stonith_enabled, dc, leader (the node whose etcd leads), primary (the node that
                   is to: configured_primary), two_histories (what happens where both nodes ran standalone: refuse, or primary)
  nodes            one for each configured node:
    name, online, standby, maintenance, pending, unclean, in_partition (of the node that was asked)
    power          on, off or unknown, by the BMC of a node that is out of sight; null where its BMC was not asked
    etcd           role (leader, voter, learner, stopped), why_unknown, cluster_id, member_id, leader (its member id), term, index,
                   lag (entries behind the leader), db_bytes, db_in_use_bytes, quota_bytes, alarms, reads (whether a linearizable
                   read was answered), answer_millis, certificate_ends (of the certificate that it shows)
    fence_devices  those that fence this node: id, runs_on, healthy (in Pacemaker's eyes), and of its last monitor checked (when),
                   checked_by, check_millis, failure, last_login (when it last worked)
    last_fencing   action, result (success, failed, pending), completed, delegate (who carried it out)
    certificates   file, ends
    versions       tandem, etcd, pacemaker
    collected      when the node's collector (tandem-collect.timer) last published; without it, what only that node knows is null
    free_bytes, size_bytes   of the file system with etcd's data
    moved_aside    data that was moved aside and lies there: path, since, bytes
Where nothing could be asked, as on a machine without a cluster, the verdict is unknown, and the only problem is status-unknown.
With --wait-for also reached: whether the state was. --watch --json prints each as one line. With --may-stop instead what
'tandem member plan stop' prints.";

/// Shows how the cluster is, on either node: the verdict, both nodes, and every problem with what to type
#[derive(Args)]
#[command(after_help = HELP)]
pub(super) struct Arguments {
    #[command(flatten)]
    resource: node::ResourceArgument,
    /// Asks again each TIME (2s): redraws on a terminal; elsewhere, and with --json, a line or document for each change
    #[arg(short, long, value_name = "TIME", num_args = 0..=1, default_missing_value = "2s",
        value_parser = interval, conflicts_with_all = ["wait_for", "may_stop", "check"])]
    watch: Option<Duration>,
    /// Waits until the cluster is so
    #[arg(long, value_name = "STATE", conflicts_with_all = ["may_stop", "check"])]
    wait_for: Option<Wanted>,
    /// How long --wait-for waits, such as 90s or 10m (10m)
    #[arg(long, value_name = "TIME", requires = "wait_for", value_parser = duration)]
    timeout: Option<Duration>,
    /// Answers whether NODE may be stopped now without a pause in the writes (another name of member plan stop)
    #[arg(long, value_name = "NODE", conflicts_with = "check")]
    may_stop: Option<String>,
    /// Prints one line with performance data, with the exit codes of monitoring plugins
    #[arg(long, conflicts_with = "json")]
    check: bool,
    /// Prints the cluster in this form
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
