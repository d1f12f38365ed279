//! The dispatch of the binary by the name under which it is started.

#![expect(clippy::disallowed_methods, reason = "the tests start the binary as a user would")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Output};

fn started_as(name: &str, args: &[&str]) -> Output {
    let dir = tempfile::tempdir().unwrap();
    let link = dir.path().join(name);
    symlink(env!("CARGO_BIN_EXE_tandem"), &link).unwrap();
    run(&link, args)
}

fn run(path: &Path, args: &[&str]) -> Output {
    Command::new(path).args(args).env_remove("OCF_RESKEY_node_ip_map").output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn the_name_decides_else_the_first_argument() {
    let by_name = started_as("podman-etcd", &["meta-data"]);
    let by_argument = started_as("tandem", &["podman-etcd", "meta-data"]);
    let by_any_name = started_as("something", &["podman-etcd", "meta-data"]);
    assert!(text(&by_name.stdout).contains("<resource-agent name=\"podman-etcd\""));
    assert_eq!(by_name.stdout, by_argument.stdout);
    assert_eq!(by_name.stdout, by_any_name.stdout);
}

#[test]
fn in_the_place_of_what_it_replaces_it_is_the_same_program() {
    let own = started_as("fence_redfish_rs", &["-o", "metadata"]);
    assert_eq!(started_as("fence_redfish", &["-o", "metadata"]).stdout, own.stdout);
}

/// Asserts that a closed pipe on stdout is no failure, as in `tandem --list | head -n 0`.
#[test]
fn a_reader_that_stops_early_is_no_fault() {
    let calls: [&[&str]; 5] =
        [&["--list"], &["--version"], &["help"], &["podman-etcd", "meta-data"], &["podman-etcd", "usage"]];
    for words in calls {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = Command::new(env!("CARGO_BIN_EXE_tandem")).args(words).stdout(writer).output().unwrap();
        assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), String::new()), "{words:?}");
    }
}

#[test]
fn the_model_needs_no_reader_either() {
    let scenario = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/model/scenarios/learner-boots-alone.scn");
    for words in [&["help"][..], &["run", scenario]] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = Command::new(env!("CARGO_BIN_EXE_tandem-sim")).args(words).stdout(writer).output().unwrap();
        assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), String::new()), "{words:?}");
    }
}

#[test]
fn the_model_prints_its_own_name() {
    let run = |words: &[&str]| run(Path::new(env!("CARGO_BIN_EXE_tandem-sim")), words);
    let help = run(&["check", "--help"]);
    assert!(help.status.success() && text(&help.stdout).contains("Usage: tandem-sim check [OPTIONS]"), "{help:?}");
    let missing = run(&["run", "/nowhere.scn"]);
    assert_eq!(missing.status.code(), Some(1));
    assert!(text(&missing.stderr).starts_with("tandem-sim: /nowhere.scn: "), "{missing:?}");
    assert_eq!(run(&["check", "--no-such"]).status.code(), Some(2));
}

#[test]
fn the_models_old_name_leads_to_the_new_one() {
    let calls: [&[&str]; 5] = [
        &["sim"],
        &["sim", "--help"],
        &["sim", "help"],
        &["sim", "check", "--faults", "2", "--no-such"],
        &["sim", "run", "--", "secret.scn"],
    ];
    for words in calls {
        let output = started_as("tandem", words);
        assert_eq!((output.status.code(), text(&output.stdout)), (Some(2), String::new()), "{words:?}");
        let told = text(&output.stderr);
        assert!(told.starts_with("tandem: the model is a program of its own: "), "{words:?}: {told}");
        assert!(told.contains("--bin tandem-sim") && !told.contains("secret"), "{words:?}: {told}");
        assert_eq!(told.lines().count(), 1, "{words:?}: {told}");
    }
}

/// Asserts that a failure has its exit code even if stderr is closed. The code is then the only report of the failure.
#[test]
fn a_failure_that_nobody_hears_has_its_code() {
    for (words, code) in [(&["data-dir", "show", "/nowhere"][..], 1), (&["podman-etcd", "no-action"], 3)] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = Command::new(env!("CARGO_BIN_EXE_tandem"));
        assert_eq!(command.args(words).stderr(writer).status().unwrap().code(), Some(code), "{words:?}");
    }
}

#[test]
fn names_match_exactly() {
    for name in ["podman-etcd2", "my-podman-etcd", "podman-etc", "fence_redfish_r", "fence_redfis"] {
        let output = started_as(name, &["meta-data"]);
        assert_eq!(output.status.code(), Some(1), "{name}");
        let stderr = text(&output.stderr);
        assert!(stderr.contains(&format!("no program is called '{name}'")), "{stderr}");
        assert!(
            stderr.contains(
                "podman-etcd, fence_redfish_rs, tandem-release-locks, tandem-alert, watchdog-mux, fencing-agent, tandem"
            ),
            "{stderr}"
        );
    }
}

#[test]
fn the_applets_are_listed() {
    let list = text(&started_as("tandem", &["--list"]).stdout);
    let names: Vec<&str> = list.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(
        names,
        [
            "podman-etcd",
            "fence_redfish_rs",
            "tandem-release-locks",
            "tandem-alert",
            "watchdog-mux",
            "fencing-agent",
            "tandem"
        ]
    );
}

#[test]
fn an_action_that_does_not_exist_is_unimplemented() {
    let output = started_as("podman-etcd", &["migrate_to"]);
    assert_eq!(output.status.code(), Some(3));
    assert!(text(&output.stderr).contains("ocf-exit-reason:'migrate_to' is no action of this agent"));
}

#[test]
fn a_missing_parameter_is_one_sentence_and_the_code_for_it() {
    for action in ["start", "validate-all"] {
        let output = started_as("podman-etcd", &[action]);
        assert_eq!(output.status.code(), Some(6), "{action}");
        let reasons: Vec<String> = text(&output.stderr)
            .lines()
            .filter(|line| line.starts_with("ocf-exit-reason:"))
            .map(str::to_owned)
            .collect();
        assert_eq!(reasons.len(), 1, "{action}");
        assert!(reasons[0].contains("is not set: 'pcs resource update etcd "), "{}", reasons[0]);
    }
}
