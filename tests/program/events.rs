//! The alert agent as Pacemaker calls it: many calls at once, for several recipients, without a loss.

#![expect(clippy::disallowed_methods, reason = "the tests start the binary as Pacemaker does")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::BTreeSet;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tandem::operate::events::deliver::{self, Places, Trust};
use tandem::records::events::{Event, read};

/// The number of alerts that the test sends to two recipients each.
const ALERTS: u64 = 100;

/// Returns the path of the alert agent: a link to the binary, as the package installs it.
fn agent(dir: &Path) -> PathBuf {
    let folder = dir.join("libexec/tandem");
    std::fs::create_dir_all(&folder).unwrap();
    let link = folder.join("alert");
    symlink(env!("CARGO_BIN_EXE_tandem"), &link).unwrap();
    link
}

/// Returns the environment variables of an alert about a monitor that failed a moment ago. An older alert might not be delivered, because
/// a new recipient gets only the events of the last hour.
fn variables(number: u64) -> Vec<(String, String)> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let fixed = [
        ("kind", "resource"),
        ("node", "node1"),
        ("rsc", "etcd"),
        ("task", "monitor"),
        ("interval", "5000"),
        ("rc", "7"),
        ("target_rc", "0"),
        ("status", "0"),
        ("desc", "not running"),
    ];
    let fixed = fixed.map(|(name, value)| (name, value.to_owned()));
    let moment = [("timestamp_epoch", now.to_string()), ("timestamp_usec", format!("{number:06}"))];
    fixed.into_iter().chain(moment).map(|(name, value)| (format!("CRM_alert_{name}"), value)).collect()
}

fn call(agent: &Path, events: &Path, number: u64) -> Option<i32> {
    let mut command = Command::new(agent);
    command.env_clear().stdin(Stdio::null()).env("events_directory", events).envs(variables(number));
    command.status().unwrap().code()
}

/// The script that calls the alert agent for two recipients of each alert, all at once, and waits for the calls. It runs in a
/// separate shell, because other tests of this process write programs. Such a program cannot start while a new child still
/// has it open for writing.
const ALL_AT_ONCE: &str = "
children=
for number in $(seq 100000 $((99999 + ALERTS))); do
    for recipient in journal file:/x; do
        CRM_alert_timestamp_usec=$number CRM_alert_recipient=$recipient \"$AGENT\" &
        children=\"$children $!\"
    done
done
for child in $children; do wait $child || exit 1; done";

#[test]
fn two_hundred_at_once_lose_no_event_and_tell_each_once() {
    let dir = tempfile::tempdir().unwrap();
    let (agent, events) = (agent(dir.path()), dir.path().join("events"));
    let began = Instant::now();
    let mut shell = Command::new("sh");
    shell.args(["-c", ALL_AT_ONCE]).env("AGENT", &agent).env("ALERTS", ALERTS.to_string());
    let output = shell.env("events_directory", &events).envs(variables(0)).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let took = began.elapsed();
    let told = read::all(&events).unwrap();
    let causes: BTreeSet<&str> = told.iter().map(|event| event.cause.as_str()).collect();
    assert_eq!((told.len() as u64, causes.len() as u64), (ALERTS, ALERTS));
    let numbers: Vec<u64> = told.iter().map(|event| event.number).collect();
    assert_eq!(numbers, (1..=ALERTS).collect::<Vec<_>>());
    // The limit is for a busy machine; Pacemaker waits 30 s for each call.
    assert!(took < Duration::from_secs(20), "{took:?}");
    let one = Instant::now();
    assert_eq!(call(&agent, &events, ALERTS), Some(0), "without a recipient");
    assert!(one.elapsed() < Duration::from_secs(1), "{:?}", one.elapsed());
    assert_eq!(read::all(&events).unwrap().len() as u64, ALERTS + 1);
}

#[test]
fn a_recipient_that_was_down_gets_all_of_them_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let (agent, events) = (agent(dir.path()), dir.path().join("events"));
    let later = dir.path().join("later/events");
    let places = Places { events: events.clone(), state: dir.path().join("state"), trust: Trust::System };
    let recipients = [format!("file:{}", later.display())];
    for number in 0..20 {
        assert_eq!(call(&agent, &events, number), Some(0));
        if number % 5 == 0 {
            let outcome = deliver::deliver(&places, &recipients, true).unwrap().remove(0);
            assert!(outcome.failure.is_some() && outcome.delivered == 0);
        }
    }
    std::fs::create_dir(dir.path().join("later")).unwrap();
    deliver::deliver(&places, &recipients, true).unwrap();
    let text = std::fs::read_to_string(later).unwrap();
    let brought: Vec<u64> = text.lines().map(|line| serde_json::from_str::<Event>(line).unwrap().number).collect();
    assert_eq!(brought, (1..=20).collect::<Vec<_>>());
}

#[test]
fn who_is_called_without_an_alert_says_who_calls_it_and_where_nothing_can_be_kept_it_fails() {
    let dir = tempfile::tempdir().unwrap();
    let agent = agent(dir.path());
    let by_hand = Command::new(&agent).env_clear().output().unwrap();
    assert_eq!(by_hand.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&by_hand.stderr).contains("pcs alert create id=tandem"));
    assert_eq!(call(&agent, &dir.path().join("no/such/directory"), 1), Some(1));
    // The name `alert` by itself is no program.
    let other = dir.path().join("alert");
    symlink(env!("CARGO_BIN_EXE_tandem"), &other).unwrap();
    let unknown = Command::new(&other).output().unwrap();
    assert!(String::from_utf8_lossy(&unknown.stderr).contains("no program is called 'alert'"));
}
