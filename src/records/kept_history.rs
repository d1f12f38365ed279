//! The note of a history that was given up: a file inside its data, which is moved aside with it.

use std::io;

use serde::{Deserialize, Serialize};

use crate::base::Fact;
use crate::decide::evidence::{DurableState, Lineage, LogPosition, NodeName};
use crate::os::beneath::Dir;
use crate::records::state_file;

/// The name of the file with a [`KeptHistory`] inside data that was given up.
const NAME: &str = "tandem-history.json";

/// The contents of a file inside data that was given up for the other node's data. It shows where the two nodes' data diverged.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptHistory {
    /// The lineage of the given-up data: the number of forks in its history, and the node that made the last fork.
    #[serde(default)]
    pub lineage: Lineage,
    /// The last position in the given-up data at the time when its node began to run standalone; `None` if the node did not run standalone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alone_since: Option<LogPosition>,
    /// A revision that the given-up data shares with the other node's data; `None` if none is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alone_revision: Option<u64>,
    /// The node with the data that the cluster uses instead of the given-up data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<NodeName>,
}

impl KeptHistory {
    /// Returns the record for data that is given up for the data of the node `kept`. `note` is the agent's durable record in the given-up
    /// data.
    pub fn of(note: DurableState, kept: Option<NodeName>) -> Self {
        let DurableState { lineage, alone_since, alone_revision, .. } = note;
        Self { lineage, alone_since, alone_revision, kept }
    }

    /// Writes this record into the given-up data in `member`.
    pub fn write(&self, member: &Dir) -> io::Result<()> {
        member.replace(NAME, &serde_json::to_vec(self)?, 0o600)
    }

    /// Reads the record in the given-up data in `member`.
    pub fn read(member: &Dir) -> Fact<Self> {
        state_file::parsed(&member.path().join(NAME), member.own_file(NAME, state_file::SMALL))
    }
}
