//! `tandem fencing test`: fences a node to prove that fencing works, and to measure how long each phase takes.

mod both;
mod last;

use std::fmt::Write as _;
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use clap::{ArgGroup, Args};
use indicatif::ProgressBar;
use serde::Serialize;

use super::check;
use crate::adapters::command::Programs;
use crate::adapters::pacemaker::attributes;
use crate::adapters::pacemaker::seen::Configuration;
use crate::adapters::ssh::host;
use crate::admin::exit::Exit;
use crate::admin::node::ResourceArgument;
use crate::admin::prompt::{Answers, Prompt};
use crate::admin::report::{Form, Report, show};
use crate::base::duration;
use crate::operate::cluster::Cluster;
use crate::operate::failure::Failure;
use crate::operate::fencing::record::{self, Record};
use crate::operate::fencing::watch::{FencingSeen, Watch};
use crate::operate::fencing::{seen, there, with_node};
use crate::operate::health::Problem;
use crate::operate::health::fencing::{Checked, Level};
use crate::operate::node;
use crate::os::clock::{self, Deadline};

const HELP: &str = "\
Type it on the other node than the one to fence, at a quiet time. The command refuses if 'tandem fencing check' finds that
fencing would fail, or if etcd has not two voters. It prints what will happen, and asks for the node's name (--confirm NODE
answers that). Then Pacemaker fences the node: it is switched off and on again while it serves. The etcd of this node takes
no writes for some seconds.

The command prints each phase when it is reached. The test passes once the node was fenced, and votes again with an etcd
that was started since. The table has seconds since the request, next to those of the test before. 'writes possible' is
when etcd answered a linearizable read again after the longest pause; the command sends one each 100 ms. A '-' is a phase
that was not observed. For example, 'Corosync member' stays '-' if the node is back before Corosync has missed it.

You may end the command at any time: Pacemaker finishes what it has begun, and nothing has to be undone. Each test that was
carried out is a line of /var/lib/tandem/fencing-tests.jsonl. The time of the last one that passed is the node attribute
etcd_fencing_tested.

--both tests both nodes, each by the other one. It fences the other node first, and needs --ssh to that node. Once that
node's test has passed and 'tandem status' reports redundant, it fences this node, in its unit tandem-fencing-test. Your
login here ends then. When this node is back, type 'tandem fencing test --last --ssh HOST'. If the first half does not
pass, the second one does not begin.

--last fences no node, and prints the last test of both nodes. Each node has the records of the tests that it conducted,
so add --ssh for those of the other node.

Exit codes:
  0  passed; of --last and --both: both passed
  4  not fenced, or not back in time; of --last and --both: the last test of a node did not pass
  3  of --last and --both: a node was not tested, or the other node was not asked for its record
  1  refused, and nothing was done

With --json:
  node, by, at  the node that was fenced, the node that fenced it, and when, in RFC 3339
  passed, why   whether the test passed, and else the reason (null if it passed)
  seconds       the table, null for what was not observed: off (Off was proven), told (Pacemaker had the result), writes,
                longest_pause, on, member (of Corosync), learner, voter, clean (nothing was left to clean up)
  tandem        version of Tandem
  before        the test before, or null
  next          what to type now
With --last --json, and at the end of --both:
  here          this node
  halves        for each direction: node, by, test (the last one with the keys above, or null if it is not known) and
                passed_at (when one last passed, or null)
  why           why --both ended early, or null";

/// Fences the other node, to prove that fencing works; asks for the node's name
#[derive(Args)]
#[command(after_help = HELP, group(ArgGroup::new("halves").args(["both", "last"])))]
pub(in crate::admin) struct Arguments {
    /// The node to fence, which must be the other one
    #[arg(value_name = "NODE", required_unless_present = "halves", conflicts_with = "last")]
    node: Option<String>,
    /// Tests both nodes: fences the other one, which then fences this one
    #[arg(long)]
    both: bool,
    /// Fences no node, and prints the last test of both nodes
    #[arg(long)]
    last: bool,
    /// The other node, for ssh; without it, --last prints only the tests that this node conducted
    #[arg(long, value_name = "[USER@]HOST", value_parser = host, requires = "halves")]
    ssh: Option<String>,
    /// Starts the test in a systemd unit, and ends at once
    #[arg(long, hide = true, conflicts_with = "halves")]
    in_unit: bool,
    /// Longest time until the node votes again, such as 90s or 20m
    #[arg(long, value_name = "TIME", default_value = "20m", value_parser = duration)]
    timeout: Duration,
    #[command(flatten)]
    answers: Answers,
    #[command(flatten)]
    resource: ResourceArgument,
    #[command(flatten)]
    pub form: Form,
}

