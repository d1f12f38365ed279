//! Decisions of agents on real hosts, decided again by this build. The lab made the records under
//! `tests/data/fixtures/decisions/lab`. If a rule has changed on purpose, renew them with
//! `LAB_KEEP_DECISIONS=$PWD/tests/data/fixtures/decisions/lab cargo lab run both_powered_off_and_on
//! graceful_stop_and_return_follower left_behind node_failure_leader`.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tandem::decide::{Effect, Next, RunMode};
use tandem::records::decision_log::{self, Entry};

/// Returns the decisions that were recorded in the lab, with the path of each file.
fn recorded() -> Vec<(PathBuf, Vec<Entry>)> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/fixtures/decisions/lab");
    let paths = fs::read_dir(dir).unwrap().map(|file| file.unwrap().path());
    paths
        .map(|path| {
            let decisions = decision_log::read(&path).unwrap();
            assert_eq!(decisions.torn, 0, "{}", path.display());
            (path, decisions.entries)
        })
        .collect()
}

#[test]
fn real_runs_are_decided_again_without_a_difference() {
    for (path, entries) in recorded() {
        for (number, entry) in entries.iter().enumerate() {
            assert_eq!(entry.decide_again(), entry.plan, "{}:{}", path.display(), number + 1);
        }
    }
}

#[test]
fn the_real_runs_are_worth_replaying() {
    let plans: Vec<_> = recorded().into_iter().flat_map(|(_, entries)| entries).map(|entry| entry.plan).collect();
    let has = |wanted: fn(&Effect) -> bool| plans.iter().flat_map(|plan| &plan.effects).any(wanted);
    assert!(has(|effect| *effect == Effect::RunContainer(RunMode::Normally)));
    assert!(has(|effect| *effect == Effect::RunContainer(RunMode::Bootstrap)));
    assert!(has(|effect| *effect == Effect::RunContainer(RunMode::ForceNewCluster)));
    assert!(has(|effect| matches!(effect, Effect::RunContainer(RunMode::JoinAsLearner { .. }))));
    assert!(has(|effect| matches!(effect, Effect::RemoveMember { .. })));
    assert!(has(|effect| matches!(effect, Effect::PromoteMember { .. })));
    assert!(plans.iter().any(|plan| matches!(plan.next, Next::Reobserve { .. })));
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a test starts the program itself")]
fn a_reader_that_stops_early_is_no_fault() {
    for (path, _) in recorded() {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = Command::new(env!("CARGO_BIN_EXE_tandem"));
        let output = command.args(["replay", "--evidence"]).arg(path).stdout(writer).output().unwrap();
        assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &b""[..]));
    }
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a test starts the program itself")]
fn the_command_shows_the_first_difference_and_counts_what_was_cut_short() {
    let (_, mut entries) = recorded().remove(0);
    let last = entries.len() - 1;
    entries[last].plan.effects.push(Effect::AdvanceCommit);
    let mut text: String = entries.iter().map(|entry| serde_json::to_string(entry).unwrap() + "\n").collect();
    text += "{\"version\":1,\"at\":17";
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("decisions-etcd.jsonl");
    fs::write(&file, text).unwrap();
    let command = Command::new(env!("CARGO_BIN_EXE_tandem")).args(["replay", "--quiet"]).arg(&file).output().unwrap();
    let said = String::from_utf8(command.stdout).unwrap();
    assert!(!command.status.success());
    assert!(said.starts_with(&format!("{}: ", entries.len())), "{said}");
    // The output has words and the file's form, because words omit details, and the difference may be in one of them.
    let effect = ["advances the commit index to the end of its log", "\"advance_commit\""];
    for words in ["recorded\n", effect[0], effect[1], "now\n", "1 differ", "1 records were cut short"] {
        assert!(said.contains(words), "no '{words}' in:\n{said}");
    }
}
