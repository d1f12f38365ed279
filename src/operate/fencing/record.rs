//! The results of tests of fencing: a file with a line for each test, on the node that conducted it.

use std::fs;
use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::base::json;
use crate::operate::metrics::FencingTests;
use crate::os::regular_file;
use crate::records::state_file;

pub const PATH: &str = "/var/lib/tandem/fencing-tests.jsonl";
/// Most fencing tests that the file keeps. They suffice for decades.
const LINES: usize = 200;
const FILE_LIMIT: u64 = 1024 * 1024;

/// Returns the results of the fencing tests that this node conducted, for Prometheus. Skips unreadable lines.
pub fn tests_of_this_node() -> FencingTests {
    FencingTests::read(&fs::read_to_string(PATH).unwrap_or_default())
}

/// The recorded result of one fencing test.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Record {
    /// The time at which the operator started the test, in RFC 3339.
    pub at: String,
    /// The node that was fenced.
    pub node: String,
    /// The node that fenced the other one.
    pub by: String,
    pub passed: bool,
    /// The reason why the test failed; `None` if it passed.
    pub why: Option<String>,
    pub seconds: Phases,
    /// The version of Tandem that conducted the test.
    pub tandem: String,
}

/// Seconds from the start of a fencing test until each phase. A phase that was not observed is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Phases {
    /// Seconds from the test's start until the fence agent had proof that the fenced node was off; `None` if that was
    /// not observed.
    pub off: Option<f64>,
    /// Seconds from the test's start until Pacemaker had the result of the fencing; `None` if that was not observed.
    pub told: Option<f64>,
    /// Seconds from the test's start until etcd on the surviving node served reads after its longest pause; `None` if
    /// that was not observed.
    pub writes: Option<f64>,
    /// Length of the longest pause between two reads that etcd served, in seconds; `None` if it was not measured.
    pub longest_pause: Option<f64>,
    /// Seconds from the test's start until the BMC reported that the fenced node was on again; `None` if that was not
    /// observed.
    pub on: Option<f64>,
    /// Seconds from the test's start until the fenced node was a Corosync member again; `None` if that was not
    /// observed.
    pub member: Option<f64>,
    pub learner: Option<f64>,
    pub voter: Option<f64>,
    /// Seconds from the test's start until the operator had nothing left to clean up; `None` if that was not
    /// observed.
    pub clean: Option<f64>,
}

impl Phases {
    /// Returns each phase's label in the table, and its seconds.
    pub fn rows(&self) -> [(&'static str, Option<f64>); 9] {
        [
            ("Off proven", self.off),
            ("Pacemaker told", self.told),
            ("writes possible", self.writes),
            ("longest pause", self.longest_pause),
            ("On", self.on),
            ("Corosync member", self.member),
            ("learner", self.learner),
            ("voter", self.voter),
            ("nothing left to clean up", self.clean),
        ]
    }
}

/// Returns `time` in seconds, rounded to tenths, which is as exact as a test measures.
pub fn seconds(time: Duration) -> f64 {
    (time.as_secs_f64() * 10.0).round() / 10.0
}

/// Returns the newest test in which `node` was fenced, from the file at `path`; `None` if there is none. Skips
/// unreadable lines.
pub fn before(path: &Path, node: &str) -> Option<Record> {
    let text = regular_file::text_of_at_most(path, FILE_LIMIT).ok()?;
    text.lines().rev().filter_map(|line| json::from_text::<Record>(line).ok()).find(|record| record.node == node)
}

/// Appends a fencing test to the file at `path`, and drops the oldest lines beyond `LINES`.
pub fn add(path: &Path, record: &Record) -> std::io::Result<()> {
    let text = regular_file::text_of_at_most(path, FILE_LIMIT).unwrap_or_default();
    let mut lines: Vec<&str> = text.lines().collect();
    let line = serde_json::to_string(record)?;
    lines.push(&line);
    let newest = lines.get(lines.len().saturating_sub(LINES)..).unwrap_or_default();
    state_file::replace(path, format!("{}\n", newest.join("\n")).as_bytes(), 0o600)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn the_last_test_of_the_same_node_is_found_and_the_file_is_bounded() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("not/yet/fencing-tests.jsonl");
        assert_eq!(before(&path, "node1"), None);
        let record = |node: &str, told| Record {
            node: node.to_owned(),
            seconds: Phases { told: Some(told), ..Phases::default() },
            ..Record::default()
        };
        for (at, told) in (0..250).zip([1.0, 2.0].into_iter().cycle()) {
            add(&path, &record(if at % 2 == 0 { "node1" } else { "node2" }, told)).unwrap();
        }
        assert_eq!(before(&path, "node2"), Some(record("node2", 2.0)));
        assert_eq!(before(&path, "node3"), None);
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text.lines().count(), LINES);
        // The line that a power cut or an editor left incomplete.
        std::fs::write(&path, format!("{text}half a li")).unwrap();
        assert_eq!(before(&path, "node1"), Some(record("node1", 1.0)));
    }

    #[test]
    fn a_line_keeps_its_form() {
        let text = include_str!("../../../tests/data/fixtures/formats/0.1.0/fencing-test.json").trim_end();
        let record: Record = serde_json::from_str(text).unwrap();
        assert_eq!((record.seconds.off, record.seconds.voter), (Some(4.2), None));
        assert_eq!(serde_json::to_string(&record).unwrap(), text);
        assert_eq!(serde_json::from_str::<Record>("{\"of_a_later_version\":1}").unwrap(), Record::default());
    }

    #[test]
    fn times_are_tenths_of_seconds() {
        assert_eq!(seconds(Duration::from_millis(4_249)).to_string(), "4.2");
    }
}