/// The report of `tandem fencing test`.
#[derive(Serialize)]
pub(super) struct Tested {
    #[serde(flatten)]
    record: Record,
    before: Option<Record>,
    next: String,
}

impl Report for Tested {
    fn text(&self) -> String {
        let Record { node, seconds, why, .. } = &self.record;
        let mut text = match why {
            None => format!("{node} was fenced and is back\n\n"),
            Some(why) => format!("NOT PASSED: {why}\n\n"),
        };
        let before = self.before.as_ref().map(|before| before.seconds.rows());
        let shown = |time: Option<f64>| time.map_or_else(|| "-".to_owned(), |time| format!("{time:.1}"));
        let when = self.before.as_ref().and_then(|before| before.at.get(..10)).unwrap_or_default();
        let _ = writeln!(text, "{:<26} {:>8} {when:>12}", "seconds", "now");
        for (at, (name, time)) in seconds.rows().into_iter().enumerate() {
            let then = before.and_then(|rows| rows.get(at).map(|(_, time)| shown(*time))).unwrap_or_default();
            let _ = writeln!(text, "{:<26} {:>8} {then:>12}", name, shown(time));
        }
        let _ = write!(text, "\nnow {}", self.next);
        text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
    }

    fn exit(&self) -> Exit {
        if self.record.passed { Exit::Done } else { Exit::Worst }
    }
}

pub(super) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let form = arguments.form;
    if arguments.last {
        return show(&last::run(arguments)?, form);
    }
    let cluster = seen::look(arguments.resource.id());
    if arguments.both {
        return both::run(arguments, &cluster);
    }
    let node = arguments.node.as_deref().unwrap_or_default();
    if arguments.in_unit { in_a_unit(arguments, &cluster, node) } else { show(&one(arguments, &cluster, node)?, form) }
}

/// Checks that the fencing test of `node` is allowed, and asks the operator. Starts the test in a systemd unit of its own.
fn in_a_unit(arguments: &Arguments, cluster: &Cluster, node: &str) -> Result<Exit, Failure> {
    target(cluster, node)?;
    may_be_tested(&check::look(cluster, None, &arguments.resource)?, node)?;
    let prompt = Prompt::new(&arguments.answers, arguments.form);
    prompt.name(&format!("Type the name of the node that is to be fenced ({node})"), node)?;
    there::in_a_unit(&Programs::default(), node, arguments.timeout, arguments.resource.id())?;
    prompt.tell(format_args!("{}.service fences {node}", there::UNIT))?;
    Ok(Exit::Done)
}

/// Asks the operator, has `node` fenced, and observes it until it votes again.
fn one(arguments: &Arguments, cluster: &Cluster, node: &str) -> Result<Tested, Failure> {
    let configuration = target(cluster, node)?;
    let checked = check::look(cluster, None, &arguments.resource)?;
    may_be_tested(&checked, node)?;
    let context = node::context(arguments.resource.id())?;
    let before = record::before(Path::new(record::PATH), node);
    let prompt = Prompt::new(&arguments.answers, arguments.form);
    announce(&prompt, &checked, configuration, node, before.as_ref())?;
    if arguments.both {
        both::announce(&prompt, &cluster.here, node)?;
    }
    prompt.name(&format!("Type the name of the node that is to be fenced ({node})"), node)?;
    let at = clock::wall_millis();
    let programs = Programs::default();
    let watch = Watch {
        programs: &programs,
        resource: arguments.resource.id(),
        endpoint: &context.own_endpoint,
        credentials: context.credentials(),
        node,
        id: corosync_id(cluster, node),
        end: Deadline::after(arguments.timeout),
        // A table follows, so a line that cannot be written loses nothing.
        reached: &|phase, at| drop(prompt.tell(format_args!("{:>8.1} s  {phase}", at.as_secs_f64()))),
    };
    let seen = watch.fence(&ProgressBar::new_spinner());
    let record = record_of(&cluster.here, node, at, seen);
    keep(&prompt, &programs, &record, at)?;
    let next = next(&cluster.here, node, &record, arguments.both);
    Ok(Tested { record, before, next })
}

/// Returns Corosync's id of `node`, as Pacemaker reports it; 0 if it is unknown. Pacemaker has the id of every node that was ever online.
fn corosync_id(cluster: &Cluster, node: &str) -> u32 {
    let nodes = cluster.pacemaker.known().map(|pacemaker| pacemaker.nodes.as_slice()).unwrap_or_default();
    nodes.iter().find(|one| one.name == node).and_then(|one| one.id.parse().ok()).unwrap_or_default()
}

