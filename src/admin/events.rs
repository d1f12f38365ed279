//! `tandem events`: prints the events that this node keeps. `tandem events test` checks that events reach every
//! recipient.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use serde::Serialize;

use super::exit::Exit;
use super::report::{Form, Report, show};
use super::since::Since;
use crate::adapters::command::Programs;
use crate::adapters::pacemaker;
use crate::operate::events::deliver::{self, Outcome, Places};
use crate::operate::failure::Failure;
use crate::operate::node::must_be_root;
use crate::os::clock;
use crate::os::output;
use crate::records::events::read::{self, Follower};
use crate::records::events::{self, Event, Repeat, Type, append, reason};

const HELP: &str = "\
The events of this node are of three sources: what Pacemaker reports to its alert agent here, what the resource agent
on this node decided, and what this node's collector observed. They are stored once this alert exists; a recipient
gets a copy of each:

  pcs alert create id=tandem path=/usr/libexec/tandem/alert
  pcs alert recipient add tandem value=journal

A recipient is journal, file:/PATH or https://HOST/PATH, to which each event is posted as one JSON object over
verified TLS. The collector brings the events to the recipients, so enable it on each node with
'systemctl enable --now tandem-collect.timer'.

With --json: events, one object for each. With --json --follow: one object for each event, when it happens.
  number   number of the event; each node counts its own
  time     when it happened, in RFC 3339
  type     Normal, Warning or Error
  reason   kind of the event, as one word
  node     the node that it is about
  message  what happened, as a sentence
  cause    equal in all events that have the same cause
  details  short texts for programs by name, only in events that have some";

const TEST_HELP: &str = "\
With --json: recipients, one object for each:
  recipient  the recipient; of a URL only the host
  delivered  how many events it got now
  waiting    how many events it has yet to get
  lost       how many events it never gets, because more were waiting than are kept
  failure    why it was not reached, or null";

/// Shows what happened on this node, the oldest event first
#[derive(Args)]
#[command(after_help = HELP, args_conflicts_with_subcommands = true)]
pub(super) struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    /// Begins at this time: 90m, 24h or 7d ago, yesterday, today, now, or "2026-11-23 08:30" (UTC)
    #[arg(long, value_name = "TIME", default_value = "24h", value_parser = Since::read, allow_hyphen_values = true)]
    since: Since,
    /// Also prints each new event when it happens, until the command is stopped
    #[arg(long)]
    follow: bool,
    /// Directory with the files of events
    #[arg(long, value_name = "DIR", default_value = events::DIRECTORY)]
    directory: PathBuf,
    #[command(flatten)]
    form: Form,
}

/// The subcommands of `tandem events`. Without a subcommand, `tandem events` lists events.
#[derive(Subcommand)]
enum Command {
    Test(Test),
}

/// Records a test event, and brings it to every recipient now
#[derive(Args)]
#[command(after_help = TEST_HELP)]
struct Test {
    #[command(flatten)]
    form: Form,
}

/// Interval at which `tandem events --follow` reads new events.
const PAUSE: Duration = Duration::from_millis(500);

/// The report of `tandem events`: the events of the requested period.
#[derive(Serialize)]
struct Shown {
    events: Vec<Event>,
}

impl Report for Shown {
    fn text(&self) -> String {
        self.events.iter().map(Event::line).collect::<Vec<_>>().join("\n")
    }
}

/// The report of `tandem events test`: whether each recipient was reached.
#[derive(Serialize)]
struct Tested {
    recipients: Vec<Outcome>,
}

impl Report for Tested {
    fn text(&self) -> String {
        let line = |outcome: &Outcome| {
            let Outcome { recipient, delivered, waiting, lost, failure } = outcome;
            let end = failure.as_ref().map_or_else(|| "reached".to_owned(), |why| format!("not reached: {why}"));
            let lost = if *lost == 0 { String::new() } else { format!(", {lost} lost") };
            format!("{recipient}: {end} ({delivered} delivered, {waiting} waiting{lost})")
        };
        self.recipients.iter().map(line).collect::<Vec<_>>().join("\n")
    }

    fn complaint(&self) -> Option<std::borrow::Cow<'_, str>> {
        let failed = self.recipients.iter().filter(|outcome| outcome.failure.is_some()).count();
        let all = self.recipients.len();
        (failed > 0).then(|| format!("{failed} of {all} recipients were not reached: see 'pcs alert'").into())
    }
}

pub(super) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    match &arguments.command {
        Some(Command::Test(test)) => show(&run_test(&Programs::default(), &Places::default())?, test.form),
        None if arguments.follow => follow(arguments).map(|()| Exit::Done),
        None => show(&Shown { events: since(arguments)? }, arguments.form),
    }
}

