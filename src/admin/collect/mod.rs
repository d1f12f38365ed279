//! `tandem collect`: one observation of the cluster, for readers that were not there. `tandem-collect.timer` starts it.

use std::fmt::Display;
use std::path::{Path, PathBuf};

use clap::Args;
use log::{LevelFilter, warn};
use serde::Serialize;

use super::report::{Form, Report};
use crate::adapters::command::Programs;
use crate::operate;
use crate::operate::collect::openshift;
use crate::operate::collect::seen::{self, CollectSeen};
pub(super) use crate::operate::collect::status::PATH as KEPT;
use crate::operate::collect::{machines, passwords, status};
use crate::operate::events::deliver::{self, Outcome, Places};
use crate::operate::failure::Failure;
use crate::operate::members::watch;
use crate::operate::node::{must_be_root, no_cluster};
use crate::os::logging;
use crate::records::events::{Event, Repeat, append, make_directory};

const HELP: &str = "\
The command publishes what this node knows of itself in a private node attribute, for which Pacemaker writes no CIB. It
replaces /var/lib/tandem/status.json and the metrics, records an event for each change since its last run, and brings
events to their recipients. If a BMC's password file has two lines, it keeps the valid one ('tandem fencing update').
With the resource's parameter machine_hooks=1 it keeps the hooks of 'tandem member watch'. A part that fails does not
keep the others from being done. tandem-collect.timer runs the command every 30 seconds:

  systemctl enable --now tandem-collect.timer

With --pacemakercluster, the collector of the designated controller also writes the status of OpenShift's object
'cluster' of kind PacemakerCluster. It leaves the object alone while the lastUpdated of another writer is younger than
two minutes. To have the timer do so, type 'systemctl edit tandem-collect.service' and enter:

  [Service]
  ExecStart=
  ExecStart=/usr/sbin/tandem collect --pacemakercluster

With --json:
  status            path of the status file, or null if it was not written
  metrics           path of the metrics file, or null if it was not written
  recipients        as in 'tandem events test'
  pacemakercluster  the lastUpdated that was written, or null
  problems          what could not be done, in sentences";

/// Observes the cluster once, and publishes the result as status, metrics and events
#[derive(Args)]
#[command(after_help = HELP)]
pub(super) struct Arguments {
    /// Textfile directory of node_exporter; the default is the first of the usual ones that exists, else none
    #[arg(long, value_name = "DIR")]
    textfile: Option<PathBuf>,
    /// Id of the etcd resource; needed only if the cluster has several
    #[arg(long, value_name = "ID")]
    resource: Option<String>,
    /// Also writes the status of OpenShift's PacemakerCluster, if this node is the designated controller
    #[arg(long)]
    pacemakercluster: bool,
    #[command(flatten)]
    pub form: Form,
}

/// The report of `tandem collect`.
#[derive(Default, Serialize)]
pub(super) struct Collected {
    status: Option<PathBuf>,
    metrics: Option<PathBuf>,
    recipients: Vec<Outcome>,
    pacemakercluster: Option<String>,
    problems: Vec<String>,
    /// A message about this machine for the journal, such as that it belongs to no cluster; `None` if there is none.
    #[serde(skip)]
    note: Option<String>,
}

impl Report for Collected {
    /// Returns the lines for the journal. There are none if nothing changed since the last run.
    fn text(&self) -> String {
        let delivered = self.recipients.iter().filter(|outcome| outcome.delivered > 0);
        let brought = delivered.map(|outcome| format!("{}: {} events", outcome.recipient, outcome.delivered));
        self.note.clone().into_iter().chain(brought).collect::<Vec<_>>().join("\n")
    }

    fn complaint(&self) -> Option<std::borrow::Cow<'_, str>> {
        (!self.problems.is_empty()).then(|| self.problems.join("; ").into())
    }
}

impl Collected {
    /// Returns the value of `result`. If it is an error, adds the error to the report's problems and returns `None`.
    fn noted<T, E: Display>(&mut self, result: Result<T, E>) -> Option<T> {
        result.map_err(|error| self.problems.push(error.to_string())).ok()
    }
}