/// Returns the cluster's configuration. Fails unless `node` belongs to the cluster and is not this node.
fn target<'a>(cluster: &'a Cluster, node: &str) -> Result<&'a Configuration, Failure> {
    let configuration = with_node(cluster, node)?;
    let nodes = &configuration.nodes;
    if node == cluster.here {
        let other = nodes.iter().find(|one| *one != node).map_or("the other node", String::as_str);
        return Err(Failure(format!(
            "this is {node}, and no node fences itself: type 'tandem fencing test {node}' on {other}"
        )));
    }
    Ok(configuration)
}

/// Refuses a fencing test of `node` if fencing would fail, or would cost more than a short pause in the writes.
fn may_be_tested(checked: &Checked, node: &str) -> Result<(), Failure> {
    const NEEDED: [&str; 5] =
        ["not-two-voters", "node-offline", "node-pending", "pacemaker-stopped", "pacemaker-starting"];
    let stops = |problem: &&Problem| match Level::of(problem) {
        Level::Failure => true,
        Level::Unknown => problem.id != "not-asked",
        Level::Ok | Level::Notice | Level::Warning => NEEDED.contains(&problem.id),
    };
    match checked.findings.iter().find(stops) {
        None => Ok(()),
        Some(finding) => {
            Err(Failure(format!("{node} is not fenced for a test now: {}; see 'tandem fencing check'", finding.text)))
        }
    }
}

/// Prints what the test will do, and each finding about fencing as a warning.
fn announce(
    prompt: &Prompt<'_>,
    checked: &Checked,
    configuration: &Configuration,
    node: &str,
    before: Option<&Record>,
) -> Result<(), Failure> {
    for finding in &checked.findings {
        prompt.tell(format_args!("warning: {}", finding.text))?;
    }
    let devices = configuration.fence_devices.iter().filter(|device| device.targets.iter().any(|one| one == node));
    let devices: Vec<&str> = devices.map(|device| device.resource.id.as_str()).collect();
    prompt.tell(format_args!(
        "{node} is switched off, without a shutdown, and on again, by {}. Everything that runs there ends.",
        devices.join(" and ")
    ))?;
    let pause = before.and_then(|before| before.seconds.longest_pause);
    let pause = pause.map_or_else(|| "some seconds".to_owned(), |pause| format!("{pause:.1} s, as in the test before"));
    prompt.tell(format_args!("etcd takes no writes for {pause}; nothing that it acknowledged is lost."))?;
    prompt.tell(format_args!(
        "{node} boots, joins as a learner, and votes again by itself. Until then this node is alone."
    ))
}

/// Returns the record of a fencing test that began at `at`, in milliseconds since 1970.
fn record_of(here: &str, node: &str, at: u64, seen: FencingSeen) -> Record {
    let FencingSeen { phases, why } = seen;
    Record {
        at: humantime::format_rfc3339_millis(UNIX_EPOCH + Duration::from_millis(at)).to_string(),
        node: node.to_owned(),
        by: here.to_owned(),
        passed: why.is_none(),
        why,
        seconds: phases,
        tandem: crate::os::version::VERSION.to_owned(),
    }
}

/// Stores the record of a fencing test in a file. Also stores a passed test in a node attribute. If the record cannot be stored, only
/// prints a warning, because the node was fenced already.
fn keep(prompt: &Prompt<'_>, programs: &Programs, record: &Record, at: u64) -> Result<(), Failure> {
    if let Err(error) = record::add(Path::new(record::PATH), record) {
        prompt.tell(format_args!("warning: {} cannot be written: {error}", record::PATH))?;
    }
    if record.passed
        && let Err(error) = attributes::publish_fencing_test(programs, &record.node, at / 1_000)
    {
        prompt.tell(format_args!("warning: the node's attribute is not written: {error}"))?;
    }
    Ok(())
}

/// Returns the operator's next step after a fencing test. After a passed test, it is the test in the other direction; otherwise, a
/// check.
fn next(here: &str, node: &str, record: &Record, is_both: bool) -> String {
    if record.passed && is_both {
        format!("{node} fences {here}")
    } else if record.passed {
        format!("type on {node}: tandem fencing test {here}")
    } else if record.seconds.told.is_none() {
        "type: tandem fencing check".to_owned()
    } else {
        "type: tandem status".to_owned()
    }
}

#[cfg(test)]
mod tests;
