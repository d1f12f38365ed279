//! Both halves of a test of fencing. Each node keeps the records of the tests that it conducted, so each has one half.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::record::{self, Record};
use super::with_node;
use crate::adapters::pacemaker::attributes::FENCING_TESTED;
use crate::adapters::pacemaker::seen::Configuration;
use crate::operate::cluster::Cluster;
use crate::operate::failure::Failure;
use crate::operate::health::words::rfc3339;

/// The fencing of one node by the other. A pair has two of these halves.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Half {
    /// The node that is fenced.
    pub node: String,
    /// The node that fences the other one.
    pub by: String,
    /// The last recorded test in which `by` fenced `node`. `None` if there is none, or if only the other node has the
    /// record.
    pub test: Option<Record>,
    /// The time of the last passed test in which `by` fenced `node`, in RFC 3339; `None` if no such test has passed. Both nodes know this
    /// time, because a node attribute contains it.
    pub passed_at: Option<String>,
}

impl Half {
    /// Returns whether the last test in which `by` fenced `node` passed; `None` if this node has no record of a test.
    pub fn has_passed(&self) -> Option<bool> {
        self.test.as_ref().map(|test| test.passed)
    }
}

/// Both directions of the pair's mutual fencing, each as a [`Half`]. The direction in which this node fences comes
/// first.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Halves {
    /// Name of the node that collected this information about the pair's fencing.
    pub here: String,
    pub halves: Vec<Half>,
}

impl Halves {
    /// Returns both directions of the pair's fencing as this node knows them. The direction in which this node fences
    /// has the record of the last test. The other direction has none, because the other node stores that record.
    pub fn here(cluster: &Cluster) -> Result<Self, Failure> {
        let here = cluster.here.as_str();
        let configuration = with_node(cluster, here)?;
        Ok(Self::of(configuration, here, |node| record::before(Path::new(record::PATH), node)))
    }

    fn of(configuration: &Configuration, here: &str, before: impl Fn(&str) -> Option<Record>) -> Self {
        let half = |by: &String| {
            let node = configuration.nodes.iter().find(|node| *node != by)?;
            let attribute = configuration.permanent.get(node).and_then(|attributes| attributes.get(FENCING_TESTED));
            let passed_at = attribute.and_then(|at| at.parse().ok()).map(rfc3339);
            let test = Some(node).filter(|_| by == here).and_then(|node| before(node));
            Some(Half { node: node.clone(), by: by.clone(), test, passed_at })
        };
        let mut halves: Vec<Half> = configuration.nodes.iter().filter_map(half).collect();
        halves.sort_by_key(|half| half.by != here);
        Self { here: here.to_owned(), halves }
    }

    /// Adds from `other` the record of the test that the other node conducted.
    #[must_use]
    pub fn with(mut self, other: &Self) -> Self {
        for half in self.halves.iter_mut().filter(|half| half.by == other.here && half.test.is_none()) {
            half.test = other.of_node(&half.node).and_then(|theirs| theirs.test.clone());
        }
        self
    }

    /// Returns the [`Half`] in which `node` is fenced; `None` if there is none.
    pub fn of_node(&self, node: &str) -> Option<&Half> {
        self.halves.iter().find(|half| half.node == node)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::operate::health::fencing::tests::healthy;

    pub(crate) fn record(node: &str, by: &str, passed: bool) -> Record {
        let why = (!passed).then(|| format!("{node} was not fenced"));
        Record {
            node: node.to_owned(),
            by: by.to_owned(),
            at: "2026-11-20T10:00:00Z".to_owned(),
            passed,
            why,
            ..Record::default()
        }
    }

    fn of(here: &str) -> Halves {
        let mut cluster = healthy();
        let crate::base::Fact::Known(configuration) = &mut cluster.configuration else { panic!() };
        for node in ["node1", "node2"] {
            let attributes = configuration.permanent.entry(node.to_owned()).or_default();
            attributes.insert(FENCING_TESTED.to_owned(), "1795170000".to_owned());
        }
        Halves::of(configuration, here, |node| Some(record(node, here, true)))
    }

    #[test]
    fn each_node_has_the_record_of_its_own_half_and_both_know_when_one_passed() {
        let here = of("node1");
        let known: Vec<_> = here.halves.iter().map(|half| (half.node.as_str(), half.has_passed())).collect();
        assert_eq!(known, [("node2", Some(true)), ("node1", None)]);
        assert!(here.halves.iter().all(|half| half.passed_at.as_deref() == Some("2026-11-20T10:20:00Z")));
        let both = here.with(&of("node2"));
        assert!(both.halves.iter().all(|half| half.has_passed() == Some(true)));
        assert_eq!(both.of_node("node1").and_then(|half| half.test.clone()), Some(record("node1", "node2", true)));
    }

    /// Asserts that a test's record is only taken from the node that conducted the test.
    #[test]
    fn a_half_is_taken_from_the_node_that_conducted_it_alone() {
        let mut other = of("node2");
        "node3".clone_into(&mut other.here);
        assert_eq!(of("node1").with(&other), of("node1"));
    }
}
