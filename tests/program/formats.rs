//! The persisted formats: frozen files and attributes of each release are read with their meaning, and written in the
//! same form. `docs/design/formats.md` lists them. Formats with private types have tests in their own modules, with the
//! same samples.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::path::PathBuf;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tandem::adapters::etcd::version::Version;
use tandem::adapters::pacemaker::attributes::parse_lineage;
use tandem::decide::evidence::{
    BootState, Cause, Confirmation, DataDir, DataEnd, DataOwner, DurableState, HandOver, History, Lineage, LogPosition,
    PublishedState, Reached, Redundancy, RunningVoter, ThirdVoter,
};
use tandem::operate::cluster::{Certificate, Collected, MovedAside, SecretSeen};
use tandem::operate::events::deliver::Cursor;
use tandem::records::events::{Details, Event, Type};
use tandem::records::kept_history::KeptHistory;
use tandem::records::lone_boot::FirstCorosync;

fn samples() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/fixtures/formats/0.1.0")
}

fn sample(name: &str) -> String {
    std::fs::read_to_string(samples().join(name)).unwrap()
}

/// Asserts that the sample file `name` means `expected`, and that `expected` is written as the sample is. Fields that a later
/// version adds must not prevent reading.
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
fn the_durable_note_is_read_and_written_as_its_sample() {
    let alone_since = Some(LogPosition { term: 3, index: 1000 });
    let left_at = Some(LogPosition { term: 2, index: 900 });
    let of = Some(DataOwner { cluster_id: 77, member_id: 11, node: "node1".to_owned() });
    holds(
        "note.json",
        &DurableState {
            lineage: lineage(1, "node1"),
            alone_since,
            alone_revision: Some(812),
            left_at,
            gave_up: true,
            joins: true,
            of,
            without: Some(12),
        },
    );
    reads("note-least.json", &DurableState::default());
}

#[test]
fn a_kept_history_is_read_and_written_as_its_sample() {
    let alone_since = Some(LogPosition { term: 3, index: 1000 });
    let kept = Some("node2".to_owned());
    holds("history.json", &KeptHistory { lineage: lineage(1, "node1"), alone_since, alone_revision: Some(812), kept });
    reads("history-least.json", &KeptHistory::default());
}

#[test]
fn the_memory_of_a_boot_is_read_and_written_as_its_samples() {
    let voter =
        RunningVoter { cluster_id: 77, member_id: 11, lineage: lineage(1, "node1"), sole: true, among_many: false };
    let ended_at = Some(DataEnd {
        cluster_id: 77,
        member_id: 11,
        position: LogPosition { term: 3, index: 1000 },
        found_dead: false,
    });
    let memory = BootState {
        boot_id: BOOT.to_owned(),
        voter: Some(voter),
        promoted: true,
        start_failures: 3,
        in_vain: false,
        ended_at,
        hand_over: None,
        leaderless_since_s: None,
    };
    holds("boot-memory.json", &memory);
    let hand_over = Some(HandOver { cause: Cause::Primary, since_s: 3_600, tries: 1 });
    let due = BootState { ended_at: None, hand_over, ..memory };
    holds("boot-memory-hand-over.json", &due);
    let leaderless = BootState { hand_over: None, leaderless_since_s: Some(3_600), ..due };
    holds("boot-memory-leaderless.json", &leaderless);
    let least = BootState { boot_id: BOOT.to_owned(), ..BootState::default() };
    reads("boot-memory-least.json", &least);
}

#[test]
fn the_first_corosync_of_a_boot_is_read_and_written_as_its_sample() {
    holds("first-corosync.json", &FirstCorosync { boot_id: BOOT.to_owned(), started: 4_711 });
}

#[test]
fn an_operators_confirmation_is_read_and_written_as_its_sample() {
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
        left: true,
        nonce: Some(5),
        revision: None,
        prefers: None,
    };
    holds("etcd_record.json", &published);
    holds("etcd_record-revision.json", &PublishedState { revision: Some(812), ..published.clone() });
    holds("etcd_record-prefers.json", &PublishedState { prefers: Some("node1".to_owned()), ..published });
    let least = PublishedState::of(BOOT.to_owned(), DataDir::Blank, Lineage::default());
    holds("etcd_record-least.json", &least);
}

