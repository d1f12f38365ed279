//! How long things take on this machine, as far as a decision rests on it.

use serde::{Deserialize, Serialize};

/// Measured durations, in milliseconds; zero where nothing was measured, or where it is too little to matter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Pace {
    /// The observation that this evidence is from.
    #[serde(default)]
    pub look_ms: u64,
    /// The time that must be left of an action before it launches the container, from what launches took in this boot.
    #[serde(default)]
    pub launch_ms: u64,
    /// The number of actions in a row that have left a recovery to the next one for want of time.
    #[serde(default)]
    pub postponed: u64,
    /// The number of observations in a row, up to this one, that had no time for the answer of our etcd, which takes
    /// connections.
    #[serde(default)]
    pub unanswered: u64,
}
