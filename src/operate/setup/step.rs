//! The result of a step: done, changes to make, a difference, or a refusal.

use serde::{Deserialize, Serialize};

use super::action::Action;

/// A step and its present state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetupStep {
    /// The id for `--json` and tests: `corosync`, `properties`, `fence-node1`, `etcd`, ...
    pub id: String,
    /// The title that the operator reads: "fence device of node1".
    pub title: String,
    /// The node on which its actions run.
    pub on: String,
    pub state: State,
}

/// The present state compared with the description.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum State {
    Done,
    ToDo(Vec<Action>),
    /// Exists, but differs from the description. `actions` is what `--change` would do.
    Differs {
        differences: Vec<Difference>,
        actions: Vec<Action>,
    },
    /// Cannot or must not be done. The sentence contains what to type.
    Refused(String),
}

/// One value that differs from the description.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Difference {
    /// The object and its option: "fence-node1: pcmk_delay_base".
    pub what: String,
    pub there: String,
    pub described: String,
}
