//! Tests of each state in `tests/data/fixtures/cluster_written` as people and programs read it: `tests/data/golden/status`.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;

use super::document::Status;
use super::watch::{self, Wanted};
use super::{HELP, Refused, check};
use crate::admin::exit::Exit;
use crate::admin::report::{Report, golden};
use crate::operate::failure::Failure;
use crate::operate::health::samples;

fn directory() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/golden/status")
}

fn status(state: &str) -> Status {
    Status::of(&samples::read(state))
}

#[test]
fn every_state_is_told_as_it_was_read() {
    let mut names = BTreeSet::new();
    for (name, cluster) in samples::all() {
        golden::compare_in(&directory(), &name, &Status::of(&cluster));
        names.insert(name);
    }
    golden::compare("status", &status("peer-off"));
    for path in std::fs::read_dir(directory()).unwrap().map(|file| file.unwrap().path()).filter(|path| path.is_file()) {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        assert!(names.contains(&name), "{}: no state is called so", path.display());
    }
}

/// Asserts that the status text of each cluster that was captured in the lab equals its reviewed golden file.
#[test]
fn what_was_captured_is_told_as_it_was_read() {
    let directory = directory().join("captured");
    for (name, cluster) in samples::captured() {
        let status = Status::of(&cluster);
        if std::env::var_os("TANDEM_BLESS").is_some() || directory.join(format!("{name}.txt")).exists() {
            golden::compare_in(&directory, &name, &status);
        }
        assert!(!status.text().is_empty() && !check::line(&status).is_empty(), "{name}");
    }
}

#[test]
fn the_exit_code_is_the_verdicts() {
    let expected = [
        ("healthy", Exit::Done),
        ("failure-healed", Exit::Done),
        ("no-collector", Exit::Done),
        ("two-versions", Exit::Done),
        ("moved-aside", Exit::Done),
        ("stale-join-file", Exit::Done),
        ("no-backups", Exit::Done),
        ("image-pending", Exit::Done),
        ("primary-follows", Exit::Done),
        ("primary-unknown", Exit::Degraded),
        ("image-not-here", Exit::Degraded),
        ("learner", Exit::Degraded),
        ("peer-off", Exit::Degraded),
        ("peer-standby", Exit::Degraded),
        ("cluster-maintenance", Exit::Degraded),
        ("resource-unmanaged", Exit::Degraded),
        ("start-failed", Exit::Degraded),
        ("fence-device-disabled", Exit::Degraded),
        ("bmc-contradiction", Exit::Degraded),
        ("bmc-says-off", Exit::Degraded),
        ("password-copies", Exit::Degraded),
        ("lone-boot-not-enabled", Exit::Degraded),
        ("password-staged", Exit::Done),
        ("fencing-secret-differs", Exit::Degraded),
        ("pacemaker-stopped-here", Exit::Degraded),
        ("pacemaker-starting", Exit::Degraded),
        ("peer-unclean", Exit::Worst),
        ("resource-disabled", Exit::Worst),
        ("nospace", Exit::Worst),
        ("peer-etcd-hangs", Exit::Worst),
        ("peer-etcd-unreachable", Exit::Failed),
        ("pacemaker-hangs", Exit::Failed),
        ("cib-hangs", Exit::Failed),
        ("nothing-answers", Exit::Failed),
    ];
    for (state, exit) in expected {
        assert_eq!(status(state).exit(), exit, "{state}");
    }
}

fn keys(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(map) => map.iter().for_each(|(key, value)| {
            found.insert(key.clone());
            keys(value, found);
        }),
        Value::Array(list) => list.iter().for_each(|value| keys(value, found)),
        _ => {}
    }
}

#[test]
fn every_key_is_in_the_help() {
    let mut found = BTreeSet::from(["reached".to_owned()]);
    for (_, cluster) in samples::all() {
        keys(&serde_json::to_value(Status::of(&cluster)).unwrap(), &mut found);
    }
    let words: BTreeSet<&str> = HELP.split(|letter: char| !letter.is_alphanumeric() && letter != '_').collect();
    let missing: Vec<&String> = found.iter().filter(|key| !words.contains(key.as_str())).collect();
    assert!(missing.is_empty(), "the help says nothing of {missing:?}");
}

#[test]
fn a_plugins_line_is_one_line_in_every_state() {
    for (state, cluster) in samples::all() {
        let line = check::line(&Status::of(&cluster));
        assert!(!line.contains('\n') && line.matches('|').count() == 1, "{state}: {line}");
    }
    let line = check::line(&status("healthy"));
    let expected = "TANDEM OK - redundant: two voters since 2026-11-20 08:00:00Z (3 days) | problems=0;;;0 voters=2;2:;1:;0 \
                    'node1 lag'=0;;;0 'node1 database'=25165824B;;;0;2147483648 'node1 answer'=4ms;;;0";
    assert!(line.starts_with(expected), "{line}");
    let down = check::line(&status("nospace"));
    assert!(down.starts_with("TANDEM CRITICAL - down: no writes are taken; etcd raises the alarm NOSPACE"), "{down}");
}

#[test]
fn a_plugin_answers_with_its_own_codes_and_never_fails() {
    let codes =
        ["healthy", "learner", "nospace", "nothing-answers"].map(|state| check::run(Ok(status(state))).unwrap() as u8);
    assert_eq!(codes, [0, 1, 2, 3]);
    assert_eq!(check::run(Err(Failure("not root".to_owned()))).unwrap() as u8, 3);
}

#[test]
fn a_wait_ends_with_what_is_waited_for_or_with_its_time() {
    let mut states = ["peer-unclean", "peer-off"].into_iter();
    let waited = watch::wait(Wanted::Serving, Duration::from_secs(60), || Ok(status(states.next().unwrap()))).unwrap();
    assert_eq!(waited.exit(), Exit::Done);
    let in_vain = watch::wait(Wanted::Redundant, Duration::ZERO, || Ok(status("peer-off"))).unwrap();
    assert_eq!(in_vain.exit(), Exit::Degraded);
    assert!(in_vain.text().ends_with("not redundant within 0 s"), "{}", in_vain.text());
}

#[test]
fn a_change_is_what_somebody_would_want_to_know() {
    let mut cluster = samples::read("healthy");
    let before = watch::change(&Status::of(&cluster));
    cluster.at += 60;
    assert_eq!(watch::change(&Status::of(&cluster)), before, "time passes");
    assert_eq!(before, "redundant; node1 online, etcd leader; node2 online, etcd voter");
    let off = watch::change(&status("peer-off"));
    assert_eq!(off, "degraded; node1 online, etcd leader; node2 offline, etcd stopped; node-offline (node2)");
}

#[test]
fn a_program_reads_an_object_even_where_there_is_no_cluster() {
    let refused = Refused::because(Failure("this node belongs to no cluster".to_owned()));
    let read = serde_json::to_value(&refused).unwrap();
    assert_eq!((&read["verdict"], &read["nodes"]), (&"unknown".into(), &Value::Array(Vec::new())));
    let problem = &read["problems"][0];
    assert_eq!(
        (&problem["id"], &problem["text"]),
        (&"status-unknown".into(), &"this node belongs to no cluster".into())
    );
    assert!(refused.text().is_empty() && refused.complaint().is_some(), "people read one sentence");
}
