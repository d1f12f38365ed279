//! How long things take on this machine, as far as a decision rests on it.

use serde::{Deserialize, Serialize};

/// Measured durations of this machine, in milliseconds. 0 means that nothing was measured, or that the duration is too short to matter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Pace {
    /// Duration of the observation that gathered this evidence.
    #[serde(default)]
    pub look_ms: u64,
    /// Time that an action must have left when it launches the container. It follows from the durations of the launches in this
    /// boot.
    #[serde(default)]
    pub launch_ms: u64,
    /// Number of consecutive actions that had too little time left for a recovery, and postponed it to the next action.
    #[serde(default)]
    pub postponed: u64,
    /// Number of consecutive observations, including this one, in which this node's etcd accepted a connection but did not answer
    /// in time.
    #[serde(default)]
    pub unanswered: u64,
}