fn since(arguments: &Arguments) -> Result<Vec<Event>, Failure> {
    let directory = &arguments.directory;
    let mut events = read::all(directory).map_err(|error| Failure(error.to_string()))?;
    let begin = arguments.since.begin(clock::wall_millis());
    events.retain(|event| event.time >= begin);
    Ok(events)
}

/// Prints new events as they occur, until standard output is closed.
fn follow(arguments: &Arguments) -> Result<(), Failure> {
    let mut next = since(arguments)?;
    let last = next.last().map(|last| last.number);
    let newest = || read::all(&arguments.directory).map(|all| all.last().map_or(0, |last| last.number));
    let mut follower = Follower::after(last.map_or_else(newest, Ok)?);
    loop {
        for event in &next {
            let line = if arguments.form.json { serde_json::to_string(event)? } else { event.line() };
            if !output::is_read(line)? {
                return Ok(());
            }
        }
        clock::sleep(PAUSE);
        next = follower.next(&arguments.directory)?;
    }
}

fn run_test(programs: &Programs, places: &Places) -> Result<Tested, Failure> {
    must_be_root()?;
    let recipients = deliver::recipients(programs, places)?.ok_or_else(|| {
        Failure("no alert brings events: 'pcs alert create id=tandem path=/usr/libexec/tandem/alert'".to_owned())
    })?;
    if recipients.is_empty() {
        return Err(Failure("no recipient gets events: 'pcs alert recipient add tandem value=journal'".to_owned()));
    }
    let node = pacemaker::local_node(programs)?;
    let now = clock::wall_millis();
    let message = format!("a test from {node}");
    let event = Event::new(now, Type::Normal, reason::TEST, &node, message, format!("test-{node}-{now}"));
    append(&places.events, event, Repeat::Never)?;
    let outcomes = deliver::deliver(places, &recipients, true)?;
    Ok(Tested { recipients: outcomes })
}

#[cfg(test)]
mod tests {
    use super::super::report::golden;
    use super::*;
    use crate::adapters::command::fake_program;

    fn event(number: u64, kind: Type, reason: &str, message: &str) -> Event {
        let time = 1_795_442_801_843 + number * 1000;
        Event { number, ..Event::new(time, kind, reason, "node1", message.to_owned(), format!("cause {number}")) }
    }

    fn history_given_up(number: u64) -> Event {
        let message = "data that reaches term 7 index 15210, of its own since term 6 index 14877, is kept as \
                       member-history-* on node1: this node joins node2";
        let details = [
            ("node", "node1"),
            ("path", "/var/lib/etcd/member-history-0001-20261123T140652Z"),
            ("fork_revision", "12003"),
            ("last_revision", "12290"),
            ("kept_node", "node2"),
            ("diff", "tandem data-dir diff /var/lib/etcd/member-history-0001-20261123T140652Z live"),
        ];
        event(number, Type::Warning, reason::HISTORY_GIVEN_UP, message)
            .with_details(details.map(|(name, text)| (name, text.to_owned())))
    }

    #[test]
    fn events_are_shown_in_lines_and_as_an_object() {
        let events = vec![
            event(7, Type::Error, reason::NODE_OFFLINE, "node1 is lost: it left the cluster"),
            event(8, Type::Warning, reason::FENCING, "node1 was fenced: Operation reboot of node1 by node2: OK"),
            event(9, Type::Normal, reason::NODE_ONLINE, "node1 is a member of the cluster"),
            event(10, Type::Normal, reason::LEADER, "the etcd of node1 leads, in term 8"),
            history_given_up(11),
        ];
        golden::compare("events", &Shown { events });
    }

    #[test]
    fn a_test_tells_of_each_recipient() {
        let outcome = |recipient: &str, failure: Option<&str>| Outcome {
            recipient: recipient.to_owned(),
            delivered: u64::from(failure.is_none()),
            waiting: u64::from(failure.is_some()) * 3,
            lost: 0,
            failure: failure.map(str::to_owned),
        };
        let why = "it answered 503 Service Unavailable";
        let tested =
            Tested { recipients: vec![outcome("journal", None), outcome("https://hooks.example.com", Some(why))] };
        assert_eq!(tested.complaint().unwrap(), "1 of 2 recipients were not reached: see 'pcs alert'");
        golden::compare("events-test", &tested);
    }

    #[test]
    fn without_an_alert_or_a_recipient_the_sentence_says_what_to_type() {
        if must_be_root().is_err() {
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let places = Places { events: dir.path().join("events"), state: dir.path().join("state"), ..Places::default() };
        for (script, words) in [
            ("exit 105", "no alert brings events"),
            (
                "echo '<alerts><alert id=\"a\" path=\"/usr/libexec/tandem/alert\"/></alerts>'",
                "no recipient gets events",
            ),
        ] {
            let programs = fake_program(dir.path(), "cibadmin", script);
            let Failure(why) = run_test(&programs, &places).err().unwrap();
            assert!(why.starts_with(words), "{why}");
        }
    }
}
