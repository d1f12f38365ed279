//! What outlives a process keeps its form: files and attributes of each release, frozen, are read as they were meant, and
//! written so. `docs/design/formats.md` lists them. Formats whose types are private are tested beside them, with the same
//! samples.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::path::PathBuf;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tandem::decide::evidence::{
    BootMemory, Confirmation, DataDir, History, Lineage, LogPosition, Note, PublishedState, RunningVoter,
};
use tandem::etcd::version::Version;
use tandem::pacemaker::attributes::parse_lineage;

fn samples() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/formats/0.1.0")
}

fn sample(name: &str) -> String {
    std::fs::read_to_string(samples().join(name)).unwrap()
}

/// The sample means `expected`, which is written like the sample; and what a later version adds is no reason to read nothing.
fn holds<T: Serialize + DeserializeOwned + PartialEq + Debug>(name: &str, expected: &T) {
    reads(name, expected);
    let written: Value = serde_json::from_str(&sample(name)).unwrap();
    assert_eq!(serde_json::to_value(expected).unwrap(), written, "{name} is written in another form now");
}

fn reads<T: DeserializeOwned + PartialEq + Debug>(name: &str, expected: &T) {
    let text = sample(name);
    assert_eq!(&serde_json::from_str::<T>(&text).unwrap(), expected, "{name}");
    let mut later: Value = serde_json::from_str(&text).unwrap();
    later["of_a_later_version"] = Value::from(1);
    assert_eq!(&serde_json::from_value::<T>(later).unwrap(), expected, "{name} with what a later version adds");
}

fn lineage(forks: u64, by: &str) -> Lineage {
    Lineage { forks, by: by.to_owned() }
}

const BOOT: &str = "39c0d5cc-263940";

#[test]
fn the_durable_note() {
    let alone_since = Some(LogPosition { term: 3, index: 1000 });
    let left_at = Some(LogPosition { term: 2, index: 900 });
    holds("note.json", &Note { lineage: lineage(1, "node1"), alone_since, left_at, gave_up: true, joins: true });
    reads("note-least.json", &Note::default());
}

#[test]
fn the_memory_of_a_boot() {
    let voter = RunningVoter { cluster_id: 77, member_id: 11, lineage: lineage(1, "node1"), sole: true };
    let memory =
        BootMemory { boot_id: BOOT.to_owned(), voter: Some(voter), promoted: true, start_failures: 3, in_vain: false };
    holds("boot-memory.json", &memory);
    let least =
        BootMemory { boot_id: BOOT.to_owned(), voter: None, promoted: false, start_failures: 0, in_vain: false };
    reads("boot-memory-least.json", &least);
}

#[test]
fn an_operators_confirmation() {
    let position = LogPosition { term: 3, index: 1000 };
    let (boot_id, lost_node) = (BOOT.to_owned(), "node2".to_owned());
    let word = Confirmation { boot_id, lost_node, cluster_id: 77, member_id: 11, position, accept_loss: true };
    holds("confirmation.json", &word);
}

#[test]
fn what_a_node_publishes() {
    let history = History {
        cluster_id: 77,
        member_id: 11,
        last_term: 3,
        last_index: 1000,
        commit_index: 990,
        voters: [11, 12].into(),
        learners: [13].into(),
        has_left: false,
        database_ahead: Some(1001),
        damage: vec!["a torn tail".to_owned()],
    };
    let published = PublishedState {
        boot_id: BOOT.to_owned(),
        disk: DataDir::Present(history),
        lineage: lineage(1, "node1"),
        claims: true,
        joins: true,
        gave_up: true,
        nonce: Some(5),
    };
    holds("etcd_record.json", &published);
    let least = PublishedState {
        disk: DataDir::Blank,
        lineage: Lineage::default(),
        claims: false,
        joins: false,
        gave_up: false,
        nonce: None,
        ..published
    };
    holds("etcd_record-least.json", &least);
}

#[test]
fn the_forks_of_a_history() {
    assert_eq!(parse_lineage(sample("etcd_lineage.txt").trim_end()), Some(lineage(2, "node1")));
}

#[test]
fn versions_of_images() {
    let known = BTreeMap::from([("sha256:4a1c".to_owned(), Version { minor: 5, patch: 16 })]);
    let written: BTreeMap<String, Version> = serde_json::from_str(&sample("image-versions.json")).unwrap();
    assert_eq!(written, known);
}

#[test]
fn every_sample_is_in_the_list_of_formats() {
    let list =
        std::fs::read_to_string(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("docs/design/formats.md")).unwrap();
    for entry in std::fs::read_dir(samples()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let listed = name.replace("-least", "");
        assert!(list.contains(&format!("`{listed}`")), "docs/design/formats.md does not name {listed}");
    }
}
