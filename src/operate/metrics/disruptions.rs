//! Counts of resource stops. The collector observes the resources every 30 s, and writes its file only when one has started or stopped.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::base::Fact;
use crate::operate::health::conditions::{Conditions, Status, status};
use crate::records::state_file;

/// Path of the file with the counts of disruptions.
pub const PATH: &str = "/var/lib/tandem/disruptions.json";

/// The number of times that each resource stopped on each node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Disruptions {
    nodes: BTreeMap<String, BTreeMap<String, StartsSeen>>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct StartsSeen {
    started: bool,
    count: u64,
}

impl Disruptions {
    /// Reads the counts at `path`. An unreadable file counts as empty, because Prometheus handles a counter that starts again at 0.
    pub fn read(path: &Path) -> Self {
        match state_file::read(path) {
            Fact::Known(kept) => kept,
            Fact::Absent | Fact::Unknown(_) | Fact::NotAsked => Self::default(),
        }
    }

    /// Counts the resources that `conditions` newly shows as stopped, and stores the result at `path`.
    pub fn keep(path: &Path, conditions: &Conditions) -> io::Result<Self> {
        let before = Self::read(path);
        let mut now = before.clone();
        now.see(conditions);
        if now != before {
            state_file::write(path, &now)?;
        }
        Ok(now)
    }

    /// Counts the resources that `conditions` newly shows as stopped. A resource with an unknown condition is left unchanged.
    pub fn see(&mut self, conditions: &Conditions) {
        for node in &conditions.nodes {
            for resource in &node.resources {
                let started = match status(&resource.conditions, "Started") {
                    Status::True => true,
                    Status::False => false,
                    Status::Unknown => continue,
                };
                let kept =
                    self.nodes.entry(node.name.clone()).or_default().entry(resource.name.to_owned()).or_default();
                kept.count += u64::from(kept.started && !started);
                kept.started = started;
            }
        }
    }

    /// Returns each node and resource with the number of times that the resource stopped there.
    pub(super) fn counts(&self) -> impl Iterator<Item = (&str, &str, u64)> {
        self.nodes.iter().flat_map(|(node, resources)| {
            resources.iter().map(|(resource, seen)| (node.as_str(), resource.as_str(), seen.count))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operate::health::conditions::words::RESOURCE;
    use crate::operate::health::conditions::{Condition, NodeConditions, ResourceConditions};

    fn seen(status: Status) -> Conditions {
        let word = RESOURCE.iter().find(|word| word.kind == "Started").unwrap();
        let condition = Condition { kind: word.kind, status, reason: word.reason(status), message: String::new() };
        let etcd = ResourceConditions {
            name: "Etcd",
            conditions: vec![condition],
            fail_count: None,
            migration_threshold: None,
            last_start: None,
            last_stop: None,
            last_failure: None,
        };
        let node = NodeConditions {
            name: "a".to_owned(),
            addresses: Vec::new(),
            conditions: Vec::new(),
            resources: vec![etcd],
            fencing: Vec::new(),
        };
        Conditions { cluster: Vec::new(), nodes: vec![node] }
    }

    #[test]
    fn from_started_to_stopped_is_one_and_a_restart_of_the_collector_forgets_none() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("disruptions.json");
        let mut counts = Vec::new();
        for status in
            [Status::False, Status::True, Status::Unknown, Status::False, Status::False, Status::True, Status::False]
        {
            let kept = Disruptions::keep(&path, &seen(status)).unwrap();
            counts.push(kept.counts().next().map(|(_, _, count)| count));
        }
        assert_eq!(counts, [0, 0, 0, 1, 1, 1, 2].map(Some));
    }

    #[test]
    fn the_file_keeps_its_form() {
        let mut expected = Disruptions::default();
        for status in [Status::True, Status::False, Status::True] {
            expected.see(&seen(status));
        }
        let sample = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/fixtures/formats/0.1.0/disruptions.json");
        let mut sample: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(sample).unwrap()).unwrap();
        assert_eq!(serde_json::to_value(&expected).unwrap(), sample);
        sample["of_a_later_version"] = 1.into();
        assert_eq!(serde_json::from_value::<Disruptions>(sample).unwrap(), expected);
    }

    #[test]
    fn what_changes_nothing_writes_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("disruptions.json");
        Disruptions::keep(&path, &seen(Status::True)).unwrap();
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, serde_json::to_string(&Disruptions::default()).unwrap()).unwrap();
        Disruptions::keep(&path, &seen(Status::Unknown)).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), r#"{"nodes":{}}"#);
    }
}
