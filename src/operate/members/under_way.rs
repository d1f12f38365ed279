//! The change of a pair's members in progress, as the cluster property describes it.

use serde::{Deserialize, Serialize};

use crate::operate::cluster::Cluster;
use crate::operate::health;

/// A member change in progress, and the time at which this node's collector first saw it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct UnderWay {
    /// The text of the cluster property that describes the change.
    pub words: String,
    /// Time at which the collector first saw the change, in seconds since 1970.
    pub since: u64,
}

/// The kind and the nodes of a member change, for metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parts<'a> {
    /// `replace`, `add` or `remove`; `other` if the text is that of another version.
    pub kind: &'static str,
    /// Name of the node that leaves; empty if there is none.
    pub old: &'a str,
    /// Name of the node that joins; empty if there is none.
    pub new: &'a str,
}

impl UnderWay {
    /// Returns the member change that `cluster` shows; `None` if there is none. While its text equals that of
    /// `before`, it keeps the time of `before`.
    pub fn of(cluster: &Cluster, before: Option<&Self>) -> Option<Self> {
        let words = health::change_under_way(cluster)?;
        let since = before.filter(|before| before.words == words).map_or(cluster.at, |before| before.since);
        Some(Self { words, since })
    }

    /// Parses the kind and the nodes of the change from the property's text.
    pub fn parts(&self) -> Parts<'_> {
        let what = self.words.split_once(", ").map_or(self.words.as_str(), |(what, _)| what);
        if let Some((old, by)) = what.split_once(" is replaced by ") {
            let new = if by == "a new machine" { old } else { by };
            return Parts { kind: "replace", old, new };
        }
        if let Some((new, _)) = what.split_once(" is added") {
            return Parts { kind: "add", old: "", new };
        }
        match what.split_once(" is removed") {
            Some((old, _)) => Parts { kind: "remove", old, new: "" },
            None => Parts { kind: "other", old: "", new: "" },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapters::pacemaker::attributes::MEMBER_CHANGE;
    use crate::base::Fact;
    use crate::operate::health::samples;

    fn with(words: &str, at: u64) -> Cluster {
        let mut cluster = Cluster { at, ..samples::read("healthy") };
        let Fact::Known(configuration) = &mut cluster.configuration else { panic!("it is known") };
        configuration.properties.insert(MEMBER_CHANGE.to_owned(), words.to_owned());
        cluster
    }

    #[test]
    fn a_change_has_the_time_of_the_first_collection_that_saw_it() {
        assert_eq!(UnderWay::of(&samples::read("healthy"), None), None);
        let first = UnderWay::of(&with("node3 is added, by node1 since x", 100), None).unwrap();
        assert_eq!(first.since, 100);
        assert_eq!(UnderWay::of(&with(&first.words, 130), Some(&first)), Some(first.clone()));
        assert_eq!(UnderWay::of(&with("node2 is removed, by node1 since x", 130), Some(&first)).unwrap().since, 130);
        assert_eq!(UnderWay::of(&with("", 160), Some(&first)), None);
    }

    /// Asserts that the texts of `tandem member add --outside` and of the matching removal are parsed.
    #[test]
    fn a_third_member_comes_and_goes_by_its_name() {
        for (words, kind, old, new) in [
            ("node3 is added as a third member, at https://192.0.2.3:2380", "add", "", "node3"),
            ("node3 is removed, a third member", "remove", "node3", ""),
        ] {
            let under_way = UnderWay { words: words.to_owned(), since: 1 };
            assert_eq!(under_way.parts(), Parts { kind, old, new });
        }
    }

    #[test]
    fn words_of_another_version_are_a_change_of_which_no_more_is_known() {
        let under_way = UnderWay { words: "node2 moves, by node1".to_owned(), since: 1 };
        assert_eq!(under_way.parts(), Parts { kind: "other", old: "", new: "" });
    }
}
