//! How long things take on this machine, as far as a decision rests on it.

use serde::{Deserialize, Serialize};

/// What was measured, in milliseconds; zero where nothing was, or where it is too little to matter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Pace {
    /// The look that this evidence is from.
    #[serde(default)]
    pub look_ms: u64,
    /// What a launch of the container is to have left of an action's time, from what launches took in this boot.
    #[serde(default)]
    pub launch_ms: u64,
    /// How many actions in a row have left a recovery to the next one for want of time.
    #[serde(default)]
    pub postponed: u64,
    /// How many looks in a row, this one the last, had no time for the answer of our etcd, which takes connections.
    #[serde(default)]
    pub unanswered: u64,
}
