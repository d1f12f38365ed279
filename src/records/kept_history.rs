//! The note of a history that was given up: a file inside its data, which is moved aside with it.

use std::io;

use serde::{Deserialize, Serialize};

use crate::base::Fact;
use crate::decide::evidence::{DurableState, Lineage, LogPosition, NodeName};
use crate::os::beneath::Dir;
use crate::records::state_file;

/// The file's name.
const NAME: &str = "tandem-history.json";

/// The point where a history diverged from the one that was kept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptHistory {
    /// The number of forks that it knows, and the node that made the last.
    #[serde(default)]
    pub lineage: Lineage,
    /// The end of its data when its node began to run standalone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alone_since: Option<LogPosition>,
    /// A revision that both histories share.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alone_revision: Option<u64>,
    /// The node with the data that was kept in its place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<NodeName>,
}

impl KeptHistory {
    /// Returns the note about the data that `note` is about, which is given up for the data of `kept`.
    pub fn of(note: DurableState, kept: Option<NodeName>) -> Self {
        let DurableState { lineage, alone_since, alone_revision, .. } = note;
        Self { lineage, alone_since, alone_revision, kept }
    }

    /// Writes the note into the data `member`.
    pub fn write(&self, member: &Dir) -> io::Result<()> {
        member.replace(NAME, &serde_json::to_vec(self)?, 0o600)
    }

    /// Reads the note in the data `member`.
    pub fn read(member: &Dir) -> Fact<Self> {
        state_file::parsed(&member.path().join(NAME), member.own_file(NAME, state_file::SMALL))
    }
}