#[test]
fn the_lineage_of_a_history_is_read_from_its_sample() {
    assert_eq!(parse_lineage(sample("etcd_lineage.txt").trim_end()), Some(lineage(2, "node1")));
}

#[test]
fn the_time_of_two_voters_is_read_and_written_as_its_sample() {
    let written = sample("etcd_redundancy.txt");
    let read: Redundancy = written.trim_end().parse().unwrap();
    assert_eq!(read, Redundancy { is_redundant: true, since: 1_795_442_548 });
    assert_eq!(read.to_string(), written.trim_end());
}

#[test]
fn the_reach_of_etcd_is_read_and_written_as_its_sample() {
    let written = sample("etcd_reached.txt");
    let read: Reached = written.trim_end().parse().unwrap();
    let position = LogPosition { term: 3, index: 1000 };
    assert_eq!(read, Reached { cluster_id: 77, forks: 1, position, is_redundant: true });
    assert_eq!(read.to_string(), written.trim_end());
}

#[test]
fn the_third_voter_is_read_and_written_as_its_sample() {
    let written = sample("etcd_guest.txt");
    let third_voter = ThirdVoter::parse(&written);
    let (name, peer_url) = ("node3".to_owned(), "https://192.0.2.3:2380".to_owned());
    assert_eq!(third_voter, ThirdVoter { name, peer_url, id: Some(0x8e9e_05c5_2164_694d) });
    assert_eq!(third_voter.to_string(), written.trim_end());
}

#[test]
fn what_a_node_knows_of_its_own_machine() {
    let pairs = |name: &str, value: &str| BTreeMap::from([(name.to_owned(), value.to_owned())]);
    let collected = Collected {
        at: 1_795_443_719,
        tandem: "0.1.0".to_owned(),
        pacemaker: Some("2.1.5".to_owned()),
        dmi_uuid: Some("7a4e1000-0000-4000-8000-000000000001".to_owned()),
        free_bytes: Some(61_672_243_200),
        size_bytes: Some(270_553_174_016),
        certificates: vec![Certificate { file: "/etc/tandem/etcd.crt".to_owned(), ends: 1_826_978_719 }],
        bmcs: Vec::new(),
        moved_aside: vec![MovedAside {
            path: "/var/lib/etcd/member-backup-0001-20261123T140000Z".to_owned(),
            at: 1_795_442_400,
            bytes: 128_000_000,
        }],
        stale_join_files: vec!["/etc/tandem/node2.join".to_owned()],
        enabled: BTreeMap::from([("corosync".to_owned(), true)]),
        passwords: BTreeMap::from([("fence-node2".to_owned(), vec!["0f0e0d0c0b0a09080706050403020100".to_owned()])]),
        routes: pairs("10.98.0.102", "eth1"),
        secrets: BTreeMap::new(),
    };
    holds("collected.json", &collected);
    let differs = SecretSeen { at: 1_795_443_600, differs: vec!["password".to_owned()], looks: 2 };
    let with_secrets = Collected { secrets: BTreeMap::from([("fence-node2".to_owned(), differs)]), ..collected };
    holds("collected-secrets.json", &with_secrets);
    // This is the minimum that the first version wrote.
    reads("collected-least.json", &Collected { at: 1_795_443_719, tandem: "0.1.0".to_owned(), ..Collected::default() });
}

#[test]
fn an_event_and_how_far_a_recipient_is() {
    let event = Event {
        number: 7,
        time: 1_795_442_801_843,
        kind: Type::Error,
        reason: "PacemakerNodeOffline".to_owned(),
        node: "node1".to_owned(),
        message: "node1 is lost: it left the cluster".to_owned(),
        cause: "1795442801.843990 node1 node lost".to_owned(),
        details: Details::new(),
    };
    holds("event.json", &event);
    let detailed = event.with_details([("path", "/var/lib/etcd/member-history-0001-20261123T140000Z".to_owned())]);
    holds("event-details.json", &detailed);
    holds("cursor.json", &Cursor { brought: 7, lost: 3, lost_untold: 2, failures: 4, again_at: 1_795_442_901 });
}

#[test]
fn the_versions_of_images_are_read_from_their_sample() {
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
