//! Every parser of other programs' outputs survives all inputs: no panic, no hang, and no memory beyond a multiple of
//! the input. The readers of etcd's files have tests of their own (`data_dir`).
//!
//! `TANDEM_FUZZ_CASES` sets the number of cases for each parser. A plain run does a share that CI can afford.

use std::fs;
use std::time::{Duration, Instant};

use crate::allocation;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use tandem::adapters::etcd::{config, log_line};
use tandem::adapters::ocf::env::Env;
use tandem::adapters::pacemaker::{attributes, cib, resource};
use tandem::adapters::podman;
use tandem::base::Fact;
use tandem::decide::Evidence;
use tandem::decide::evidence::{BootState, Confirmation, DurableState, PublishedState};
use tandem::records::{decision_log, state_file};

const CIB: &str = include_str!("../data/fixtures/cib/two-voters.xml");
const INSPECTED: &str = r#"{"Status":"exited","Running":false,"ExitCode":137,"Error":"","Pid":0,"OOMKilled":false}"#;
const LOG: &str = concat!(
    r#"{"level":"info","ts":"2026-01-01T00:00:00Z","msg":"published local member"}"#,
    "\n",
    r#"{"level":"fatal","msg":"discovery failed","error":"member count is unequal","stacktrace":"main.main\n\t/x.go:1"}"#,
    "\n"
);
const CONFIGURATION: &str = "name: \"node1\"\nforce-new-cluster: true\ninitial-cluster-state: \"new\"\n";
const NOTE: &str =
    r#"{"lineage":{"forks":1,"by":"node1"},"alone_since":{"term":3,"index":9},"left_at":null,"joins":true}"#;

/// The time limit for one case, which is a thousand times its usual duration.
const PATIENCE: Duration = Duration::from_secs(5);

fn cases() -> u32 {
    std::env::var("TANDEM_FUZZ_CASES").map_or(2_000, |cases| cases.parse().expect("TANDEM_FUZZ_CASES is a number"))
}

/// A change of a text. The text is cut off, or a part is deleted, doubled or overwritten.
#[derive(Clone, Debug)]
struct Change {
    kind: u8,
    at: prop::sample::Index,
    length: usize,
    words: String,
}

fn changes() -> impl Strategy<Value = Vec<Change>> {
    let words = prop_oneof![
        any::<String>(),
        "[<>&\"'{}\\[\\]:,=/!-]{1,20}",
        Just("18446744073709551616".to_owned()),
        Just("-1e999".to_owned()),
        Just("&lt;&#0;&#xFFFFFFFF;".to_owned()),
        Just("\u{0}\u{feff}\u{202e}".to_owned()),
    ];
    let change = (0_u8..4, any::<prop::sample::Index>(), 0_usize..200, words);
    prop::collection::vec(change.prop_map(|(kind, at, length, words)| Change { kind, at, length, words }), 0..6)
}

fn changed(valid: &str, changes: &[Change]) -> String {
    changes.iter().fold(valid.to_owned(), |text, change| {
        let bounds: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
        let from = change.at.index(bounds.len());
        let to = (from + change.length).min(bounds.len() - 1);
        let (before, within, after) = (&text[..bounds[from]], &text[bounds[from]..bounds[to]], &text[bounds[to]..]);
        match change.kind {
            0 => before.to_owned(),
            1 => format!("{before}{after}"),
            2 => format!("{before}{within}{within}{after}"),
            _ => format!("{before}{}{after}", change.words),
        }
    })
}

/// Asserts that `parse` survives changed copies of `valid` and arbitrary text, in bounded time and memory.
fn survives(valid: &str, parse: impl Fn(&str)) {
    let config = Config { cases: cases(), failure_persistence: None, ..Config::default() };
    let inputs = prop_oneof![
        4 => changes().prop_map(|changes| changed(valid, &changes)),
        1 => any::<String>(),
    ];
    TestRunner::new(config)
        .run(&inputs, |text| {
            bounded(&text, &parse);
            Ok(())
        })
        .unwrap();
}

fn bounded(text: &str, parse: impl Fn(&str)) {
    let began = Instant::now();
    let (peak, ()) = allocation::peak(|| parse(text));
    assert!(began.elapsed() < PATIENCE, "a hang: {:?} for {} bytes", began.elapsed(), text.len());
    assert!(peak <= 256 * 1024 + 128 * text.len(), "{peak} bytes for {} that are there", text.len());
}