pub(super) fn run(arguments: &Arguments) -> Result<Collected, Failure> {
    must_be_root()?;
    let tag = "tandem-collect".to_owned();
    logging::init(logging::Settings { tag, stderr: LevelFilter::Warn, syslog: LevelFilter::Off, file: None });
    let programs = Programs::default();
    let mut done = Collected::default();
    let (cluster, published) = seen::look(&programs, arguments.resource.as_deref());
    done.noted(published);
    let path = Path::new(status::PATH);
    let before = status::read(path);
    let (object, change) = before
        .as_ref()
        .map_or((None, None), |before| (before.pacemakercluster.as_ref(), before.member_change.as_ref()));
    let seen = CollectSeen::of(cluster, object, change);
    let events = changes(before.as_ref(), &seen);
    let places = Places::default();
    done.noted(make_directory(&places.events));
    for event in events {
        done.noted(append(&places.events, event, Repeat::Never));
    }
    let last = before.as_ref().and_then(|before| before.written.as_deref());
    if arguments.pacemakercluster
        && let Some(openshift::Outcome::Written(at)) = done.noted(openshift::write(&seen, last))
    {
        done.pacemakercluster = Some(at);
    }
    // After the events, so that the next run reports those that an interrupted run did not append.
    let last = done.pacemakercluster.clone().or_else(|| last.map(str::to_owned));
    let written = done.noted(status::write(path, &seen, last.as_deref()));
    done.status = written.map(|()| path.to_owned());
    let counts = done.noted(deliver::count(&places)).unwrap_or_default();
    let metrics = done.noted(seen.tell_prometheus(counts, arguments.textfile.as_deref()));
    done.metrics = metrics.flatten();
    passwords::settle(&programs, &seen.cluster);
    // After the metrics, because an API that hangs takes its time.
    let kept = done.noted(machines::keep(&seen.cluster, arguments.resource.as_deref()).map_err(|Failure(why)| why));
    let kept = kept.unwrap_or_default();
    done.problems.extend(kept.problems.iter().cloned());
    for (event, repeat) in watch::events(seen.cluster.at, &kept) {
        done.noted(append(&places.events, event, repeat));
    }
    done.note = seen.cluster.configuration.is_absent().then(|| no_cluster().0);
    // The CIB lists the recipients. While Pacemaker is stopped, events wait, which is no problem.
    if !seen.cluster.pacemaker.is_absent() {
        bring(&programs, &places, &mut done);
    }
    Ok(done)
}

fn changes(before: Option<&status::Before>, seen: &CollectSeen) -> Vec<Event> {
    let mut events = operate::events::seen::changes(before.map(|before| &before.cluster), &seen.cluster);
    let verdict = seen.verdict();
    events.extend(operate::events::seen::verdict(
        &seen.cluster,
        before.map(|before| before.health.verdict.as_str()),
        &verdict,
    ));
    events
}

/// Delivers the waiting events to all recipients. Only logs an unreachable recipient, because this node is not at fault.
fn bring(programs: &Programs, places: &Places, done: &mut Collected) {
    let named = deliver::recipients(programs, places);
    let Some(recipients) = done.noted(named).flatten() else { return };
    let outcomes = done.noted(deliver::deliver(places, &recipients, false));
    done.recipients = outcomes.unwrap_or_default();
    for Outcome { recipient, waiting, failure, .. } in &done.recipients {
        if let Some(why) = failure {
            warn!("{recipient} cannot be reached, and {waiting} events wait: {why}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::report::golden;
    use super::*;

    #[test]
    fn what_was_done_is_told_where_there_is_something_to_tell() {
        assert_eq!(Collected::default().text(), "");
        assert_eq!(Collected::default().complaint(), None);
        let alone = Collected { note: Some(no_cluster().0), ..Collected::default() };
        assert!(alone.text().starts_with("this node belongs to no cluster"));
        let outcome = |recipient: &str, delivered| Outcome {
            recipient: recipient.to_owned(),
            delivered,
            waiting: 0,
            lost: 0,
            failure: None,
        };
        let collected = Collected {
            status: Some(status::PATH.into()),
            metrics: Some("/var/lib/node_exporter/textfile_collector/tandem.prom".into()),
            recipients: vec![outcome("journal", 2), outcome("file:/var/log/tandem-events", 0)],
            pacemakercluster: Some("2026-11-23T07:06:41Z".to_owned()),
            problems: vec!["/var/lib/tandem/status.json: No space left on device (os error 28)".to_owned()],
            note: None,
        };
        assert!(collected.complaint().is_some_and(|why| why.contains("No space left")));
        golden::compare("collect", &collected);
    }
}