#[test]
fn any_cib_is_read_within_bounds() {
    survives(CIB, |xml| {
        let _ = cib::parse(xml, "etcd", "node2", Some("node1"));
        let _ = resource::parse(xml);
    });
}

/// Asserts that deep or wide XML is parsed in bounded time. Depth exhausts the stack of a recursive parser, and the time of a
/// parser that walks up from each element.
#[test]
fn deep_and_wide_xml_is_read_within_bounds() {
    let deep =
        |tag: &str, count: usize| format!("<cib>{}{}</cib>", format!("<{tag}>").repeat(count), "</x>".repeat(count));
    let wide = format!("<cib><status>{}</status></cib>", "<node_state uname='node1'/>".repeat(20_000));
    let nested = "<primitive type='podman-etcd' id='e'>".repeat(2_000) + &"</primitive>".repeat(2_000);
    for xml in [deep("x", 5_000), wide, format!("<cib>{nested}</cib>"), "<".repeat(100_000)] {
        bounded(&xml, |xml| {
            let _ = cib::parse(xml, "etcd", "node2", Some("node1"));
            let _ = resource::parse(xml);
        });
    }
}

/// Asserts that a CIB that defines entities is refused. Entities that expand into each other would make a small document large.
#[test]
fn a_cib_that_defines_entities_is_refused() {
    let entities = "<!DOCTYPE cib [<!ENTITY a \"aaaaaaaaaa\"><!ENTITY b \"&a;&a;&a;&a;&a;&a;&a;&a;\">]><cib>&b;</cib>";
    assert!(cib::parse(entities, "etcd", "node2", None).is_err());
}

#[test]
fn any_state_of_a_container_is_read_within_bounds() {
    survives(INSPECTED, |json| {
        let _ = serde_json::from_str::<podman::State>(json);
    });
    let nested = "[".repeat(200_000);
    bounded(&nested, |json| assert!(serde_json::from_str::<podman::State>(json).is_err()));
}

#[test]
fn any_log_of_etcd_is_read_within_bounds() {
    survives(LOG, |log| {
        let _ = log_line::most_telling(log);
    });
    bounded(&"{\"level\":\"fatal\",\"msg\":".repeat(50_000), |log| {
        let _ = log_line::most_telling(log);
    });
}

#[test]
fn a_settled_configuration_forces_no_new_cluster() {
    survives(CONFIGURATION, |text| {
        assert!(!config::forces_new_cluster(&config::settled(text)));
    });
}

#[test]
fn any_attributes_and_notify_variables_are_read_within_bounds() {
    survives("12:node1", |value| {
        let _ = attributes::parse_lineage(value);
    });
    survives("node1 node2 node1", |value| {
        let pair = |name: &str| (format!("OCF_RESKEY_CRM_meta_{name}"), value.to_owned());
        let env = Env::from_pairs(
            ["notify_active_uname", "notify_stop_uname", "notify_type", "timeout", "interval", "on_node"].map(pair),
        );
        let _ = (env.notify(), env.timeout(), env.is_recurring(), env.on_node());
    });
}

#[test]
fn any_record_of_the_peer_is_read_within_bounds() {
    let record = cib::parse(CIB, "etcd", "node2", Some("node1")).unwrap().peer_record.unwrap();
    survives(&serde_json::to_string(&record).unwrap(), |json| {
        let _ = serde_json::from_str::<PublishedState>(json);
    });
}

#[test]
fn any_notes_and_confirmations_are_read_within_bounds() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("note");
    survives(NOTE, |text| {
        fs::write(&path, text).unwrap();
        let _: Fact<DurableState> = state_file::read(&path);
        let _: Fact<BootState> = state_file::read(&path);
        let _: Fact<Confirmation> = state_file::read(&path);
    });
}

#[test]
fn any_recorded_decisions_are_read_within_bounds() {
    let recorded = include_str!("../data/fixtures/decisions/one.jsonl");
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("decisions.jsonl");
    fs::write(&path, recorded).unwrap();
    let entries = decision_log::read(&path).unwrap().entries;
    // An older version recorded fewer facts; the missing ones are read as not asked for.
    let Evidence { room, data_in_use, .. } = &entries[0].evidence;
    assert_eq!((room, data_in_use), (&Fact::NotAsked, &Fact::NotAsked));
    survives(recorded, |text| {
        fs::write(&path, text).unwrap();
        let _ = decision_log::read(&path);
    });
}
